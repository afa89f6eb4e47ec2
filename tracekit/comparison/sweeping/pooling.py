"""How fast is the eager form, by all processes that timed it, and how far do they spread?"""

import math
from collections.abc import Callable, Sequence
from statistics import geometric_mean, median

import numpy as np

from tracekit.comparison.judging.thresholds import ENOUGH_PROCESSES, FEWEST_CALLS
from tracekit.comparison.sweeping.cells import ends, read_calls, until_done_us
from tracekit.model.child import ChildForm
from tracekit.model.comparison import Verdict
from tracekit.model.estimate import compare_estimates, exactly
from tracekit.model.sweep import CellResult
from tracekit.model.sweep_figures import EagerPool
from tracekit.statistics.interval import Interval, Values, interval_of_processes, mean_time, median_time


def pool_eager(results: Sequence[CellResult], calls: int) -> EagerPool | None:
    """The eager form of cells that do the same work; None where none was timed.

    Memory in steady calls is that of processes that had the eager form alone, or nobody's. That of the warm-up and the
    start are the middle ones of all processes, for the eager form comes first in each.
    """
    forms, figures = [], []
    for result in results:
        form = result.run.form("eager") if result.run and result.outcome == "done" else None
        found = read_calls(form, single_form=result.cell.form == "eager")
        if form and found:
            forms.append(form)
            figures.append(found)
    if not forms:
        return None
    medians = [each.median_us for each in figures]
    on_device = [each.device_median_us for each in figures if each.device_median_us is not None]
    return EagerPool(
        processes=len(forms),
        calls=sum(each.calls for each in figures),
        mean_us=geometric_mean(each.mean_us for each in figures),
        mean_ci95=_interval_of_all(forms, mean_time),
        median_us=geometric_mean(medians),
        median_ci95=_interval_of_all(forms, median_time),
        lowest_us=min(medians),
        highest_us=max(medians),
        device_median_us=math.fsum(on_device) / len(on_device) if on_device else None,
        memory_bytes=_middle([each.memory_bytes for each in figures]),
        warmup_memory_bytes=_middle([each.warmup_memory_bytes for each in figures]),
        first_call_us=median(form.warmup_us[0] for form in forms),
        soon_us=median(until_done_us(form, calls) for form in forms),
    )


def is_within_spread(verdict: Verdict | None, eager: EagerPool | None) -> bool | None:
    """Whether what a cell gained or lost is no more than eager of the same work differs by from process to process.
    None where nothing was compared, or one process alone timed eager."""
    if verdict is None or verdict.speedup is None or eager is None or eager.processes < 2:
        return None
    return compare_estimates(exactly(verdict.speedup), exactly(1.0), eager.spread) is None


def _interval_of_all(forms: Sequence[ChildForm], interval: Callable[[Values], Interval]) -> tuple[float, float] | None:
    """Over processes on logarithms, for no time is below 0. Of two processes Student's t is wider than anything else
    that is known of them: their extremes say more, and there is no interval."""
    walls = [np.asarray(form.times.wall_us) for form in forms if form.times]
    if min(map(len, walls)) < FEWEST_CALLS or len(walls) == ENOUGH_PROCESSES - 1:
        return None
    within = tuple(map(interval, walls))
    if len(within) == 1:
        return ends(within[0])
    logs = (Interval(math.log(each.middle), math.log(each.low), math.log(each.high), each.block) for each in within)
    pooled = interval_of_processes(tuple(logs))
    return (math.exp(pooled.low), math.exp(pooled.high)) if math.isfinite(pooled.high) else None


def _middle(figures: Sequence[int | None]) -> int | None:
    known = [each for each in figures if each is not None]
    return round(median(known)) if known else None
