"""Does a model take these inputs, and how much memory does the call need? Asked without any memory for it.

The parts of torch used here are private (tried on 2.11 and 2.13): without them nothing is known.
"""

from __future__ import annotations

import importlib
import logging
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

fake_tensor: Any
try:
    fake_tensor = importlib.import_module("torch._subclasses.fake_tensor")
except ImportError:
    fake_tensor = None


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """`weights_bytes` are parameters and buffers. `activations_bytes` is the most that one call holds beside them, as
    the operators of a CPU make it; None where the call asks for values that nobody has computed."""

    weights_bytes: int
    activations_bytes: int | None


def rehearse(model: nn.Module, arguments: Mapping[str, Any]) -> Rehearsal:
    """Plays one forward of a `model` on the meta device through with tensors that have shapes and no values.

    Raises whatever the model raises for arguments that do not fit it.
    """
    tensors = {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }
    weights = sum(each.nbytes for each in {id(tensor): tensor for tensor in tensors.values()}.values())
    if fake_tensor is None:
        return Rehearsal(weights, None)
    mode = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with _log_hushed(), _nothing_kept(), mode:
            stand_in = _stand_ins()
            standing = {name: stand_in(tensor) for name, tensor in tensors.items()}
            given = pytree.tree_map_only(torch.Tensor, stand_in, dict(arguments))
            with torch.no_grad(), _Counted([*standing.values(), *pytree.tree_leaves(given)]) as counted:
                torch.func.functional_call(model, standing, (), given)
    except Exception as error:
        if _wants_values(error):
            return Rehearsal(weights, None)
        raise
    return Rehearsal(weights, counted.most_bytes)


@contextmanager
def _log_hushed() -> Iterator[None]:
    """What goes wrong is raised; torch would log its own stack of it besides."""
    log = logging.getLogger(fake_tensor.__name__)
    before = log.disabled
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = before


@contextmanager
def _nothing_kept() -> Iterator[None]:
    """transformers keeps position embeddings by shape, device and type, whichever model asked
    (`compile_compatible_method_lru_cache`): one without values would come to the real call. While Dynamo compiles it
    keeps none, so that is said."""
    module = sys.modules.get("transformers.pytorch_utils")
    asked = getattr(module, "is_torchdynamo_compiling", None)
    if module is None or asked is None:
        yield
        return
    setattr(module, "is_torchdynamo_compiling", lambda: True)  # noqa: B010 - a module's attribute.
    try:
        yield
    finally:
        setattr(module, "is_torchdynamo_compiling", asked)  # noqa: B010


def _stand_ins() -> Callable[[torch.Tensor], torch.Tensor]:
    """Makes an empty tensor of the CPU for one of meta, the same one for the same: weights can be tied."""
    made: dict[int, torch.Tensor] = {}

    def stand_in(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in made:
            made[id(tensor)] = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
        return made[id(tensor)]

    return stand_in


def _wants_values(error: BaseException) -> bool:
    kinds = (
        fake_tensor.DataDependentOutputException,
        fake_tensor.DynamicOutputShapeException,
        fake_tensor.UnsupportedOperatorException,
    )
    # A tensor that the model keeps neither as parameter nor as buffer stays on the meta device.
    return isinstance(error, kinds) or "meta" in str(error)


class _Counted(TorchDispatchMode):
    """Counts the bytes of what operators return, as long as it lives. `before` was there already."""

    def __init__(self, before: list[Any]) -> None:
        super().__init__()
        self.most_bytes = 0
        self._now_bytes = 0
        self._seen: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet(
            tensor.untyped_storage() for tensor in before if isinstance(tensor, torch.Tensor)
        )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for tensor in pytree.tree_leaves(found):
            if isinstance(tensor, torch.Tensor):
                self._add(tensor.untyped_storage())
        return found

    def _add(self, storage: torch.UntypedStorage) -> None:
        if storage in self._seen:
            return
        self._seen.add(storage)
        held = storage.nbytes()
        self._now_bytes += held
        self.most_bytes = max(self.most_bytes, self._now_bytes)
        weakref.finalize(storage, self._free, held)

    def _free(self, held: int) -> None:
        self._now_bytes -= held
