"""What does one cell say, and which command profiles its settings by themselves?"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from statistics import median

import numpy as np
from msgspec.structs import replace

from tracekit.comparison.commands import profile_command
from tracekit.comparison.judging.break_even import extra_us, find_break_even
from tracekit.comparison.judging.disturbances import find_disturbance, find_limits, other_processes
from tracekit.comparison.judging.timed import TimedForm
from tracekit.comparison.judging.verdict import judge
from tracekit.model.child import ChildForm
from tracekit.model.comparison import Verdict
from tracekit.model.note import Note
from tracekit.model.option import option_words, words_of
from tracekit.model.run import CompileFacts, FormName, FormResult
from tracekit.model.timing import BreakEven, FormTiming
from tracekit.model.workload import Request
from tracekit.shell import joined
from tracekit.statistics.steady import mean_ratio
from tracekit.sweep.cells import CellResult
from tracekit.sweep.figures import CallFigures, CellFigures, Conditions, ProcessFigures
from tracekit.sweep.reading.calls import pool_calls, read_calls, until_done_us
from tracekit.sweep.statements import notes as statements

#: Of a request, what is no option of its own name, or says how it was timed.
NOT_OPTIONS = ("workload", "options", "seed", "iterations")
#: Options of compiled forms alone.
COMPILING = words_of("compiling")
#: That the forms were timed in alternation; which form came when is no part of the verdict.
ORDER: tuple[FormName, FormName] = ("eager", "compiled")


def read_cell(processes: Sequence[CellResult], calls: int, concurrent: Sequence[int | None] = ()) -> CellFigures:
    """The cell's figures, of all its processes on machines that are alike; `calls` is the number of calls that a cold
    start is judged by, `concurrent` how many other cells ran beside each."""
    conditions = [_conditions(each, beside) for each, beside in zip_longest(processes, concurrent)]
    first = next((at for at, each in enumerate(processes) if each.outcome == "done"), 0)
    result, run = processes[first], processes[first].run
    done = [each for each in processes if each.outcome == "done"] or [result]
    eager, compiled = ([form for each in done if each.run and (form := each.run.form(name))] for name in ORDER)
    verdict, break_even, notes = _judged(eager, compiled)
    # Nobody measured how far processes on a CPU differ, nor jobs of several ranks.
    if verdict and run and (run.settings.device == "cpu" or result.cell.request.nproc):
        verdict = replace(verdict, next_process95=None)
    # Of a cell that failed before its compiled form was warm there is nothing that is its own.
    last = compiled if result.cell.form == "compiled" else eager
    compilations = [form.compilation for form in compiled if form.compilation]
    facts = compilations[0] if compilations else None
    during_timing = [form.times.during_timing for form in (*eager, *compiled) if form.times]
    spared_us = [extra_us(form.warmup_us, float(np.median(form.times.steady_us))) for form in eager if form.times]
    lost = [each for each in processes if each is not result]
    return CellFigures(
        cell=result.cell,
        outcome=result.outcome,
        failure=result.failure,
        started=result.started,
        seconds=math.fsum(each.seconds for each in processes),
        settings=run.settings if run else None,
        eager=_calls(eager, single_form=result.cell.form == "eager"),
        compiled=_calls(compiled, single_form=True),
        verdict=verdict,
        compile_seconds=_middle(each.seconds for each in compilations),
        graphs=facts.graphs if facts else None,
        graph_breaks=facts.graph_breaks if facts else None,
        during_timing=sum(during_timing) if during_timing else None,
        cache_hits=facts.cache_hits if facts else None,
        cache_was_empty=facts.cache_was_empty if facts else None,
        first_call_us=_middle(form.warmup_us[0] for form in last),
        soon_us=_middle(until_done_us(form, calls) for form in last if form.times),
        # A part of it, nobody knows how much, whatever comes first in a process pays.
        spared_us=_middle(max(0.0, us) for us in spared_us) if compiled else None,
        load_seconds=_middle(each.run.load_seconds for each in done if each.run),
        size_reason=run.size_reason if run else None,
        break_even=break_even,
        conditions=conditions[first],
        notes=(*notes, *_find_notes(facts, lost)),
        command=command_of(result, result.cell.form),
        processes=tuple(map(_read_process, processes, conditions)),
    )


def _calls(forms: Sequence[ChildForm], *, single_form: bool) -> CallFigures | None:
    timed = [(form, found) for form in forms if (found := read_calls(form, single_form=single_form))]
    return pool_calls(*zip(*timed, strict=True)) if timed else None


def _middle(figures: Iterable[float]) -> float | None:
    """The median of the processes' figures; None of none."""
    return median(known) if (known := list(figures)) else None


