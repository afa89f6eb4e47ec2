"""The two ways a workload is run: eager and compiled, switched on one model in place, so that both share weights and
every caller; and calling one until it is quiet: nothing left to compile, record or allocate.

`torch.nn.Module.compile` keeps the compiled callable in an attribute, and `__call__` uses it when it is there. This is
the only file that changes it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType
from typing import Any

import torch
from msgspec import Struct

from tracekit.errors import NothingCompiledError, TracekitError
from tracekit.measure import failures
from tracekit.measure.compilation import (
    CompilationWatch,
    cache_is_empty,
    callable_of,
    check_compilers,
    compiled_backward,
    recording_options,
    room_for,
    watch_compilation,
)
from tracekit.measure.device import synchronize
from tracekit.measure.ranks import ALONE, Ranks
from tracekit.model.option import CUDA_GRAPH_MODES
from tracekit.model.progress import Progress
from tracekit.model.run import CompileFacts, FormName, Settings
from tracekit.model.workload import BuiltWorkload, CompileTarget
from tracekit.numbers import counted
from tracekit.torch_internals import COMPILED_CALL

#: CUDA graph trees run a graph eagerly, then record it, then replay it: three calls before the first steady one.
QUIET_CALLS = 2
MOST_CALLS = 16
#: So many parts are named where something is wrong with them.
NAMED = 3
#: No arguments.
EMPTY: Mapping[str, Any] = MappingProxyType({})


class Form(Struct, frozen=True):
    """One form of a workload. `call` runs it once and returns when its host code does, not the device. Calls are made
    inside `ready()`, which switches the form on: outside of what is timed, so that switching costs no form anything.
    `uncalled()` names what of the scope no call has come to yet."""

    name: FormName
    device: str
    call: Callable[[], object]
    ready: Callable[[], AbstractContextManager[None]] = nullcontext
    uncalled: Callable[[], tuple[str, ...]] = tuple


def eager_form(workload: BuiltWorkload) -> Form:
    """The workload as it was built."""
    return Form("eager", workload.settings.device, workload.call)


def compiled_form(workload: BuiltWorkload, instead: Mapping[str, Any] = EMPTY) -> Form:
    """The workload with its targets under torch.compile; nothing is compiled until it is first called, and what was
    compiled before is forgotten. `instead` are arguments of torch.compile in place of those of the settings. Raises
    TracekitError when this machine cannot compile."""
    settings = workload.settings
    check_compilers(settings.device)
    torch.compiler.reset()
    options = {**compile_options(settings), **instead}
    switches = tuple(Switch(target, options) for target in workload.targets)
    room = room_for(workload.targets)
    backward = compiled_backward(settings, options)

    @contextmanager
    def ready() -> Iterator[None]:
        with switched_on(switches), room(), backward(), failures.explained(settings):
            yield

    def uncalled() -> tuple[str, ...]:
        return tuple(switch.target.component for switch in switches if not switch.entered)

    return Form("compiled", settings.device, marked(workload.call, settings.mode), ready, uncalled)


#: What makes the form of each name.
MAKERS: dict[FormName, Callable[[BuiltWorkload], Form]] = {"eager": eager_form, "compiled": compiled_form}


def marked(call: Callable[[], object], mode: str) -> Callable[[], object]:
    """One call is one iteration: CUDA graphs may reuse the memory of the call before."""
    if mode not in CUDA_GRAPH_MODES:
        return call

    def one_step() -> object:
        torch.compiler.cudagraph_mark_step_begin()
        return call()

    return one_step


def compile_options(settings: Settings) -> dict[str, Any]:
    """The arguments of torch.compile for these settings."""
    options: dict[str, Any] = {"fullgraph": settings.fullgraph, "dynamic": settings.dynamic}
    if recording := recording_options(settings.device, settings.mode, settings.dynamic):
        return {**options, "options": recording}
    return options if settings.mode == "default" else {**options, "mode": settings.mode}


class Switch:
    """One compile target with its two callables. It starts off: eager. `entered` says whether any call has come to the
    compiled one: what nothing calls is never compiled, and torch does not say so."""

    def __init__(self, target: CompileTarget, options: dict[str, Any]) -> None:
        if not hasattr(torch.nn.Module, COMPILED_CALL):
            raise TracekitError(
                f"torch {torch.__version__} keeps compiled modules in an unknown way; install torch 2.9 to 2.15"
            )
        self.target = target
        self.entered = False
        # `forward` is called through `__call__`, other methods by their name.
        self._attribute = COMPILED_CALL if target.method == "forward" else target.method
        call = callable_of(target.module) if self._attribute == COMPILED_CALL else getattr(target.module, target.method)
        self._compiled: Callable[..., Any] = torch.compile(call, **options)

    def on(self) -> None:
        """From now on the target runs compiled."""
        # Past nn.Module.__setattr__, which is for parameters and submodules.
        compiled = self._compiled if self.entered else self._first_call
        object.__setattr__(self.target.module, self._attribute, compiled)

    def _first_call(self, *arguments: Any, **options: Any) -> Any:
        # Once: from then on nothing stands between the caller and compiled code.
        self.entered = True
        self.on()
        return self._compiled(*arguments, **options)

    def off(self) -> None:
        """From now on the target runs eager."""
        if self._attribute in self.target.module.__dict__:
            object.__delattr__(self.target.module, self._attribute)


@contextmanager
def switched_on(switches: tuple[Switch, ...]) -> Iterator[None]:
    """The targets run compiled inside the block and eager after it, whatever happens."""
    for switch in switches:
        switch.on()
    try:
        yield
    finally:
        for switch in switches:
            switch.off()


class WarmUp(Struct, frozen=True):
    """How a form became quiet: the wall time of each call, and what was compiled (None for the eager form)."""

    wall_us: tuple[float, ...]
    compilation: CompileFacts | None


def warm_up(form: Form, progress: Progress, ranks: Ranks = ALONE) -> WarmUp:
    """Calls the form, exactly as it will be measured, until two calls in a row compile nothing on any rank. Raises
    TracekitError if it still compiles after sixteen calls, or if a call makes torch forget what is compiled;
    NothingCompiledError if none compiles anything."""
    progress.phase("eager warm-up" if form.name == "eager" else "compiling")
    walls: list[float] = []
    compiling_us, quiet, empty = 0.0, 0, cache_is_empty()

    def tell(number: int, recording: bool) -> None:
        progress.detail(f"{'CUDA graph' if recording else 'graph'} {number}")

    with form.ready(), watch_compilation(tell) as watch:
        while quiet < QUIET_CALLS:
            if len(walls) == MOST_CALLS:
                made = counted(watch.compilations, "compilation")
                raise TracekitError(
                    f"the {form.name} variant still recompiles after {MOST_CALLS} equal calls ({made}); set"
                    " TORCH_LOGS=recompiles to see which guard fails"
                )
            before = watch.compilations
            start = ranks.begin()
            form.call()
            synchronize(form.device)
            walls.append((time.perf_counter_ns() - start) / 1e3)
            if ranks.most(watch.compilations - before)[0]:
                quiet = 0
                compiling_us += walls[-1]
            else:
                quiet += 1
            made = f", {counted(watch.compilations, 'compilation')}" if watch.compilations else ""
            progress.detail(f"call {len(walls)} done{made}")
        graphs = int(ranks.most(watch.since_start("graphs"))[0]) if form.name == "compiled" else 0
        facts = _facts(form, watch, compiling_us, empty, graphs) if form.name == "compiled" else None
    if watch.lost:
        raise TracekitError(
            f"the {form.name} variant calls torch.compiler.reset() in every call, so that warm-up never ends: move that"
            " call out of the measured call"
        )
    return WarmUp(tuple(walls), facts)


def _facts(
    form: Form, watch: CompilationWatch, compiling_us: float, cache_was_empty: bool | None, graphs: int
) -> CompileFacts:
    """What was compiled here; `graphs` is how many of the rank that has most."""
    if graphs == 0:
        if uncalled := form.uncalled():
            raise TracekitError(
                f"nothing was compiled: {' and '.join(uncalled[:NAMED])} was never called; pass a module to --scope"
                " that the measured call does call"
            )
        raise NothingCompiledError("torch.compile compiled nothing: `tracekit profile` reports where and why")
    return CompileFacts(
        graphs=watch.since_start("graphs"),
        graph_breaks=watch.since_start("graph_breaks"),
        seconds=compiling_us / 1e6,
        cache_hits=watch.graphs_from_cache(),
        during_timing=0,
        cache_was_empty=cache_was_empty,
    )
