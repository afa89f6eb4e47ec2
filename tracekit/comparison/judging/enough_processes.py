"""How many processes of each side would decide what a gate leaves open?"""

import math

import numpy as np

from tracekit.comparison.judging.processes import process_medians
from tracekit.model.comparison import Comparison
from tracekit.model.estimate import DoubtCode, Estimate, Reason
from tracekit.model.option import MOST_PROCESSES
from tracekit.statements.reasons import NoProcessesWouldDo, ProcessesWouldDo
from tracekit.statistics.interval import NORMAL, Interval, t_quantile

#: Doubts that no number of processes makes smaller.
OF_JOBS: DoubtCode = "other_jobs"


def find_enough_processes(
    comparison: Comparison, estimate: Estimate, limit_us: float, *, own: bool
) -> tuple[Reason, ...]:
    """The fewest processes a side whose interval would leave the limit out, were the call to stay as measured; or that
    not even the most that may be asked for would do. Nothing of sides that were timed together, of jobs of ranks, and
    where the spread of calls alone holds the limit."""
    if (comparison.verdict.basis != "apart" and not own) or any(each.code == OF_JOBS for each in estimate.doubts):
        return ()
    medians = [process_medians(side) for side in ((comparison.b,) if own else (comparison.a, comparison.b))]
    if limit_us <= 0 or estimate.value <= 0 or not all(medians):
        return ()
    apart = abs(math.log(estimate.value / limit_us))
    if apart <= math.hypot(*(min(each.half_width for each in side) for side in medians)):
        return ()
    deviation = _deviation(medians, estimate)
    for processes in range(max(map(len, medians)) + 1, MOST_PROCESSES + 1):
        if t_quantile(len(medians) * (processes - 1)) * deviation / math.sqrt(processes) < apart:
            return (ProcessesWouldDo(processes=processes),)
    return (NoProcessesWouldDo(most=MOST_PROCESSES),)


def _deviation(medians: list[tuple[Interval, ...]], estimate: Estimate) -> float:
    """The standard deviation of the difference of one process of each side, of logarithms: as the several of a side
    differ, which stand for the other side too where that has one; else as is assumed of one process."""
    several = [float(np.std([each.middle for each in side], ddof=1)) for side in medians if len(side) > 1]
    if several:
        return math.hypot(*several) * math.sqrt(len(medians) / len(several))
    return math.hypot(*(each.by for each in estimate.doubts)) / estimate.value / NORMAL
