"""Calling a form until it is quiet: nothing left to compile, record or allocate."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tracekit.capture.compilation import CompilationWatch, cache_is_empty, watch_compilation
from tracekit.capture.device import synchronize
from tracekit.capture.forms import Form
from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import CompileFacts
from tracekit.numbers import counted

#: CUDA graph trees run a graph eagerly, then record it, then replay it: three calls before the first steady one.
QUIET_CALLS = 2
MOST_CALLS = 16
#: So many parts are named where something is wrong with them.
NAMED = 3


@dataclass(frozen=True)
class WarmUp:
    """How a form became quiet: the wall time of each call, and what was compiled (None for the eager form)."""

    wall_us: tuple[float, ...]
    compilation: CompileFacts | None


def warm_up(form: Form, progress: Progress) -> WarmUp:
    """Calls the form, exactly as it will be measured, until two calls in a row compile nothing. Raises TracekitError if
    it still compiles after sixteen calls, or if a call makes torch forget what is compiled."""
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
                    f"the {form.name} form still compiles after {MOST_CALLS} equal calls ({made}); look for values that"
                    " change from call to call with TORCH_LOGS=recompiles"
                )
            before = watch.compilations
            start = time.perf_counter_ns()
            form.call()
            synchronize(form.device)
            walls.append((time.perf_counter_ns() - start) / 1e3)
            if watch.compilations > before:
                quiet = 0
                compiling_us += walls[-1]
            else:
                quiet += 1
            made = f", {counted(watch.compilations, 'compilation')}" if watch.compilations else ""
            progress.detail(f"call {len(walls)} done{made}")
        facts = _facts(form, watch, compiling_us, empty) if form.name == "compiled" else None
    if watch.lost:
        raise TracekitError(
            f"a call of the {form.name} form calls torch.compiler.reset(), which forgets what is compiled: nobody can"
            " tell then when it is warm; leave that out of what is called"
        )
    return WarmUp(tuple(walls), facts)


def _facts(form: Form, watch: CompilationWatch, compiling_us: float, cache_was_empty: bool | None) -> CompileFacts:
    if watch.since_start("graphs") == 0:
        if uncalled := form.uncalled():
            raise TracekitError(
                f"nothing was compiled, for no call comes to {' or '.join(uncalled[:NAMED])}:"
                " pass the part that is called, or one inside it, to --scope"
            )
        raise TracekitError("torch.compile compiled nothing here; TORCH_LOGS=dynamo says which frames it passed over")
    return CompileFacts(
        graphs=watch.since_start("graphs"),
        graph_breaks=watch.since_start("graph_breaks"),
        seconds=compiling_us / 1e6,
        cache_hits=watch.since_start("cache_hits"),
        during_timing=0,
        cache_was_empty=cache_was_empty,
    )
