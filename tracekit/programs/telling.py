"""What is said of a program when it is over, before its report."""

from __future__ import annotations

import math
from statistics import median

import numpy as np

from tracekit.numbers import counted, duration, times
from tracekit.programs.course import Block, Found, Step, paired
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
    paid = of_paying(session.compiling_us, paired(found.blocks))
    lines.append(f"{counted(found.steps, 'step')} measured, each {kind}{of_compiling(found.first)}{paid}")
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
        lines.append(
            "the program ended before both variants were timed and recorded, so no report: let it make more steps"
        )
    return lines


def of_paying(compiling_us: float, pairs: list[tuple[Block, Block]]) -> str:
    """`; then 1.34× faster than eager: pays after about 210 steps`, where the difference is more than chance."""
    if len(pairs) < FEWEST:
        return ""
    found = mean_interval(np.log([eager.us / compiled.us for eager, compiled in pairs]))
    if found.low <= 0 <= found.high:
        return "; then no difference to eager was found"
    if found.high < 0:
        return f"; then {times(math.exp(-found.middle))} slower than eager: never pays"
    saved_us = median(eager.us for eager, _ in pairs) * (1 - math.exp(-found.middle))
    pays = f": pays after about {float(f'{compiling_us / saved_us:.2g}'):,.0f} steps" if compiling_us else ""
    return f"; then {times(math.exp(found.middle))} faster than eager{pays}"


def alone_words(found: Found) -> list[str]:
    """`compiling Encoder (train.py:12) makes the step 1.31× faster (1.28 to 1.35)`, of each of several callables."""
    told = []
    for label, pairs in found.alone.items():
        if len(pairs) < FEWEST:
            continue
        ratio = mean_interval(np.log([eager.us / compiled.us for eager, compiled in pairs]))
        low, high = math.exp(ratio.low), math.exp(ratio.high)
        faster = ratio.low > 0
        if ratio.low <= 0 <= ratio.high:
            told.append(f"compiling {label}: no difference to the step was found ({low:.3g} to {high:.3g}× as fast)")
        else:
            low, high = (low, high) if faster else (1 / high, 1 / low)
            how = f"{times(math.exp(abs(ratio.middle)))} {'faster' if faster else 'slower'}"
            told.append(f"compiling {label} makes the step {how} ({low:.3g} to {high:.3g})")
    return told


def of_compiling(steps: list[Step]) -> str:
    """`; step 1 took 8.2 s, 8.1 s of it compiling`."""
    compiling = [(number, step) for number, step in enumerate(steps, 1) if step.compilations]
    if not compiling:
        return ""
    (number, first), *others = compiling
    more = f", {counted(len(others), 'more step')} compiled" if others else ""
    return f"; step {number} took {duration(first.us)}, {duration(first.compiling_us)} of it compiling{more}"
