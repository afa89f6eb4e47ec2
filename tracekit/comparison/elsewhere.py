"""Did a form take as long in the other processes that a run started as in the run's own?"""

from __future__ import annotations

import math

from tracekit.comparison.apart import process_medians
from tracekit.comparison.one_process import waits_for_host
from tracekit.comparison.timed import Timed
from tracekit.model.advice import VerifiedAdvice
from tracekit.numbers import duration, percent
from tracekit.statistics.interval import Interval

#: Processes whose median calls are no farther apart than this are alike.
LEAST_APART = 0.02

HOLDS = "Ratios of calls in one process hold better than that; absolute times, and what each call saves, do not."
#: Of a form that waits for the host (docs/timing.md).
MOVES = "It waits for the host: speed-ups of such forms move from process to process too."


def find_other_speeds(side: Timed) -> tuple[str, ...]:
    """A sentence where the side's median calls differ from process to process by more than their intervals know."""
    medians = process_medians(side)
    if len(medians) < 2:
        return ()
    fastest, *_, slowest = sorted(medians, key=lambda each: each.middle)
    if not _are_apart(fastest, slowest):
        return ()
    low, high = math.exp(fastest.middle), math.exp(slowest.middle)
    told = f"{side.label} took {duration(low)} to {duration(high)} a call from process to process"
    return (f"{told}, {percent(high / low - 1, 0)} apart. {_what_holds(side)}",)


def find_other_speed_of_advice(side: Timed, verified: VerifiedAdvice) -> tuple[str, ...]:
    """The same of the eager side and the process in which advice was tried, which timed the eager form again."""
    medians = process_medians(side)[:1]
    if not medians or _are_close(medians[0], math.log(verified.eager_us)):
        return ()
    own_us = math.exp(medians[0].middle)
    low, high = sorted((own_us, verified.eager_us))
    own, other = f"{duration(own_us)} a call in the run's own process", duration(verified.eager_us)
    told = f"{side.label} took {own} and {other} in the one that tried the advice"
    return (f"{told}, {percent(high / low - 1, 0)} apart. {_what_holds(side)}",)


def _what_holds(side: Timed) -> str:
    return MOVES if waits_for_host(side) else HOLDS


def _are_apart(fast: Interval, slow: Interval) -> bool:
    return slow.low > fast.high and slow.middle - fast.middle > math.log1p(LEAST_APART)


def _are_close(own: Interval, other: float) -> bool:
    return own.low <= other <= own.high or abs(other - own.middle) <= math.log1p(LEAST_APART)
