"""A workload's output in a higher precision than its own: the truth that both forms are rounded from.

For the time of one eager call every low-precision weight and buffer of the model is replaced by its copy in the higher
precision, tensors that reach a module are cast up, and whatever asks torch for the low precision gets the high one.
Random numbers are drawn in the low precision and cast up, so that the noise is the same. Afterwards every parameter
holds the very same memory as before.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from tracekit.measure.device import free_memory_bytes, synchronize
from tracekit.measure.outputs import Output, keep_output
from tracekit.model.note import Noted
from tracekit.model.workload import BuiltWorkload
from tracekit.statements.noted import ModulesNotNamed, ReferenceDoesNotFit, ReferenceFailed, ReferenceRanOutOfMemory
from tracekit.torch_internals import tree_map

#: The precision of the reference, for those that this knows something higher for.
HIGHER = {torch.bfloat16: torch.float32, torch.float16: torch.float32, torch.float32: torch.float64}
RANDOM = (
    *(torch.randn, torch.rand, torch.normal, torch.randn_like, torch.rand_like),
    *(torch.bernoulli, torch.Tensor.bernoulli, nn.functional.dropout),
)
#: Those whose numbers are of their first argument's dtype.
OF_INPUT = (torch.bernoulli, torch.Tensor.bernoulli)
#: `x.half()` asks for a dtype by name.
CASTS = {torch.Tensor.bfloat16: torch.bfloat16, torch.Tensor.half: torch.float16, torch.Tensor.float: torch.float32}
#: How many times the copy of the weights must be free beside it, for what the call itself allocates.
ROOM = 1.25


def call_reference(workload: BuiltWorkload, high: torch.dtype, calling_bytes: int) -> Output | Noted:
    """The output of one eager call in `high`, or why there is none. `calling_bytes` is what a call allocates beside the
    weights in the model's own precision; what it takes in the reference's is guessed from it."""
    settings = workload.settings
    low: torch.dtype = getattr(torch, settings.dtype)
    if not workload.modules:
        return ModulesNotNamed()
    modules = tuple(module for _name, module in workload.modules)
    growth = high.itemsize / low.itemsize
    if settings.device != "cpu":
        torch.cuda.empty_cache()
    weights_bytes = sum(tensor.nbytes for tensor in tensors_of(modules) if tensor.dtype == low)
    need = ROOM * (weights_bytes + calling_bytes) * growth
    free = free_memory_bytes(settings.device)
    if need > free:
        return ReferenceDoesNotFit(str(high).removeprefix("torch."), need, free)
    try:
        torch.manual_seed(settings.seed)
        # In which precision each random tensor of an eager call is drawn.
        with _Drawing() as drawing, torch.no_grad():
            workload.call()
        with _raised(modules, low, high, drawing.dtypes), _full_float32(), torch.no_grad():
            torch.manual_seed(settings.seed)
            output = keep_output(workload.call())
            synchronize(settings.device)
    except torch.OutOfMemoryError:
        return ReferenceRanOutOfMemory(need)
    except Exception as error:  # noqa: BLE001 - models written for one precision may fail in any way; it is said how.
        first = next(iter(str(error).strip().splitlines()), "")
        return ReferenceFailed(f"{type(error).__name__}: {first[:160]}")
    finally:
        if settings.device != "cpu":
            torch.cuda.empty_cache()
    return output


class _Drawing(TorchFunctionMode):
    """Notes the precision of each random tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: list[torch.dtype] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        returned = func(*args, **(kwargs or {}))
        if func in RANDOM:
            self.dtypes.append(returned.dtype)
        return returned


def tensors_of(modules: Iterable[nn.Module]) -> list[torch.Tensor]:
    """Every parameter and buffer, once."""
    every = (tensor for module in modules for tensor in chain(module.parameters(), module.buffers()))
    return list({id(tensor): tensor for tensor in every}.values())


@contextmanager
def _raised(
    modules: tuple[nn.Module, ...], low: torch.dtype, high: torch.dtype, draws: list[torch.dtype]
) -> Iterator[None]:
    """Inside, parameters, buffers, arguments of modules and what names a precision are of the high one."""

    def raised(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(high) if value.dtype == low else value
        return high if value is low else value

    def cast(_module: nn.Module, args: Any, kwargs: Any) -> Any:
        # Of other containers, such as a cache that calls fill, no copy is made.
        return tree_map(raised, (args, kwargs), is_leaf=lambda value: type(value) not in (tuple, list, dict))

    with ExitStack() as stack:
        for tensor in tensors_of(modules):
            if tensor.dtype == low:
                stack.callback(setattr, tensor, "data", tensor.data)
                tensor.data = tensor.data.to(high)
        for module in {id(each): each for root in modules for each in root.modules()}.values():
            stack.callback(module.register_forward_pre_hook(cast, with_kwargs=True).remove)
        stack.enter_context(_Raising(low, high, draws))
        yield


class _Raising(TorchFunctionMode):
    """Calls of torch that name the low precision mean the high one."""

    def __init__(self, low: torch.dtype, high: torch.dtype, draws: list[torch.dtype]) -> None:
        super().__init__()
        self._low, self._high, self._draws = low, high, iter(draws)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in RANDOM:
            # The same generator gives other numbers in another precision, and the noise is to be the same.
            dtype = next(self._draws, None)
            if func is nn.functional.dropout:
                return _dropped(dtype, *args, **kwargs)
            if dtype is not None and func in OF_INPUT:
                args = (args[0].to(dtype), *args[1:])
            elif dtype is not None and func is not torch.normal:
                kwargs = {**kwargs, "dtype": dtype}
            drawn = func(*args, **kwargs)
            return drawn.to(self._high) if drawn.dtype == self._low else drawn
        if CASTS.get(func) == self._low:
            return args[0].to(self._high)
        args = tuple(self._high if each is self._low else each for each in args)
        return func(*args, **{key: self._high if each is self._low else each for key, each in kwargs.items()})


def _dropped(
    dtype: torch.dtype | None,
    input: torch.Tensor,  # noqa: A002 - torch's own name for it.
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> torch.Tensor:
    """Dropout that leaves out what it leaves out of a tensor of this dtype."""
    if not training or not 0 < p < 1:
        return nn.functional.dropout(input, p, training, inplace)
    kept = nn.functional.dropout(torch.ones_like(input, dtype=dtype), p) != 0
    return input.mul_(kept).div_(1 - p) if inplace else input * kept / (1 - p)


@contextmanager
def _full_float32() -> Iterator[None]:
    """Matrix products and convolutions in full float32, not in TF32."""
    matmuls, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmuls)
        torch.backends.cudnn.allow_tf32 = convolutions
