"""What do the processes have in common in which a side was timed, and what may the next one say?"""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tracekit.comparison.judging import thresholds
from tracekit.comparison.judging.timed import Timed, calls_that_count
from tracekit.model.advice import VerifiedAdvice
from tracekit.model.comparison import Side, Verdict
from tracekit.model.estimate import Estimate, compare_estimates, exactly
from tracekit.model.note import Note
from tracekit.statements.notes.speeds import AdviceProcessSpread, KindOfProcess, ProcessSpread, TwoKinds
from tracekit.statistics.interval import Interval, Values, median_interval, t_quantile

#: From so many processes on their own spread says what the next one may be: of fewer Student's t makes it anything.
ENOUGH_TO_PREDICT = 4


def processes_of(side: Timed) -> tuple[Values, ...]:
    """The calls of each process in which the side's form was timed, in microseconds, the run's own first. Processes of
    fewer than five calls are left out; empty for a side that was not timed."""
    timing = side.form.timing if side.form else None
    repeats = (np.asarray(each.steady_us) for each in (timing.processes if timing else ()))
    return tuple(calls for calls in (calls_that_count(side), *repeats) if len(calls) >= thresholds.FEWEST_CALLS)


def process_medians(side: Timed) -> tuple[Interval, ...]:
    """The median call of each of these processes, as logarithms of microseconds."""
    return tuple(median_interval(np.log(calls)) for calls in processes_of(side))


def typical_call_us(side: Timed, medians: tuple[Interval, ...]) -> float:
    """The side's median call; of several processes the mean (of logarithms) of their medians."""
    if len(medians) == 1 and side.wall_us is not None:
        return side.wall_us
    return math.exp(math.fsum(each.middle for each in medians) / len(medians))


def waits_for_host(side: Timed) -> bool:
    """Whether the GPU is idle for so much of the side's call that the speed-up moves with the process. Not where nobody
    looked."""
    return side.idle_share is not None and side.idle_share >= thresholds.WAITING_SHARE


def next_process95(a: Timed, b: Timed, verdict: Verdict) -> tuple[float, float] | None:
    """Where the speed-up of one more process lies, 95 %. None without an interval, on a CPU, and of jobs of several
    ranks: nobody measured how far these differ."""
    of_ranks = any(each.form and each.form.own_wall_us for each in (a, b))
    on_cpu = any(isinstance(each, Side) and each.analysis.cpu is not None for each in (a, b))
    if of_ranks or on_cpu or verdict.ci95 is None or verdict.speedup is None or verdict.processes is None:
        return None
    shares = (a.idle_share, b.idle_share)
    return next_speedup95(verdict.speedup, verdict.ci95, verdict.processes, shares, verdict.process_range)


def next_speedup95(
    speedup: float,
    ci95: tuple[float, float],
    processes: int,
    idle_shares: Iterable[float | None],
    process_range: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """The same of figures: by how much speed-ups of earlier works differed from process to process, and never narrower
    than the interval of what was timed. Forms of which nobody knows how long the GPU waits count as waiting for the
    host."""
    waits = any(share is None or share >= thresholds.WAITING_SHARE for share in idle_shares)
    spread = thresholds.NEXT_WAITING if waits else thresholds.NEXT_BUSY
    return next_within(speedup, ci95, processes, spread, process_range)


def next_within(
    speedup: float,
    ci95: tuple[float, float],
    processes: int,
    spread: tuple[float, int],
    process_range: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """The same where logarithms of speed-ups differ by so much from process to process: a standard deviation and its
    degrees of freedom. Where four processes or more are further apart than that says of two, by their own."""
    deviation, freedom = spread
    apart = math.exp(t_quantile(freedom) * deviation * math.sqrt(1 + 1 / processes))
    low, high = process_range or (1.0, 1.0)
    if processes >= ENOUGH_TO_PREDICT and high / low > math.exp(t_quantile(freedom) * deviation * math.sqrt(2)):
        # From the interval of their mean to that of one more: t s / sqrt(k) becomes t s sqrt(1 + 1 / k).
        apart = max(apart, math.sqrt(ci95[1] / ci95[0]) ** math.sqrt(processes + 1))
    return min(speedup / apart, ci95[0]), max(speedup * apart, ci95[1])


def find_two_kinds(speedups: Sequence[float]) -> Iterator[Note]:
    """A note where the processes' speed-ups are of two kinds, two processes of each at least: the gap between them is
    far larger than what is within."""
    logs = np.sort(np.log(speedups))
    cuts = range(2, len(logs) - 1)
    if not cuts:
        return
    cut = max(cuts, key=lambda each: float(logs[each] - logs[each - 1]))
    kinds = logs[:cut], logs[cut:]
    gap = float(logs[cut] - logs[cut - 1])
    within = math.sqrt(sum(float(((each - each.mean()) ** 2).sum()) for each in kinds) / (len(logs) - 2))
    if gap > max(thresholds.KINDS_APART * within, math.log1p(thresholds.LEAST_BETWEEN_PROCESSES)):
        yield TwoKinds([KindOfProcess(math.exp(float(each.mean())), len(each)) for each in kinds])


def find_process_spread(side: Timed) -> tuple[Note, ...]:
    """A note where the side's median calls differ from process to process by more than their intervals know."""
    medians = sorted(map(_in_us, process_medians(side)), key=lambda each: each.value)
    if len(medians) < 2:
        return ()
    fastest, *_, slowest = medians
    if compare_estimates(slowest, fastest, thresholds.LEAST_BETWEEN_PROCESSES) is None:
        return ()
    return (ProcessSpread(side.label, fastest.value, slowest.value, waits_for_host(side)),)


def find_process_spread_of_advice(side: Timed, verified: VerifiedAdvice) -> tuple[Note, ...]:
    """The same of the eager side and the process in which advice was tried, which timed the eager form again."""
    own = next(map(_in_us, process_medians(side)), None)
    if own is None or compare_estimates(own, exactly(verified.eager_us), thresholds.LEAST_BETWEEN_PROCESSES) is None:
        return ()
    return (AdviceProcessSpread(side.label, own.value, verified.eager_us, waits_for_host(side)),)


def _in_us(median: Interval) -> Estimate:
    return Estimate(math.exp(median.middle), math.exp(median.low), math.exp(median.high), "calls")
