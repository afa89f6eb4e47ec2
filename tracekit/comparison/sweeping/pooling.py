"""How fast is the eager form, by all processes that timed it?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import geometric_mean, median

import numpy as np

from tracekit.comparison.judging.one_process import ENOUGH_PROCESSES
from tracekit.comparison.sweeping.cells import ends, read_calls, until_done_us
from tracekit.model.child import ChildForm
from tracekit.model.sweep import CellResult
from tracekit.model.sweep_figures import EagerPool
from tracekit.statistics.blocks import Values
from tracekit.statistics.interval import FEWEST, Interval, interval_of_processes, mean_time, median_time


def pool_eager(results: Sequence[CellResult], calls: int) -> EagerPool | None:
    """The eager form of cells that do the same work; None where none was timed.

    Memory in steady calls is that of processes that had the eager form alone, or nobody's. That of the warm-up and the
    start are the middle ones of all processes, for the eager form comes first in each.
    """
    timed = [(result, form) for result in results if (form := _eager(result)) is not None]
    if not timed:
        return None
    alone = [form for result, form in timed if result.cell.form == "eager"]
    forms = [form for _, form in timed]
    figures = [figure for form in forms if (figure := read_calls(form, alone=form in alone)) is not None]
    medians = [each.median_us for each in figures]
    return EagerPool(
        processes=len(forms),
        calls=sum(each.calls for each in figures),
        mean_us=geometric_mean(each.mean_us for each in figures),
        mean_ci95=_together(forms, mean_time),
        median_us=geometric_mean(medians),
        median_ci95=_together(forms, median_time),
        lowest_us=min(medians),
        highest_us=max(medians),
        device_median_us=_mean([each.device_median_us for each in figures]),
        memory_bytes=_middle([each.memory_bytes for each in figures]),
        warmup_memory_bytes=_middle([each.warmup_memory_bytes for each in figures]),
        first_call_us=median(form.warmup_us[0] for form in forms),
        soon_us=median(until_done_us(form, calls) for form in forms),
    )


def _eager(result: CellResult) -> ChildForm | None:
    form = result.run.form("eager") if result.run and result.outcome == "done" else None
    return form if form and form.times and form.times.wall_us else None


def _together(forms: Sequence[ChildForm], interval: Callable[[Values], Interval]) -> tuple[float, float] | None:
    """Over processes on logarithms, for no time is below 0. Of two processes Student's t is wider than anything else
    that is known of them: their extremes say more, and there is no interval."""
    walls = [np.asarray(form.times.wall_us) for form in forms if form.times]
    if min(map(len, walls)) < FEWEST or len(walls) == ENOUGH_PROCESSES - 1:
        return None
    within = tuple(map(interval, walls))
    if len(within) == 1:
        return ends(within[0])
    together = interval_of_processes(tuple(map(_logarithm, within)))
    return (math.exp(together.low), math.exp(together.high)) if math.isfinite(together.high) else None


def _logarithm(interval: Interval) -> Interval:
    return Interval(math.log(interval.middle), math.log(interval.low), math.log(interval.high), interval.block)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _middle(figures: Sequence[int | None]) -> int | None:
    known = [each for each in figures if each is not None]
    return round(median(known)) if known else None
