"""What disturbed the timing: a GPU held back, shared, or clocked differently; forms that changed their speed?"""

from collections.abc import Iterator

import numpy as np

from tracekit.comparison.judging import thresholds
from tracekit.comparison.judging.timed import Timed
from tracekit.model.gpu import COUNTED_AS, GpuState
from tracekit.model.note import Note, distinct
from tracekit.statements.notes.gpu import ClocksDiffer, GpuShared, Throttled, ThrottledInSamples
from tracekit.statements.notes.speeds import Drifted, SpeedupByThirds, TwoSpeeds
from tracekit.statements.notes.timing import Warming
from tracekit.statistics.interval import Values
from tracekit.statistics.speeds import find_drift, find_two_speeds


def find_disturbance(a: Timed, b: Timed, called: tuple[str, str] = ("A", "B")) -> Iterator[Note]:
    """A grave note for each: held back by power or temperature, other processes on the GPU, clocks that differ.
    `called` is what the sides are called where the clocks of both are given."""
    states = [(side.label, side.form.gpu_state if side.form else None) for side in (a, b)]
    limits = [(label, limit) for label, state in states for limit in find_limits(state)]
    # Forms of one run share the counters, and mostly the limit.
    for limit in distinct(limit for _label, limit in limits):
        labels = list(dict.fromkeys(label for label, each in limits if each == limit))
        yield limit.but(sides=labels)
    others = {label: other_processes(state) for label, state in states}
    if most := max(others.values()):
        labels = [label for label, number in others.items() if number]
        yield GpuShared(labels, most)

    one, other = (state.sm_clock_mhz if state else None for _label, state in states)
    if one and other and abs(other / one - 1) > thresholds.CLOCKS_DIFFER:
        lower = a if one < other else b
        known = a.wall_us is not None and b.wall_us is not None and a.wall_us != b.wall_us
        faster = min(a, b, key=lambda side: side.wall_us or 0.0).label if known else None
        yield ClocksDiffer(list(called), [one, other], lower.label, faster)


def find_limits(state: GpuState | None) -> Iterator[Throttled | ThrottledInSamples]:
    """What held the GPU back while forms were timed, as far as that matters."""
    if state is None:
        return
    for limit, us in (state.slowed_us or {}).items():
        if state.timed_us and us > thresholds.THROTTLED_SHARE * state.timed_us:
            yield Throttled(limit, min(us / state.timed_us, 1))
    # What a counter tells exactly, samples need not tell again.
    counted = {limit for limit, us in (state.slowed_us or {}).items() if us}
    during = state.during()
    for reason in dict.fromkeys(reason for sample in during for reason in sample.slowed_by or ()):
        number = sum(reason in (sample.slowed_by or ()) for sample in during)
        if COUNTED_AS.get(reason) not in counted and number > thresholds.THROTTLED_SAMPLES * len(during):
            yield ThrottledInSamples(reason, number, len(during))


def other_processes(state: GpuState | None) -> int:
    """How many processes besides had the GPU open at most."""
    return max((sample.other_processes or 0 for sample in state.samples), default=0) if state else 0


def find_warming(*sides: Timed) -> Iterator[Note]:
    """A note for each side of whose calls those at the beginning of a process are left out, with how many of all."""
    for side in sides:
        timing = side.form.timing if side.form else None
        if side.form is None or timing is None:
            continue
        walls = [side.form.wall_us, *(each.wall_us for each in timing.processes)]
        steady = [side.form.steady_us, *(each.steady_us for each in timing.processes)]
        calls = sum(map(len, walls))
        left_out = calls - sum(map(len, steady))
        if left_out:
            yield Warming(side.label, left_out, calls)


def find_unsteady_speeds(*sides: Timed) -> Iterator[Note]:
    """A note for each side that drifted, and for each that ran at two speeds."""
    for side in sides:
        wall_us = np.asarray(side.form.steady_us if side.form else ())
        if (drift := find_drift(wall_us)) is not None:
            yield Drifted(side.label, drift)
        if (speeds := find_two_speeds(wall_us)) is not None:
            yield TwoSpeeds(side.label, speeds.fast_us, speeds.slow_us, speeds.slow_share, speeds.lasting)


def find_drift_of_ratio(a_us: Values, b_us: Values, ci95: tuple[float, float]) -> Iterator[Note]:
    """Where a form drifted in its rounds, what became of the ratio, which they are to spare; empty where none did.

    Where the first or the last third's ratio is not within the interval `ci95`, that does not know the drift. The note
    says whether B is the slower one: then it is told how many times as long B takes, as in the headline."""
    if find_drift(a_us) is None and find_drift(b_us) is None:
        return
    third, ratios = len(a_us) // 3, np.asarray(a_us / b_us)
    first, last = float(np.median(ratios[:third])), float(np.median(ratios[-third:]))
    beyond = not all(ci95[0] <= each <= ci95[1] for each in (first, last))
    yield SpeedupByThirds(first, last, beyond_ci=beyond, slower=ci95[1] < 1)
