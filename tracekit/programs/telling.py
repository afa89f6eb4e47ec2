"""What is said of a program when it is over, before its report."""

from __future__ import annotations

import math
from itertools import chain
from statistics import median

import numpy as np

from tracekit.comparison.judging.thresholds import LEAST_IN_ONE_PROCESS
from tracekit.comparison.judging.timed import TimedForm
from tracekit.comparison.judging.verdict import judge
from tracekit.measure.timing import CallTime, Timings
from tracekit.model.comparison import Result, Verdict
from tracekit.model.note import Noted
from tracekit.model.run import FormResult
from tracekit.model.timing import FormTiming
from tracekit.numbers import counted, duration, times
from tracekit.programs.course import FORMS, MOST_ALONE, Block, Found, Step, paired, ratio_logs
from tracekit.programs.session import Session
from tracekit.report.words.common import is_open, undecided
from tracekit.statements.noted import CallableAlone, CallablesNotLookedAt
from tracekit.statistics.interval import FEWEST
from tracekit.statistics.steady import mean_interval

STEP_WORDS = {
    "optimizer": "ended by an optimizer's step",
    "call": "a call of what is compiled",
    "span": "such a span",
    "function": "a call of that function",
    "marked": "ended by tracekit.step()",
}
#: So many steps that compiled, and callables, are named.
MOST_TOLD = 5


def told(session: Session, asked: str | None, *, ended_early: bool) -> list[str]:
    """Lines: what compiling took of the first steps, what was found where there is no report, and what to do. `asked`
    is what `--step` said."""
    found, compiled = session.found, session.watch.found
    if ended_early and not found.first:
        return ["the program ended before its first step: nothing was measured"]
    if not compiled:
        return ["the program compiles nothing: write model = torch.compile(model), or model.compile()"]
    names = ", ".join(f"{each.name} ({each.place})" for each in compiled[:MOST_TOLD])
    lines = [
        f"{each.name} ({each.place}): module.compile() of a container of torch.nn compiles at most its children, each"
        " by itself; write model = torch.compile(model)"
        for each in compiled
        if each.of_torch
    ]
    if all(each.by_library for each in compiled):
        return [f"only libraries compile, not the program: {names}"]
    if not any(each.calls for each in compiled):
        return [*lines, f"what is compiled was never called, or past module(...): {names}"]
    if found.off and not found.first:
        return [*lines, f"nothing was measured: {found.off}"]
    if not found.first and asked:
        return [*lines, f"no step was seen: the program has nothing that --step {asked} names; compiled are {names}"]
    if not found.first:
        return [*lines, f"no step was seen; compiled are {names}: say what a step is by --step, or tracekit.step()"]
    kind = STEP_WORDS[found.kind] if found.kind else "not known"
    late = f", {counted(len(found.late_us), 'later step')} compiled" if found.late_us else ""
    seen = "watched" if found.done and not found.blocks else "measured"
    compiling = of_compiling(found.first)
    compiling += late if compiling else ""
    lines.append(f"{counted(found.steps, 'step')} {seen}, each {kind}{compiling}{of_paying(found)}")
    if session.events and not session.events.since_start("graphs") and any(step.compilations for step in found.first):
        lines.append("torch.compile made no graph: what is compiled runs eager")
    lines += [each.long() for each in alone_noted(found)]
    if found.off:
        lines.append(f"measuring ended early: {found.off}")
    if found.no_eager:
        lines.append(f"no eager steps: {found.no_eager}")
    if found.recordings:
        return lines
    if found.no_recording:
        lines.append(f"no recording, so no report: {found.no_recording}")
    elif not found.done:
        lines.append("the program ended before all was timed and recorded, so no report: let it make more steps")
    return lines


def of_paying(found: Found) -> str:
    """`; then 1.34× faster than eager in this process: pays after about 210 steps`, where the difference is more than
    chance."""
    pairs = paired(found.blocks)
    if len(pairs) < FEWEST:
        return ""
    said, also = as_fast(pairs)
    if not said.endswith(("faster", "slower")):
        return f"; then {said}"
    eager_us, compiled_us = (median(pair[at].us for pair in pairs) for at in (0, 1))
    # What compiling calls took more than others do, less what the first eager ones did.
    cost_us = _more_than_usual([*(step.us for step in found.first), *found.late_us], compiled_us)
    cost_us -= _more_than_usual(found.first_eager_us, eager_us)
    saved_us = eager_us * (1 - math.exp(-mean_interval(ratio_logs(pairs)).middle))
    pays = f": pays after about {float(f'{cost_us / saved_us:.2g}'):,.0f} steps" if cost_us > saved_us > 0 else ""
    return f"; then {said} than eager in this process{also}{pays}"


