"""A sweep in thirty lines: how many configurations became faster, a row a work and a column a way to compile."""

from collections import Counter

from tracekit.model.sweep_figures import CellFigures, Sweep
from tracekit.names import clipped, clipped_within, printable
from tracekit.numbers import MISSING, counted, times_within
from tracekit.report.composition.brief import BLANK, last_lines, more
from tracekit.report.document import Cell, Column, Line, Styled, Summary, Table
from tracekit.report.sweep import words as sweeping
from tracekit.report.sweep.labels import label, named_cells
from tracekit.report.words import short
from tracekit.report.words.notes import SLIGHT

WIDTH, NAME = 100, 44
#: Works, notes, failures that find room.
MOST_WORKS, MOST_NOTES, MOST_FAILURES = 14, 3, 3
TONES = {"faster": "green", "slower": "red", "inconclusive": "yellow"}


def verdict_line(sweep: Sweep) -> Line:
    return Line(f"  {sweeping.headline(sweep)}", "bold")


def sweep_brief(sweep: Sweep, page: str) -> Summary:
    """At most thirty lines at 100 columns; `page` is where the page lies."""
    labels = label(sweep)
    notes = short.sweep_notes(sweep.notes)
    failed = Counter(
        f"{way} {sweeping.OUTCOMES[cell.outcome]}: {cell.failure.message}"
        for _, way, cell in named_cells(sweep)
        if cell.failure
    )
    told = [
        Line(clipped(printable(f"{counted(works, 'work')}: {why}"), WIDTH - 5), "", "  !! ", "bold red")
        for why, works in failed.most_common(MOST_FAILURES)
    ]
    ways = list(dict.fromkeys(way for _, way, cell in named_cells(sweep) if cell.cell.form == "compiled"))
    rows = []
    for work in sweep.works[:MOST_WORKS]:
        by_way = {labels.way(cell.cell): cell for cell in work.cells}
        eager = sweeping.milliseconds(work.eager.median_us if work.eager else None)
        name = clipped_within(printable(labels.of(work)), NAME)
        rows.append((f"  {name}", eager, *(_speedup(by_way.get(way)) for way in ways)))
    left = len(sweep.works) - len(rows)
    heads = (Column("Speed-up over eager", numeric=False), Column("eager ms"), *map(Column, ways))
    hidden = max(len(notes) - MOST_NOTES, 0) + max(len(failed) - MOST_FAILURES, 0)
    return (
        Line(clipped_within(" · ".join(labels.common), WIDTH), "dim"),
        BLANK,
        verdict_line(sweep),
        Line(f"  {sweeping.progress_sentence(sweep)}"),
        *(Line(clipped_within(note, WIDTH - 4), "", "  ! ", "yellow") for note in notes[:MOST_NOTES]),
        BLANK,
        Table("", heads, tuple(rows), f"and {left} more" if left else ""),
        *([Line(sweeping.slight_note(sweep), "dim")] if sweeping.slight_note(sweep) else []),
        *((BLANK, *told) if told else ()),
        BLANK,
        *last_lines(f"Report {page}", more(hidden)),
    )


def _speedup(cell: CellFigures | None) -> Cell:
    if cell is None:
        return MISSING
    if cell.failure is not None:
        return Styled(((sweeping.OUTCOMES[cell.outcome], "red"),))
    verdict = cell.verdict
    if verdict is None or verdict.speedup is None:
        return MISSING
    slight = SLIGHT if cell.within_eager_spread else ""
    return Styled(((times_within(verdict.speedup, verdict.ci95) + slight, TONES.get(verdict.result, "")),))
