"""The heat map: speed-ups as coloured cells of a table, so that it needs no script and can be read aloud."""

from __future__ import annotations

import math

from tracekit.model.sweep_figures import CellFigures, Sweep
from tracekit.numbers import MISSING, times
from tracekit.report.document import HeatCell, HeatMap
from tracekit.report.sweep.labels import label, left_ways, ways
from tracekit.report.sweep.tables import speedup_note
from tracekit.report.sweep.words import OUTCOMES, TO_RUN, both_medians
from tracekit.report.words.notes.sweeps import SLIGHT

#: A speed-up of so much, or a slowdown, has the strongest colour; text stays readable on it.
FULL = 3.0
MOST_PERCENT = 55
#: A change that a verdict calls one is to be seen, however small.
LEAST_PERCENT = 18


NOT_THERE = HeatCell(MISSING, "missing")
LEFT = HeatCell(TO_RUN, "missing")
KEY = (
    ("gain", "faster, a little", LEAST_PERCENT),
    ("gain", f"faster, {FULL:.0f} times or more", MOST_PERCENT),
    ("loss", "slower, a little", LEAST_PERCENT),
    ("loss", f"slower, {FULL:.0f} times or more", MOST_PERCENT),
    ("even", "inconclusive", 0),
    ("failed", "no times", 0),
)


def heat_map(sweep: Sweep) -> HeatMap | None:
    """The map; None where nothing was to be compiled."""
    labels = label(sweep)
    columns = ways(sweep, labels)
    if not columns:
        return None
    left, rows = left_ways(sweep, labels), []
    for work in sweep.works:
        found = {labels.way(cell): heat(cell) for cell in work.cells if cell.cell.form == "compiled"}
        rows.append(
            (
                labels.of(work),
                tuple(found.get(each, LEFT if (work.key, each) in left else NOT_THERE) for each in columns),
            )
        )
    occur = {cell.tone for _, cells in rows for cell in cells}
    return HeatMap(
        caption="Speed-up over eager, with its 95 % interval",
        columns=columns,
        rows=tuple(rows),
        keys=tuple(each for each in KEY if each[0] in occur),
        note=f"{speedup_note(sweep)} Coloured by the verdict, the stronger the larger the change.",
    )


def heat(cell: CellFigures) -> HeatCell:
    """A cell's colour: of its verdict, the stronger the larger the change; none where none was established."""
    verdict = cell.verdict
    if cell.failure is not None:
        return HeatCell(OUTCOMES[cell.outcome], "failed")
    if verdict is None or verdict.speedup is None:
        return NOT_THERE
    interval = f"{verdict.ci95[0]:.3f} to {verdict.ci95[1]:.3f}" if verdict.ci95 else "no interval"
    tone = {"faster": "gain", "slower": "loss"}.get(verdict.result, "even")
    text = f"{times(verdict.speedup)}{SLIGHT if cell.within_eager_spread else ''}"
    return HeatCell(text, tone, _strength(verdict.speedup, tone), (interval, f"{both_medians(cell)} ms"))


def _strength(speedup: float, tone: str) -> int:
    if tone == "even":
        return 0
    share = min(abs(math.log(speedup)) / math.log(FULL), 1.0)
    return round(LEAST_PERCENT + share * (MOST_PERCENT - LEAST_PERCENT))
