"""Watching torch.compile at work: how often, how long, how many graphs. The only file that reads Dynamo's counters.

Callbacks (`torch._dynamo.callback`) and counters (`torch._dynamo.utils.counters`) are private to torch; their names
were the same from 2.9 to 2.15. Counters are global to the process, so only differences are used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch
from torch import nn

from tracekit.errors import TracekitError
from tracekit.model.workload import CompileTarget


@dataclass
class CompilationWatch:
    """What has been compiled since the watch began. `compilations` counts compile events: frames that Dynamo traced and
    CUDA graphs that were recorded."""

    compilations: int = 0
    #: Whether torch.compiler.reset() took the watch away, known at the end. What was compiled after is not counted.
    lost: bool = False
    #: Called as each begins, with how many of its kind there are now, and whether it is a CUDA graph that is recorded.
    on_start: Callable[[int, bool], None] | None = None
    _recordings: int = field(default=0, repr=False)
    _before: dict[str, int] = field(default_factory=lambda: read_counters(), repr=False)

    def start(self, event: Any) -> None:
        self.compilations += 1
        recording = "CUDAGRAPH" in str(getattr(event, "callback_trigger", ""))
        self._recordings += recording
        if self.on_start:
            self.on_start(self._recordings if recording else self.compilations - self._recordings, recording)

    def since_start(self, counter: str) -> int:
        """How much one of `read_counters()` has grown since the watch began."""
        return read_counters()[counter] - self._before[counter]


@contextmanager
def watch_compilation(on_start: Callable[[int, bool], None] | None = None) -> Iterator[CompilationWatch]:
    """Watches every compilation of this process until the block ends. Raises TracekitError where this torch cannot be
    watched: without it nobody knows when a form is warm."""
    try:
        from torch._dynamo.callback import callback_handler

        register, remove = callback_handler.register_start_callback, callback_handler.remove_start_callback
    except (ImportError, AttributeError):
        _refuse_torch("says when it compiles")
    watch = CompilationWatch(on_start=on_start)
    register(watch.start)
    try:
        yield watch
    finally:
        try:
            remove(watch.start)
        except ValueError:
            watch.lost = True


def _refuse_torch(what: str) -> NoReturn:
    raise TracekitError(
        f"torch {torch.__version__} {what} in no known way; tracekit knows 2.9 to 2.15: install one of those"
    ) from None


def dynamo_counters() -> Any:
    """Dynamo's counters, by group and name: what was never counted is 0. Raises TracekitError where there are none."""
    try:
        from torch._dynamo.utils import counters
    except ImportError:
        _refuse_torch("counts its graphs")
    return counters


def read_counters() -> dict[str, int]:
    """The counters tracekit reports, as they stand in this process."""
    counters = dynamo_counters()
    return {
        "graphs": int(counters["stats"]["unique_graphs"]),
        "graph_breaks": sum(counters["graph_break"].values()),
        "cache_hits": int(counters["inductor"]["fxgraph_cache_hit"]),
    }


def is_switched_off() -> bool:
    """Whether TORCH_COMPILE_DISABLE or TORCHDYNAMO_DISABLE makes torch.compile run everything eager, in silence."""
    from torch._dynamo import config

    return bool(getattr(config, "disable", False))


def compilations_wanted(targets: tuple[CompileTarget, ...]) -> int:
    """How often one function may be compiled for these targets: blocks of one class that differ in the shapes of their
    parameters share one function, and each is compiled twice at most, the second time for any size."""
    shapes: dict[type, set[tuple[torch.Size, ...]]] = defaultdict(set)
    for target in targets:
        shapes[type(target.module)].add(tuple(each.shape for each in target.module.parameters()))
    return 2 * max((len(each) for each in shapes.values()), default=0)


def room_for(most: int) -> AbstractContextManager[Any]:
    """Inside, no block of a scope is left eager for being one of many: Dynamo compiles a function eight times
    (`recompile_limit`). Where that is enough, nothing is changed."""
    from torch._dynamo import config

    if most <= config.recompile_limit:
        return nullcontext()
    patch: AbstractContextManager[Any] = config.patch(recompile_limit=most)
    return patch


def callable_of(module: nn.Module) -> Callable[..., Any]:
    """The module's call as Dynamo can begin at it. It begins at no method of torch's own modules: `nn.Sequential` would
    be compiled child by child and `nn.Linear` not at all, so that these get a frame around them, as torch.compile of a
    module gives them. `_call_impl` and what is imported here are private to torch (2.9 to 2.15).
    """
    call: Callable[..., Any] = module._call_impl
    try:
        from torch._dynamo.external_utils import wrap_inline
        from torch._dynamo.trace_rules import check
    except ImportError:
        return call
    wrapped: Callable[..., Any] = wrap_inline(call) if check(module.forward) else call
    return wrapped


def compile_errors() -> tuple[type[Exception], type[Exception]]:
    """What Dynamo raises when it cannot make one graph, and for whatever else fails while compiling. What this torch
    calls otherwise is passed on as it is."""
    from torch._dynamo import exc

    unsupported, failed = (getattr(exc, name, _NeverRaisedError) for name in ("Unsupported", "TorchDynamoException"))
    return unsupported, failed


class _NeverRaisedError(Exception):
    """Stands for an error that this torch has not."""


def recompile_limit_errors() -> tuple[type[Exception], ...]:
    """What Dynamo raises when it was to make one graph, and has compiled it as often as it may."""
    from torch._dynamo import exc

    names = ("FailOnRecompileLimitHit", "RecompileLimitExceeded")
    return tuple(getattr(exc, name) for name in names if hasattr(exc, name))
