"""How fast is the eager form, by all processes that timed it, and how far do they spread?"""

from collections.abc import Sequence
from statistics import median

from tracekit.sweep.cells import CellResult
from tracekit.sweep.figures import EagerPool
from tracekit.sweep.reading.calls import pool_calls, read_calls, until_done_us


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
    medians, pooled = [each.median_us for each in figures], pool_calls(forms, figures)
    return EagerPool(
        processes=len(forms),
        calls=pooled.calls,
        mean_us=pooled.mean_us,
        mean_ci95=pooled.mean_ci95,
        median_us=pooled.median_us,
        median_ci95=pooled.median_ci95,
        lowest_us=min(medians),
        highest_us=max(medians),
        device_median_us=pooled.device_median_us,
        memory_bytes=pooled.memory_bytes,
        warmup_memory_bytes=pooled.warmup_memory_bytes,
        first_call_us=median(form.warmup_us[0] for form in forms),
        soon_us=median(until_done_us(form, calls) for form in forms),
    )
