"""How long do a form's timed calls take, in one process and in several?"""

import math
from collections.abc import Callable, Sequence
from statistics import geometric_mean, median

import numpy as np
from msgspec.structs import asdict

from tracekit.comparison.judging.thresholds import ENOUGH_PROCESSES, FEWEST_CALLS
from tracekit.model.child import ChildForm
from tracekit.statistics.interval import (
    RESAMPLES,
    Interval,
    Values,
    block_length,
    interval_of_processes,
    percentile_interval,
    resampled_medians,
    resampled_series,
)
from tracekit.sweep.cells import CellResult
from tracekit.sweep.figures import CallFigures, EagerPool


def read_calls(form: ChildForm | None, *, single_form: bool) -> CallFigures | None:
    """The figures of a form's timed calls; None where there are none. `single_form`: no other form's CUDA graphs were
    there when its memory in steady calls was measured."""
    if form is None or form.times is None or not form.times.wall_us:
        return None
    wall_us, device_us = np.asarray(form.times.steady_us), form.times.device_us
    mean, middle = (make(wall_us) if len(wall_us) >= FEWEST_CALLS else None for make in (mean_time, median_time))
    return CallFigures(
        calls=len(wall_us),
        mean_us=float(wall_us.mean()),
        mean_ci95=ends(mean),
        median_us=float(np.median(wall_us)),
        median_ci95=ends(middle),
        device_median_us=float(np.median(device_us)) if device_us else None,
        memory_bytes=form.memory.steady.reserved_bytes if single_form and form.memory and form.memory.steady else None,
        warmup_memory_bytes=form.memory.warmup.reserved_bytes if form.memory else None,
    )


def pool_calls(forms: Sequence[ChildForm], figures: Sequence[CallFigures]) -> CallFigures:
    """One form in several processes, each with its figures: geometric means over processes, with Student's t interval
    from three on; the middle ones of memory."""
    if len(figures) == 1:
        return figures[0]
    on_device = [each.device_median_us for each in figures if each.device_median_us is not None]
    steady_bytes = [each.memory_bytes for each in figures if each.memory_bytes is not None]
    warmup_bytes = [each.warmup_memory_bytes for each in figures if each.warmup_memory_bytes is not None]
    return CallFigures(
        calls=sum(each.calls for each in figures),
        mean_us=geometric_mean(each.mean_us for each in figures),
        mean_ci95=_interval_of_all(forms, mean_time),
        median_us=geometric_mean(each.median_us for each in figures),
        median_ci95=_interval_of_all(forms, median_time),
        device_median_us=math.fsum(on_device) / len(on_device) if on_device else None,
        memory_bytes=round(median(steady_bytes)) if steady_bytes else None,
        warmup_memory_bytes=round(median(warmup_bytes)) if warmup_bytes else None,
    )


def _interval_of_all(forms: Sequence[ChildForm], interval: Callable[[Values], Interval]) -> tuple[float, float] | None:
    """Over processes on logarithms, for no time is below 0. Of two processes Student's t is wider than anything else
    that is known of them: their extremes say more, and there is no interval."""
    walls = [np.asarray(form.times.steady_us) for form in forms if form.times]
    if min(map(len, walls)) < FEWEST_CALLS or len(walls) < ENOUGH_PROCESSES:
        return None
    within = tuple(map(interval, walls))
    logs = (Interval(math.log(each.middle), math.log(each.low), math.log(each.high), each.block) for each in within)
    pooled = interval_of_processes(tuple(logs))
    return (math.exp(pooled.low), math.exp(pooled.high)) if math.isfinite(pooled.high) else None


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
    return EagerPool(
        **asdict(pool_calls(forms, figures)),
        processes=len(forms),
        lowest_us=min(each.median_us for each in figures),
        highest_us=max(each.median_us for each in figures),
        first_call_us=median(form.warmup_us[0] for form in forms),
        soon_us=median(until_done_us(form, calls) for form in forms),
    )


def median_time(times_us: Values) -> Interval:
    """The 95 % interval of the times' median, with ends above 0: the stretching is on logarithms. Percentiles may be
    taken on any scale that keeps the order (Efron and Tibshirani, 1993, chapter 13)."""
    block = block_length(times_us)
    return _above_zero(float(np.median(times_us)), resampled_medians(times_us, block), len(times_us), block)


def mean_time(times_us: Values) -> Interval:
    """The same of the times' mean, which outliers move."""
    block = block_length(times_us)
    means = np.concatenate([picked.mean(axis=1) for picked in resampled_series(times_us, block, RESAMPLES)])
    return _above_zero(float(times_us.mean()), means, len(times_us), block)


def _above_zero(middle: float, resampled: Values, n: int, block: int) -> Interval:
    found = percentile_interval(math.log(middle), np.log(resampled), n, block)
    # Of as many values as one block holds there is no t, and no end.
    with np.errstate(over="ignore"):
        return Interval(middle, float(np.exp(found.low)), float(np.exp(found.high)), block)


def ends(interval: Interval | None) -> tuple[float, float] | None:
    """Both ends of an interval; None where it has no end."""
    if interval is None or not math.isfinite(interval.high):
        return None
    return float(interval.low), float(interval.high)


def until_done_us(form: ChildForm, calls: int) -> float:
    """How long the first so many calls take: those until the form was quiet as they were, then steady ones."""
    assert form.times is not None
    more = max(0, calls - len(form.warmup_us))
    return math.fsum(form.warmup_us[:calls]) + more * float(np.median(form.times.steady_us))
