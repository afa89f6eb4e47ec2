"""What is said of a program when it is over, before its report."""

from __future__ import annotations

import math
from statistics import median

import numpy as np

from tracekit.numbers import counted, duration, percent, times
from tracekit.programs.course import MOST_ALONE, Block, Found, Step, paired, ratio_logs
from tracekit.programs.session import Session
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
#: What differs by less is as fast.
SAME = 0.02


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
    lines += alone_words(found)
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
    """`; then 1.34× faster than eager: pays after about 210 steps`, where the difference is more than chance."""
    pairs = paired(found.blocks)
    if len(pairs) < FEWEST:
        return ""
    said, than, _ends = as_fast(pairs)
    if not said.endswith("faster"):
        return f"; then {said}{'' if said.endswith('them') else f' {than} eager'}"
    eager_us, compiled_us = (median(pair[at].us for pair in pairs) for at in (0, 1))
    # What compiling calls took more than others do, less what the first eager ones did.
    cost_us = _more_than_usual([*(step.us for step in found.first), *found.late_us], compiled_us)
    cost_us -= _more_than_usual(found.first_eager_us, eager_us)
    saved_us = eager_us * (1 - math.exp(-mean_interval(ratio_logs(pairs)).middle))
    pays = f": pays after about {float(f'{cost_us / saved_us:.2g}'):,.0f} steps" if cost_us > 0 < saved_us else ""
    return f"; then {said} than eager{pays}"


def _more_than_usual(calls_us: list[float], usual_us: float) -> float:
    return math.fsum(calls_us) - len(calls_us) * usual_us


def as_fast(pairs: list[tuple[Block, Block]]) -> tuple[str, str, str]:
    """`1.31× faster`, with `than` behind it and `1.28× to 1.35×`; else `no difference beyond 2 %`, or that it is not
    enough to tell: the interval is wide, or what is no part of it changes the answer."""
    found = mean_interval(ratio_logs(pairs))
    ends = f"{times(math.exp(found.low))} to {times(math.exp(found.high))}"
    # Rounds that are no part of the interval too.
    every = float(np.mean(ratio_logs(pairs)))
    if not found.low - math.log(1 + SAME) <= every <= found.high + math.log(1 + SAME):
        without, within = times(math.exp(found.middle)), times(math.exp(every))
        return f"not enough to tell, {without} as fast without outliers and {within} with them", "as", ends
    if max(abs(found.low), abs(found.high)) < math.log(1 + SAME):
        return f"no difference beyond {percent(SAME, 0)}", "to", ends
    if found.low <= 0 <= found.high or abs(found.middle) < math.log(1 + SAME):
        return f"not enough to tell, {ends} as fast", "as", ends
    if found.middle > 0:
        return f"{times(math.exp(found.middle))} faster", "than", ends
    return f"{times(math.exp(-found.middle))} slower", "than", f"{ends} as fast"


def alone_words(found: Found) -> list[str]:
    """`compiling Encoder (train.py:12) makes the step 1.31× faster (1.28× to 1.35×)`, of each of several callables."""
    told = []
    for label, pairs in [*found.alone.items()][:MOST_ALONE]:
        if len(pairs) < FEWEST:
            told.append(f"compiling {label}: not told apart, too few rounds")
            continue
        said, than, ends = as_fast(pairs)
        known = f"compiling {label} makes the step {said} ({ends})"
        told.append(known if than == "than" else f"compiling {label}: {said}")
    more = len(found.alone) - MOST_ALONE
    return [*told, f"{counted(more, 'more callable')} not looked at one by one"] if more > 0 else told


def of_compiling(steps: list[Step]) -> str:
    """`; step 1 took 8.2 s, 8.1 s of it compiling`."""
    compiling = [(number, step) for number, step in enumerate(steps, 1) if step.compilations]
    if not compiling:
        return ""
    (number, first), *others = compiling
    more = f", {counted(len(others), 'more step')} compiled" if others else ""
    return f"; step {number} took {duration(first.us)}, {duration(first.compiling_us)} of it compiling{more}"
