"""The heat map: speed-ups as coloured cells of a table, so that it needs no script and can be read aloud."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tracekit.model.sweep_figures import CellFigures, Sweep
from tracekit.numbers import MISSING, times
from tracekit.report.sweep.labels import label, left_ways, ways
from tracekit.report.sweep.words import OUTCOMES, TO_RUN, both_medians
from tracekit.report.words.notes.sweeps import SLIGHT

#: A speed-up of so much, or a slowdown, has the strongest colour; text stays readable on it.
FULL = 3.0
MOST_PERCENT = 55
#: A change that a verdict calls one is to be seen, however small.
LEAST_PERCENT = 18


@dataclass(frozen=True, slots=True)
class HeatCell:
    """`tone` is gain, loss, even, failed or missing; `percent` how strong its colour is. `medians` are those of the
    cell's own process."""

    text: str
    interval: str
    medians: str
    tone: str
    percent: int


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows of works, columns of ways to compile."""

    ways: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]


NOT_THERE = HeatCell(MISSING, "", "", "missing", 0)
LEFT = HeatCell(TO_RUN, "", "", "missing", 0)
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
    return HeatMap(columns, tuple(rows))


def heat(cell: CellFigures) -> HeatCell:
    """A cell's colour: of its verdict, the stronger the larger the change; none where none was established."""
    verdict = cell.verdict
    if cell.failure is not None:
        return HeatCell(OUTCOMES[cell.outcome], "", "", "failed", 0)
    if verdict is None or verdict.speedup is None:
        return NOT_THERE
    interval = f"{verdict.ci95[0]:.3f} to {verdict.ci95[1]:.3f}" if verdict.ci95 else "no interval"
    tone = {"faster": "gain", "slower": "loss"}.get(verdict.result, "even")
    text = f"{times(verdict.speedup)}{SLIGHT if cell.within_eager_spread else ''}"
    return HeatCell(text, interval, both_medians(cell), tone, _strength(verdict.speedup, tone))


def _strength(speedup: float, tone: str) -> int:
    if tone == "even":
        return 0
    share = min(abs(math.log(speedup)) / math.log(FULL), 1.0)
    return round(LEAST_PERCENT + share * (MOST_PERCENT - LEAST_PERCENT))


def heat_key(drawn: HeatMap) -> tuple[tuple[str, str, int], ...]:
    """What the colours mean, as far as they occur: a tone, its words, and how strong its colour is drawn."""
    occur = {cell.tone for _, cells in drawn.rows for cell in cells}
    return tuple(each for each in KEY if each[0] in occur)
