"""What does one cell say?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tracekit.comparison.judging.break_even import extra_us, find_break_even
from tracekit.comparison.judging.quietness import find_disturbance, find_limits, other_processes
from tracekit.comparison.judging.timed import TimedForm
from tracekit.comparison.judging.verdict import judge
from tracekit.comparison.sweeping.commanding import command_of
from tracekit.model.child import ChildForm
from tracekit.model.comparison import Verdict
from tracekit.model.gpu import GpuState
from tracekit.model.note import Note
from tracekit.model.run import CompileFacts, FormName, FormResult
from tracekit.model.sweep import CellResult, CellRun
from tracekit.model.sweep_figures import CallFigures, CellFigures, Conditions
from tracekit.model.timing import BreakEven, FormTiming, ProcessTimes
from tracekit.statistics.interval import FEWEST, Interval, mean_time, median_time

#: That the forms were timed in alternation; which form came when is no part of the verdict.
ORDER: tuple[FormName, FormName] = ("eager", "compiled")


def read_cell(result: CellResult, calls: int) -> CellFigures:
    """The cell's figures; `calls` is the number of calls that a cold start is judged by."""
    run = result.run
    eager, compiled = (run.form(name) if run else None for name in ORDER)
    verdict, break_even, notes = _judged(eager, compiled)
    # Of a cell that failed before its compiled form was warm there is nothing that is its own.
    last = compiled if result.cell.form == "compiled" else eager
    facts = compiled.compilation if compiled else None
    return CellFigures(
        cell=result.cell,
        outcome=result.outcome,
        failure=result.failure,
        started=result.started,
        seconds=result.seconds,
        settings=run.settings if run else None,
        eager=read_calls(eager, alone=result.cell.form == "eager"),
        compiled=read_calls(compiled, alone=True),
        verdict=verdict,
        compile_seconds=facts.seconds if facts else None,
        graphs=facts.graphs if facts else None,
        graph_breaks=facts.graph_breaks if facts else None,
        during_timing=_during_timing(run),
        cache_hits=facts.cache_hits if facts else None,
        cache_was_empty=facts.cache_was_empty if facts else None,
        first_call_us=last.warmup_us[0] if last else None,
        soon_us=until_done_us(last, calls) if last and last.times else None,
        spared_us=_spared_us(eager) if compiled else None,
        load_seconds=run.load_seconds if run else None,
        size_reason=run.size_reason if run else None,
        break_even=break_even,
        conditions=_conditions(last.gpu_state if last else None, result.host_load),
        notes=(*notes, *_of_cache(facts)),
        command=command_of(result, result.cell.form),
    )


def _spared_us(eager: ChildForm | None) -> float | None:
    """What the eager form's calls until quiet took longer than steady ones. A part of it, nobody knows how much, any
    form that comes first in a process pays."""
    if eager is None or eager.times is None:
        return None
    return max(0.0, extra_us(eager.warmup_us, float(np.median(eager.times.wall_us))))


def _of_cache(facts: CompileFacts | None) -> tuple[Note, ...]:
    """A cell's own cache is empty, but a remote one, or one that the environment names, may not be."""
    if facts is None:
        return ()
    if facts.cache_hits:
        told = {"hits": facts.cache_hits, "graphs": facts.graphs, "cache_was_empty": facts.cache_was_empty}
        return (Note("graphs_from_cache", facts=told),)
    if facts.cache_was_empty is False:
        return (Note("cache_not_empty"),)
    return ()


def _conditions(state: GpuState | None, host_load: float | None) -> Conditions:
    samples = state.samples if state else ()
    return Conditions(
        sm_clock_mhz=state.sm_clock_mhz if state else None,
        power_w=max((each.power_w for each in samples if each.power_w is not None), default=None),
        temperature_c=max((each.temperature_c for each in samples if each.temperature_c is not None), default=None),
        limits=tuple(find_limits(state)),
        other_processes=other_processes(state) if state else None,
        host_load=host_load,
    )


def _during_timing(run: CellRun | None) -> int | None:
    timed = [form.times.during_timing for form in (run.forms if run else ()) if form.times]
    return sum(timed) if timed else None


def read_calls(form: ChildForm | None, *, alone: bool) -> CallFigures | None:
    """The figures of a form's timed calls; None where there are none. `alone`: no other form's CUDA graphs were there
    when its memory in steady calls was measured."""
    if form is None or form.times is None or not form.times.wall_us:
        return None
    wall_us, device_us = np.asarray(form.times.wall_us), form.times.device_us
    mean, median = (make(wall_us) if len(wall_us) >= FEWEST else None for make in (mean_time, median_time))
    return CallFigures(
        calls=len(wall_us),
        mean_us=float(wall_us.mean()),
        mean_ci95=ends(mean),
        median_us=float(np.median(wall_us)),
        median_ci95=ends(median),
        device_median_us=float(np.median(device_us)) if device_us else None,
        memory_bytes=form.memory.steady.reserved_bytes if alone and form.memory and form.memory.steady else None,
        warmup_memory_bytes=form.memory.warmup.reserved_bytes if form.memory else None,
    )


def ends(interval: Interval | None) -> tuple[float, float] | None:
    """Both ends of an interval; None where it has no end."""
    if interval is None or not math.isfinite(interval.high):
        return None
    return float(interval.low), float(interval.high)


def until_done_us(form: ChildForm, calls: int) -> float:
    """How long the first so many calls take: those until the form was quiet as they were, then steady ones."""
    assert form.times is not None
    more = max(0, calls - len(form.warmup_us))
    return math.fsum(form.warmup_us[:calls]) + more * float(np.median(form.times.wall_us))


def _judged(
    eager: ChildForm | None, compiled: ChildForm | None
) -> tuple[Verdict | None, BreakEven | None, tuple[Note, ...]]:
    """The verdict as any run's with both forms, and what a reader must know of it."""
    if eager is None or compiled is None or eager.times is None or compiled.times is None:
        return None, None, ()
    a, b = (TimedForm(form.name, _form_result(form, form.times)) for form in (eager, compiled) if form.times)
    verdict, notes = judge(a, b, ORDER)
    found = find_break_even(a, b, verdict)
    return verdict, found[0] if found else None, (*notes, *find_disturbance(a, b, ORDER))


def _form_result(form: ChildForm, times: ProcessTimes) -> FormResult:
    compilation = form.compilation
    return FormResult(
        name=form.name,
        warmup_us=form.warmup_us,
        wall_us=times.wall_us,
        device_us=times.device_us,
        peak_memory_bytes=None,
        # What was compiled inside timed calls is told by the timing.
        compilation=replace(compilation, during_timing=times.during_timing) if compilation else None,
        recordings=(),
        timing=FormTiming(times.stopped, None, None, times.seconds, times.controls),
        memory=form.memory,
        gpu_state=form.gpu_state,
    )