def _more_than_usual(calls_us: list[float], usual_us: float) -> float:
    return math.fsum(calls_us) - len(calls_us) * usual_us


def timed_pairs(pairs: list[tuple[Block, Block]]) -> Timings:
    """Rounds, of which a call is a step of the block."""
    timings = Timings()
    for block in chain.from_iterable(pairs):
        timings.add(block.form, CallTime(block.us))
    return timings


def judge_pairs(pairs: list[tuple[Block, Block]]) -> tuple[Verdict, float]:
    """As the report judges, and the speed-up with what is no part of the interval."""
    timings = timed_pairs(pairs)
    timing = FormTiming("interrupted", None, None, 0.0, unsteady=timings.unsteady_rounds())
    a, b = (
        TimedForm(name, FormResult(name, (), tuple(timings.wall_us[name]), None, None, None, (), timing=timing))
        for name in FORMS
    )
    return judge(a, b, FORMS)[0], math.exp(float(np.mean(ratio_logs(pairs))))


def as_fast(pairs: list[tuple[Block, Block]]) -> tuple[str, str]:
    """`1.31× faster`, and what it is with outliers that change it; else why that cannot be said, and nothing."""
    verdict, every = judge_pairs(pairs)
    if verdict.speedup is None or verdict.ci95 is None:
        return "not enough to tell: too few rounds", ""
    changed = every if _is_changed(verdict.ci95, every) else None
    agrees = changed is None or _is_as(verdict.result, changed)
    if verdict.result == "inconclusive" and agrees:
        return undecided(verdict), ""
    if not agrees:
        without, within = times(verdict.speedup), times(every)
        return f"not enough to tell, {without} as fast without outliers and {within} with them", ""
    also = f" ({times(changed)} as fast with outliers)" if changed is not None else ""
    return f"{times(max(verdict.speedup, 1 / verdict.speedup))} {verdict.result}", also


def _is_changed(ci95: tuple[float, float], every: float) -> bool:
    return not ci95[0] / (1 + LEAST_IN_ONE_PROCESS) <= every <= ci95[1] * (1 + LEAST_IN_ONE_PROCESS)


def _is_as(result: str, every: float) -> bool:
    """Whether the speed-up says the same."""
    least = math.log1p(LEAST_IN_ONE_PROCESS)
    return result == ("inconclusive" if abs(math.log(every)) <= least else "faster" if every > 1 else "slower")


def alone_noted(found: Found) -> list[Noted]:
    """Of each of several callables what compiling it brings, and of how many nobody looked."""
    told: list[Noted] = []
    for label, pairs in [*found.alone.items()][:MOST_ALONE]:
        verdict, every = judge_pairs(pairs) if len(pairs) >= FEWEST else (Verdict("inconclusive"), 1.0)
        result: Result = "inconclusive" if verdict.result == "not_timed" else verdict.result
        ci95 = verdict.decided95 or verdict.ci95
        changed = every if ci95 and _is_changed(ci95, every) else None
        is_tie = result == "inconclusive" and not is_open(verdict)
        if changed is not None and not _is_as(result, changed):
            result, is_tie = "inconclusive", False
        told.append(CallableAlone(label, result, verdict.speedup, ci95, changed, is_tie))
    more = len(found.alone) - MOST_ALONE
    return [*told, CallablesNotLookedAt(more)] if more > 0 else told


def of_compiling(steps: list[Step]) -> str:
    """`; step 1 took 8.2 s, 8.1 s of it compiling`."""
    compiling = [(number, step) for number, step in enumerate(steps, 1) if step.compilations]
    if not compiling:
        return ""
    (number, first), *others = compiling
    more = f", {counted(len(others), 'more step')} compiled" if others else ""
    return f"; step {number} took {duration(first.us)}, {duration(first.compiling_us)} of it compiling{more}"