def _find_notes(facts: CompileFacts | None, others: Sequence[CellResult]) -> Iterator[Note]:
    """What came from a cache, and which of several processes have no times."""
    # A cell's own cache is empty, but a remote one, or one that the environment names, may not be.
    if facts and facts.cache_hits:
        yield statements.GraphsFromCache(
            hits=facts.cache_hits, graphs=facts.graphs, cache_was_empty=facts.cache_was_empty
        )
    elif facts and facts.cache_was_empty is False:
        yield statements.CacheNotEmpty()
    for each in others:
        if each.failure:
            yield statements.ProcessWithoutTimes(
                process=each.process, outcome=each.outcome, message=each.failure.message
            )


def _read_process(result: CellResult, conditions: Conditions) -> ProcessFigures:
    forms = (result.run.form(name) if result.run else None for name in ORDER)
    eager, compiled = (np.asarray(form.times.steady_us) if form and form.times else None for form in forms)
    calls = [len(each) for each in (eager, compiled) if each is not None]
    return ProcessFigures(
        process=result.process,
        outcome=result.outcome,
        failure=result.failure,
        started=result.started,
        seconds=result.seconds,
        calls=min(calls, default=None),
        eager_us=float(np.median(eager)) if eager is not None else None,
        compiled_us=float(np.median(compiled)) if compiled is not None else None,
        speedup=mean_ratio(eager, compiled) if eager is not None and compiled is not None else None,
        conditions=conditions,
    )


def _conditions(result: CellResult, concurrent: int | None) -> Conditions:
    last = result.run.form(result.cell.form) if result.run else None
    state = last.gpu_state if last else None
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
        concurrent=concurrent,
    )


def _judged(
    eager: Sequence[ChildForm], compiled: Sequence[ChildForm]
) -> tuple[Verdict | None, BreakEven | None, tuple[Note, ...]]:
    """The verdict as any run's with both forms, whose own process is the first and which the others repeat, and what a
    reader must know of it."""
    if not eager or not compiled or any(form.times is None for form in (*eager, *compiled)):
        return None, None, ()
    a, b = map(_timed, (eager, compiled))
    verdict, notes = judge(a, b, ORDER)
    found = find_break_even(a, b, verdict)
    # What disturbed any of the processes: each kind once, as of the first process that had it.
    disturbances: list[Note] = []
    for forms in zip(eager, compiled, strict=False):
        a, b = (_timed((form,)) for form in forms)
        known = {note.code for note in disturbances}
        disturbances += [note for note in find_disturbance(a, b, ORDER) if note.code not in known]
    return verdict, found[0] if found else None, (*notes, *disturbances)


def _timed(forms: Sequence[ChildForm]) -> TimedForm:
    """A form as a run has it: timed in a process, and in others again."""
    form, times = forms[0], forms[0].times
    assert times is not None
    # What was compiled inside timed calls is told by the timing.
    facts = replace(form.compilation, during_timing=times.during_timing) if form.compilation else None
    repeats = tuple(each.times for each in forms[1:] if each.times)
    timing = FormTiming(times.stopped, None, None, times.seconds, times.controls, repeats, times.unsteady)
    result = FormResult(form.name, form.warmup_us, times.wall_us, times.device_us, None, facts, ())
    return TimedForm(form.name, replace(result, timing=timing, memory=form.memory, gpu_state=form.gpu_state))


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
    return joined([*words, *(["--", *asked.options] if asked.options else [])])
