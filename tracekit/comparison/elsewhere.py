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

#: Of so many others it is told whether the run's own process stands alone.
FEWEST_OTHERS = 2

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


def find_two_kinds(side: Timed) -> tuple[str, ...]:
    """A sentence where the process that compiled stands alone beside those that found compiled code in the cache: such
    processes are of two kinds, and their average is neither's (docs/timing.md)."""
    facts = side.form.compilation if side.form else None
    medians = process_medians(side)
    if facts is None or facts.cache_hits or len(medians) <= FEWEST_OTHERS:
        return ()
    own, *others = medians
    low, high = min(each.middle for each in others), max(each.middle for each in others)
    away = max(own.middle - high, low - own.middle)
    if away <= max(high - low, math.log1p(LEAST_APART)):
        return ()
    alone = f"{duration(math.exp(own.middle))} a call in the run's own process, which compiled it"
    rest = f"{duration(math.exp(low))} to {duration(math.exp(high))} in the {len(others)} others, {_whence(side)}"
    told = f"{side.label} took {alone}, and {rest}"
    return (f"{told}: their speed-up is another, and the average of all is neither's.",)


def _whence(side: Timed) -> str:
    processes = side.form.timing.processes if side.form and side.form.timing else ()
    found = [each.cache_hits for each in processes]
    return "which had it from Inductor's cache" if all(found) else "which may have had it from Inductor's cache"


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
