"""Did a form take as long in the other processes that a run started as in the run's own?"""

from __future__ import annotations

import math

from tracekit.comparison.judging.one_process import waits_for_host
from tracekit.comparison.judging.separate_runs import process_medians
from tracekit.comparison.judging.timed import Timed
from tracekit.model.advice import VerifiedAdvice
from tracekit.model.note import Note
from tracekit.statistics.interval import Interval

#: Processes whose median calls are no farther apart than this are alike.
LEAST_APART = 0.02


def find_other_speeds(side: Timed) -> tuple[Note, ...]:
    """A note where the side's median calls differ from process to process by more than their intervals know."""
    medians = process_medians(side)
    if len(medians) < 2:
        return ()
    fastest, *_, slowest = sorted(medians, key=lambda each: each.middle)
    if not _are_apart(fastest, slowest):
        return ()
    ends = {"fastest_us": math.exp(fastest.middle), "slowest_us": math.exp(slowest.middle)}
    return (Note("process_spread", subject=side.label, facts={**ends, "waits_for_host": waits_for_host(side)}),)


def find_other_speed_of_advice(side: Timed, verified: VerifiedAdvice) -> tuple[Note, ...]:
    """The same of the eager side and the process in which advice was tried, which timed the eager form again."""
    medians = process_medians(side)[:1]
    if not medians or _are_close(medians[0], math.log(verified.eager_us)):
        return ()
    ends = {"own_us": math.exp(medians[0].middle), "advised_us": verified.eager_us}
    return (Note("advice_process_spread", subject=side.label, facts={**ends, "waits_for_host": waits_for_host(side)}),)


def _are_apart(fast: Interval, slow: Interval) -> bool:
    return slow.low > fast.high and slow.middle - fast.middle > math.log1p(LEAST_APART)


def _are_close(own: Interval, other: float) -> bool:
    return own.low <= other <= own.high or abs(other - own.middle) <= math.log1p(LEAST_APART)
