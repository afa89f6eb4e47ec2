"""What does one cell say, and which command profiles its settings by themselves?"""

import math
import shlex

import numpy as np
from msgspec.structs import replace

from tracekit.comparison.commands import profile_command
from tracekit.comparison.judging.break_even import extra_us, find_break_even
from tracekit.comparison.judging.disturbances import find_disturbance, find_limits, other_processes
from tracekit.comparison.judging.thresholds import FEWEST_CALLS
from tracekit.comparison.judging.timed import TimedForm
from tracekit.comparison.judging.verdict import judge
from tracekit.model.child import ChildForm
from tracekit.model.comparison import Verdict
from tracekit.model.gpu import GpuState
from tracekit.model.note import Note
from tracekit.model.option import words_of
from tracekit.model.run import FormName, FormResult
from tracekit.model.sweep import CellResult
from tracekit.model.sweep_figures import CallFigures, CellFigures, Conditions
from tracekit.model.timing import BreakEven, FormTiming
from tracekit.model.workload import Request
from tracekit.statistics.interval import Interval, mean_time, median_time

#: Of a request, what is no option of its own name, or says how it was timed.
NOT_OPTIONS = ("workload", "options", "seed", "iterations")
#: Options of compiled forms alone.
COMPILING = words_of("compiling")
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
    during_timing = [form.times.during_timing for form in (run.forms if run else ()) if form.times]
    # Until the eager form was quiet. A part of it, nobody knows how much, any form that comes first in a process pays.
    spared_us = None
    if compiled and eager and eager.times:
        spared_us = max(0.0, extra_us(eager.warmup_us, float(np.median(eager.times.wall_us))))
    # A cell's own cache is empty, but a remote one, or one that the environment names, may not be.
    if facts and facts.cache_hits:
        hits = {"hits": facts.cache_hits, "graphs": facts.graphs, "cache_was_empty": facts.cache_was_empty}
        notes = (*notes, Note("graphs_from_cache", facts=hits))
    elif facts and facts.cache_was_empty is False:
        notes = (*notes, Note("cache_not_empty"))
    return CellFigures(
        cell=result.cell,
        outcome=result.outcome,
        failure=result.failure,
        started=result.started,
        seconds=result.seconds,
        settings=run.settings if run else None,
        eager=read_calls(eager, single_form=result.cell.form == "eager"),
        compiled=read_calls(compiled, single_form=True),
        verdict=verdict,
        compile_seconds=facts.seconds if facts else None,
        graphs=facts.graphs if facts else None,
        graph_breaks=facts.graph_breaks if facts else None,
        during_timing=sum(during_timing) if during_timing else None,
        cache_hits=facts.cache_hits if facts else None,
        cache_was_empty=facts.cache_was_empty if facts else None,
        first_call_us=last.warmup_us[0] if last else None,
        soon_us=until_done_us(last, calls) if last and last.times else None,
        spared_us=spared_us,
        load_seconds=run.load_seconds if run else None,
        size_reason=run.size_reason if run else None,
        break_even=break_even,
        conditions=_conditions(last.gpu_state if last else None, result),
        notes=notes,
        command=command_of(result, result.cell.form),
    )


def _conditions(state: GpuState | None, result: CellResult) -> Conditions:
    samples = state.samples if state else ()
    return Conditions(
        sm_clock_mhz=state.sm_clock_mhz if state else None,
        power_w=max((each.power_w for each in samples if each.power_w is not None), default=None),
        temperature_c=max((each.temperature_c for each in samples if each.temperature_c is not None), default=None),
        limits=tuple(find_limits(state)),
        other_processes=other_processes(state) if state else None,
        host_load=result.host_load,
        host=result.host,
        gpu_uuid=result.run.gpu_uuid if result.run else None,
    )


def read_calls(form: ChildForm | None, *, single_form: bool) -> CallFigures | None:
    """The figures of a form's timed calls; None where there are none. `single_form`: no other form's CUDA graphs were
    there when its memory in steady calls was measured."""
    if form is None or form.times is None or not form.times.wall_us:
        return None
    wall_us, device_us = np.asarray(form.times.wall_us), form.times.device_us
    mean, median = (make(wall_us) if len(wall_us) >= FEWEST_CALLS else None for make in (mean_time, median_time))
    return CallFigures(
        calls=len(wall_us),
        mean_us=float(wall_us.mean()),
        mean_ci95=ends(mean),
        median_us=float(np.median(wall_us)),
        median_ci95=ends(median),
        device_median_us=float(np.median(device_us)) if device_us else None,
        memory_bytes=form.memory.steady.reserved_bytes if single_form and form.memory and form.memory.steady else None,
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
    timed = []
    for form, times in ((eager, eager.times), (compiled, compiled.times)):
        # What was compiled inside timed calls is told by the timing.
        facts = replace(form.compilation, during_timing=times.during_timing) if form.compilation else None
        timing = FormTiming(times.stopped, None, None, times.seconds, times.controls)
        result = FormResult(form.name, form.warmup_us, times.wall_us, times.device_us, None, facts, ())
        result = replace(result, timing=timing, memory=form.memory, gpu_state=form.gpu_state)
        timed.append(TimedForm(form.name, result))
    a, b = timed
    verdict, notes = judge(a, b, ORDER)
    found = find_break_even(a, b, verdict)
    return verdict, found[0] if found else None, (*notes, *find_disturbance(a, b, ORDER))


def command_of(result: CellResult, form: FormName) -> str:
    """What profiles this form of the cell: with what it was measured at, or all that was asked where that is not
    known."""
    asked, compiled = result.cell.request, form == "compiled"
    if result.run is not None:
        more = option_words("fullgraph", asked.fullgraph) if asked.fullgraph is not None and compiled else ()
        return profile_command(result.run.settings, more=tuple(more), compiled=compiled)
    # What was not given stays the workload's and the machine's choice.
    words = ["tracekit", "profile", asked.workload, *(["--compiled"] if compiled else [])]
    default = Request(asked.workload)
    for name in (each for each in Request.__struct_fields__ if each not in NOT_OPTIONS):
        value = getattr(asked, name)
        given = name == "batch_size" or (name == "mode" and compiled) or value != getattr(default, name)
        if given and (compiled or name not in COMPILING):
            words += option_words(name, value)
    return shlex.join([*words, *(["--", *asked.options] if asked.options else [])])


def option_words(name: str, value: object) -> list[str]:
    """What sets this field of a Request on the command line: `batch_size` by `--batch-size 4`."""
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{option}" if value else f"--no-{option}"]
    return [f"--{option}", str(value)]
