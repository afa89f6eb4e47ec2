"""What do the processes have in common in which a side was timed, and what can one or two of them not tell?"""

import math
from typing import Any

import numpy as np

from tracekit.comparison.judging import thresholds
from tracekit.comparison.judging.timed import Timed, calls_that_count, compilations_while_timed
from tracekit.model.advice import VerifiedAdvice
from tracekit.model.comparison import Verdict
from tracekit.model.estimate import Estimate, compare_estimates, exactly
from tracekit.model.note import Note
from tracekit.statistics.interval import Interval, Values, median_interval


def processes_of(side: Timed) -> tuple[Values, ...]:
    """The calls of each process in which the side's form was timed, in microseconds, the run's own first. Processes of
    fewer than five calls are left out; empty for a side that was not timed."""
    timing = side.form.timing if side.form else None
    repeats = (np.asarray(each.wall_us) for each in (timing.processes if timing else ()))
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


def find_unrepeated(a: Timed, b: Timed, verdict: Verdict) -> tuple[Note, ...]:
    """What one or two processes are worth here. Where a form waits for the host that is said of what is inconclusive
    too: another process may find a change. Empty where nobody knows how long the GPU waits."""
    of_ranks = any(each.form and each.form.own_wall_us for each in (a, b))
    # Of jobs of several ranks nobody knows how far they differ.
    if verdict.processes is None or verdict.speedup is None or of_ranks:
        return ()
    if verdict.processes > 1:
        return (Note("two_processes"),) if verdict.processes < thresholds.ENOUGH_PROCESSES else ()
    change = abs(math.log(verdict.speedup))
    idler = max(a, b, key=lambda side: side.idle_share or 0.0)
    if waits_for_host(idler):
        if any(map(compilations_while_timed, (a, b))):
            return ()
        facts = {"idle_share": idler.idle_share, **_elsewhere(verdict, thresholds.WAITING_DIFFERS)}
        low, high = facts["speedups"]
        if not low <= 1 <= high and verdict.result != "inconclusive":
            return (Note("one_process_large_change", "info", idler.label, facts),)
        return (Note("one_process_waits_for_host", subject=idler.label, facts=facts),)
    if verdict.result == "inconclusive":
        return ()
    if change < math.log1p(thresholds.LARGE):
        return (Note("one_process_small_change"),)
    facts = _elsewhere(verdict, thresholds.BUSY_DIFFERS)
    return (Note("one_process_gpu_bound", "info", facts=facts),) if idler.idle_share is not None else ()


def _elsewhere(verdict: Verdict, seen_apart: float) -> dict[str, Any]:
    """What is known of other processes: by how much speed-ups of earlier works differed between them at most, and the
    speed-ups so far to both sides of this one's interval."""
    low, high = verdict.ci95 or 2 * (verdict.speedup or math.nan,)
    ends = [low / (1 + seen_apart), high * (1 + seen_apart)]
    return {"seen_apart": seen_apart, "result": verdict.result, "speedups": ends}


def find_process_spread(side: Timed) -> tuple[Note, ...]:
    """A note where the side's median calls differ from process to process by more than their intervals know."""
    medians = sorted(map(_in_us, process_medians(side)), key=lambda each: each.value)
    if len(medians) < 2:
        return ()
    fastest, *_, slowest = medians
    if compare_estimates(slowest, fastest, thresholds.LEAST_BETWEEN_PROCESSES) is None:
        return ()
    ends = {"fastest_us": fastest.value, "slowest_us": slowest.value}
    return (Note("process_spread", subject=side.label, facts={**ends, "waits_for_host": waits_for_host(side)}),)


def find_process_spread_of_advice(side: Timed, verified: VerifiedAdvice) -> tuple[Note, ...]:
    """The same of the eager side and the process in which advice was tried, which timed the eager form again."""
    own = next(map(_in_us, process_medians(side)), None)
    if own is None or compare_estimates(own, exactly(verified.eager_us), thresholds.LEAST_BETWEEN_PROCESSES) is None:
        return ()
    facts = {"own_us": own.value, "advised_us": verified.eager_us, "waits_for_host": waits_for_host(side)}
    return (Note("advice_process_spread", subject=side.label, facts=facts),)


def _in_us(median: Interval) -> Estimate:
    return Estimate(math.exp(median.middle), math.exp(median.low), math.exp(median.high), "calls")
