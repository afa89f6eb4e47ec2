"""What does the best of a work say in one more process, which had no part in choosing it?

The largest of many figures is largest by chance too: of eight modes that are equally fast the one that reads best reads
too high. One more process does not know which was chosen, so that what it says is not too high on average.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from tracekit.sweep.cells import CellResult
from tracekit.sweep.figures import Best, Confirmed
from tracekit.sweep.reading.cell_figures import read_cell


def confirm(best: Best, again: Sequence[CellResult]) -> Best:
    """With what the last such process of the first says, where there is one."""
    key = best.to_confirm
    last = max((each for each in again if each.cell.key == key), key=lambda each: each.started, default=None)
    if key is None or last is None:
        return best
    cell = read_cell((last,), 1)
    verdict, second = cell.verdict, best.candidates[1]
    speedup = verdict.speedup if verdict else None
    compared = speedup is not None and best.clear and second.key is not None and second.against_eager == "better"
    confirmed = Confirmed(
        outcome=last.outcome,
        failure=last.failure,
        started=last.started,
        speedup=speedup,
        ci95=verdict.ci95 if verdict else None,
        next_process95=verdict.next_process95 if verdict else None,
        eager_us=cell.eager.median_us if cell.eager else None,
        compiled_us=cell.compiled.median_us if cell.compiled else None,
        beats_eager=verdict.result == "faster" if verdict else None,
        beats_next=1 / speedup < second.value if compared and speedup else None,
    )
    return replace(best, confirmed=confirmed)
