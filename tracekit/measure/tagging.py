"""Which operator, module and line does each piece of eager work come from? One call of the eager form, untimed, tells.

A dispatch mode sees every operator once, below autograd and above the kernel that runs it, and opens a span of the
operator's number around it: in a recording made meanwhile everything launched in that span is the operator's. The mode
slows the host several times and never runs where time is taken.
"""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import flop_registry

from tracekit.measure.compilation import watch_compilation
from tracekit.measure.compiled_graph import dtype_name
from tracekit.measure.device import synchronize
from tracekit.measure.forms import Form
from tracekit.measure.provenance import Collection, watched_calls
from tracekit.measure.recording import STEP
from tracekit.measure.source_location import ModuleNames, user_line
from tracekit.model.progress import Progress
from tracekit.model.provenance import PROVENANCE_VERSION, CompiledSites, EagerOp, EagerOps, TensorShape
from tracekit.statements.noted import CompiledAfterTiming
from tracekit.torch_internals import TorchDispatchMode, tree_leaves

#: The span around operator number N.
TAG = "tracekit.op#{}"


@dataclass
class OperatorLog(TorchDispatchMode):
    """Every operator dispatched while this is on."""

    names: ModuleNames
    ops: list[EagerOp] = field(default_factory=list)
    _forward: dict[int, EagerOp] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        # torch's own fast span, private, or the public one, which takes ten times as long.
        fast = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)
        self._span: Callable[[str], AbstractContextManager[Any]] = fast or record_function

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        number = len(self.ops)
        # The place is taken first: an operator that dispatches others comes before them.
        self.ops.append(EagerOp(str(func), "", None, (), 0, None))
        module, line, backward = self._source(sys._getframe(1))
        with self._span(TAG.format(number)):
            out = func(*args, **kwargs)
        flops, formula = None, flop_registry.get(getattr(func, "_overloadpacket", None))
        # Some formulas do not know every form of their operator: grouped heads in attention.
        with suppress(AssertionError, TypeError, ValueError):
            flops = int(formula(*args, **kwargs, out_val=out)) if formula else None
        op = EagerOp(
            name=str(func),
            module=module,
            line=line,
            outputs=tuple(TensorShape(tuple(map(int, each.shape)), dtype_name(each)) for each in _tensors(out)),
            bytes=sum(map(_bytes, _tensors((args, kwargs, out)))),
            flops=flops,
            backward=backward,
        )
        self.ops[number] = op
        next_number = getattr(torch.autograd, "_get_sequence_nr", None)
        if not backward and torch.is_grad_enabled() and next_number is not None:
            # Autograd has numbered the operator before it came down to this mode.
            self._forward[next_number() - 1] = op
        return out

    def _source(self, frame: Any) -> tuple[str, str | None, bool]:
        """Module, line, and whether this is a backward operator: one has those of its forward operator."""
        # What autograd is running backward on this thread: None in a forward pass, or where torch does not tell.
        node = getattr(torch._C, "_current_autograd_node", lambda: None)()
        if node is None:
            return self.names.innermost(frame) or "", user_line(frame), False
        forward = self._forward.get(node._sequence_nr())
        return (forward.module, forward.line, True) if forward else ("", None, True)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [each for each in tree_leaves(values) if isinstance(each, torch.Tensor)]


def _bytes(tensor: torch.Tensor) -> int:
    """Of its elements in memory: one that is repeated by `expand` is there once."""
    if tensor.layout is not torch.strided:
        return tensor.numel() * tensor.element_size()
    sizes = (size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
    return math.prod(sizes) * tensor.element_size() if tensor.numel() else 0


def tag_eager(form: Form, names: ModuleNames, raw: Path, progress: Progress) -> EagerOps:
    """The operators of one call of the eager form. It is recorded into `raw` meanwhile (plain Chrome JSON), where the
    span `tracekit.op#N` holds what operator N launched, or on a CPU did."""
    progress.phase("tagging eager operators")
    log = OperatorLog(names)
    with form.ready(), _recorded(form.device, raw), log:
        form.call()
    return EagerOps(PROVENANCE_VERSION, str(torch.__version__), tuple(log.ops))


def trace_calls(form: Form, collection: Collection, raw: Path, progress: Progress) -> CompiledSites:
    """What was collected of the compiled form, with the order in which one call runs its graphs. That call is recorded
    into `raw`, where the span `## Call CompiledFxGraph KEY ##` holds what a graph launched, or on a CPU did."""
    progress.phase("tracing compiled launches")
    try:
        with (
            form.ready(),
            _recorded(form.device, raw),
            watched_calls(collection.names) as made,
            watch_compilation() as watch,
        ):
            form.call()
    finally:
        collection.release()
    if watch.compilations or watch.lost:
        collection.problems.append(CompiledAfterTiming())
    return collection.sites(made)


@contextmanager
def _recorded(device: str, raw: Path) -> Iterator[None]:
    """One step of host and GPU activity."""
    gpu = [ProfilerActivity.CUDA] if device != "cpu" else []
    with profile(activities=[ProfilerActivity.CPU, *gpu]) as profiler:
        synchronize(device)
        with record_function(STEP.format(0)):
            yield
            synchronize(device)
    profiler.export_chrome_trace(str(raw))
