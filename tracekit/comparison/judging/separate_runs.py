"""What is the ratio of sides that were timed in different runs? Each run's calls, and its processes, by themselves."""

from __future__ import annotations

import math

import numpy as np

from tracekit.comparison.judging.compiling_calls import calls_that_count
from tracekit.comparison.judging.timed import Timed
from tracekit.model.comparison import Verdict
from tracekit.model.note import Note
from tracekit.statistics.blocks import Values
from tracekit.statistics.interval import (
    AT_ONCE,
    FEWEST,
    RESAMPLES,
    SEED,
    Interval,
    interval_of_difference,
    median_interval,
)

#: Fewer calls than this say nothing about spread.
FEWEST_CALLS = FEWEST

NOT_ALTERNATED = Note("not_alternated")


def judge_apart(a: Timed, b: Timed, ends: tuple[float, float]) -> tuple[Verdict, tuple[Note, ...]]:
    """A ratio with an interval that holds if nothing else changed, and no verdict; `ends` are the sides' medians.

    Where a run was timed in several processes, it is the ratio of the means (of logarithms) of their medians, with an
    interval that knows how they differ. Calls that compiled are left out.
    """
    calls = tuple(calls_that_count(side) for side in (a, b))
    fewest = min(map(len, calls))
    if fewest < FEWEST_CALLS:
        verdict = Verdict("inconclusive", ends[0] / ends[1], None, None, *ends, n=fewest, basis="apart")
        return verdict, (NOT_ALTERNATED, too_few_calls(fewest))
    of_a, of_b = process_medians(a), process_medians(b)
    interval = interval_of_difference(of_a, of_b)
    verdict = Verdict(
        "inconclusive",
        math.exp(interval.middle),
        (math.exp(interval.low), math.exp(interval.high)),
        max(map(halves_floor, calls)),
        *ends,
        n=min(_calls(side) for side in (a, b)),
        processes=min(len(of_a), len(of_b)),
        basis="apart",
        block=interval.block,
    )
    return verdict, (NOT_ALTERNATED,)


def too_few_calls(calls: int, repeats: int = 0) -> Note:
    """That so few calls a side give no verdict; those of `repeats` of the process do not make up for it."""
    return Note("too_few_calls", facts={"calls": calls, "needed": FEWEST_CALLS, "repeats": repeats})


def process_medians(side: Timed) -> tuple[Interval, ...]:
    """The median call of each process in which the side's form was timed, the run's own first, as logarithms of
    microseconds. Processes of fewer than five calls are left out; empty for a side that was not timed."""
    return tuple(median_interval(np.log(calls)) for calls in _processes(side))


def _processes(side: Timed) -> tuple[Values, ...]:
    timing = side.form.timing if side.form else None
    repeats = (np.asarray(each.wall_us) for each in (timing.processes if timing else ()))
    return tuple(calls for calls in (calls_that_count(side), *repeats) if len(calls) >= FEWEST_CALLS)


def _calls(side: Timed) -> int:
    return sum(map(len, _processes(side)))


def halves_floor(wall_us: Values) -> float:
    """How far a form seems to differ from itself by its odd and even calls: the 95th percentile of |ratio - 1|."""
    pairs = len(wall_us) // 2
    odd, even = wall_us[: 2 * pairs : 2], wall_us[1 : 2 * pairs : 2]
    random, ratios = np.random.default_rng(SEED), []
    at_once = max(1, AT_ONCE // pairs)
    for begin in range(0, RESAMPLES, at_once):
        picks = random.integers(0, pairs, (min(at_once, RESAMPLES - begin), pairs))
        ratios.append(np.median(odd[picks], axis=1) / np.median(even[picks], axis=1))
    return float(np.percentile(np.abs(np.concatenate(ratios) - 1), 95))
