"""A sweep: how many configurations became faster, a row a work and a column a way to compile."""

from collections import Counter

from tracekit.names import clipped, clipped_within
from tracekit.numbers import MISSING, counted
from tracekit.report.composition.overview import MOST_NOTES
from tracekit.report.document import Cell, Check, Column, Overview, Styled, Table
from tracekit.sweep.figures import CellFigures, Sweep
from tracekit.sweep.report import words as sweeping
from tracekit.sweep.report.labels import label, named_cells

#: Works and failures that find room, and characters of a work's name and of a failure.
MOST_WORKS, MOST_FAILURES, NAME, FAILURE = 14, 3, 34, 90
TONES = {"faster": "green", "slower": "red", "inconclusive": "yellow"}


def sweep_overview(sweep: Sweep) -> Overview:
    labels, notes, every = label(sweep), tuple(each.short() for each in sweep.notes), named_cells(sweep)
    failed = Counter(
        f"{way} {sweeping.OUTCOMES[cell.outcome]}: {cell.failure.message}" for _, way, cell in every if cell.failure
    )
    ways = list(dict.fromkeys(way for _, way, cell in every if cell.cell.form == "compiled"))
    rows = []
    for work in sweep.works[:MOST_WORKS]:
        by_way = {labels.way(cell.cell): cell for cell in work.cells}
        eager = sweeping.milliseconds(work.eager.median_us if work.eager else None)
        name = f"  {clipped_within(labels.of(work), NAME)}"
        rows.append((name, eager, *(_speedup(by_way.get(way)) for way in ways)))
    left = len(sweep.works) - len(rows)
    margins = sweeping.MARGIN_NOTE if any(map(sweeping.margin, sweep.cells)) else ""
    said = filter(None, (f"and {left} more" if left else "", sweeping.chance_note(sweep), margins))
    heads = (Column("Speed-up over eager", numeric=False), Column("eager ms"), *map(Column, ways))
    return Overview(
        subject=" · ".join(labels.common),
        headline=sweeping.headline(sweep),
        evidence=f"{sweeping.progress_sentence(sweep)} {sweeping.noted_sentence(sweep)}".strip(),
        notes=notes[:MOST_NOTES],
        tables=(Table("", heads, tuple(rows), "\n".join(said)),),
        checks=tuple(
            Check("!!", clipped(f"{counted(cells, 'cell')}: {why}", FAILURE))
            for why, cells in failed.most_common(MOST_FAILURES)
        ),
        hidden=max(len(notes) - MOST_NOTES, 0) + max(len(failed) - MOST_FAILURES, 0),
    )


def _speedup(cell: CellFigures | None) -> Cell:
    if cell is None:
        return MISSING
    if cell.failure is not None:
        return Styled(((sweeping.OUTCOMES[cell.outcome], "red"),))
    tone = TONES.get(cell.result or "", "")
    return Styled(((" ".join(filter(None, (sweeping.speedup_alone(cell), sweeping.margin(cell)))), tone),))
