"""A sweep on the terminal: a line a cell, what is best, and what failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from tracekit.model.sweep_figures import CellFigures, Sweep
from tracekit.names import printable
from tracekit.report.sweep.labels import Labels, label
from tracekit.report.sweep.spread import slight_note
from tracekit.report.sweep.words import (
    OUTCOMES,
    best_words,
    calls_to_reckon_with,
    goal_words,
    headline,
    milliseconds,
    progress_sentence,
    seconds,
    speedup,
)
from tracekit.report.words.notes import note_sentences

STYLES = {"faster": "green", "slower": "red", "inconclusive": "yellow"}
#: Beyond so many works what is best for each is for the page.
MOST_WORKS = 8
#: Each line of a work is so far to the right of its name.
INDENT = 2

SPEEDUP = "speed-up\n(95 %)"
FIGURES = ("eager\nms", "compiled\nms", SPEEDUP, "compile\ns", "even\nafter")
SPEEDUP_AT = FIGURES.index(SPEEDUP)
WHENCE = (
    "A line is one process: both medians and the speed-up over its rounds, colour by its verdict. Means, intervals and"
    " eager over all processes are in the report."
)
EVEN = "Even after so many calls at most: nothing of eager's start-up is taken off. The report has both ends."

Row = tuple[Text, ...]


def sweep_summary(sweep: Sweep) -> RenderableType:
    """Every cell, and for few works what is best for what."""
    labels = label(sweep)
    parts: list[RenderableType] = [Text(printable(headline(sweep)), "bold")]
    parts += [Text(printable(" · ".join(labels.common))), Text(progress_sentence(sweep))]
    parts += [Text(f"! {printable(each)}", "yellow") for each in note_sentences(sweep.notes)]
    parts += [Text(), *_cells(sweep, labels), Text()]
    parts += [Text(WHENCE, "dim")] if any(cell.verdict for cell in sweep.cells) else []
    parts += [Text(note, "dim")] if (note := slight_note(sweep)) else []
    parts += [Text(EVEN, "dim")] if any(cell.break_even and cell.break_even.calls for cell in sweep.cells) else []
    parts += [Text(f"{name}: {why}", "red") for name, why in _failures(sweep, labels)]
    if len(sweep.works) <= MOST_WORKS:
        parts += [Text(), *_best(sweep, labels)]
    return Group(*parts)


def _cells(sweep: Sweep, labels: Labels) -> Iterator[RenderableType]:
    """A table for each work under its name, which has the whole line; their columns stand in one line."""
    rows = {id(work): tuple(_row(cell, labels) for cell in work.cells) for work in sweep.works}
    every = [row for of_work in rows.values() for row in of_work]
    heads = ("way", *FIGURES)
    # A heading may take two lines, a figure not.
    widths = [max(*map(len, head.split("\n")), *(len(row[at].plain) for row in every)) for at, head in enumerate(heads)]
    yield _table((), widths, heads=True)
    for work in sweep.works:
        yield Text(printable(labels.of(work)), "bold")
        yield _table(rows[id(work)], widths)


def _table(rows: Sequence[Row], widths: Sequence[int], *, heads: bool = False) -> RichTable:
    """Where the terminal is narrow, names and intervals take two lines; no number is parted."""
    drawn = RichTable(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_header=heads, header_style="dim")
    way = INDENT + widths[0]
    # Columns with a width of their own never give way; these are as wide as their text.
    drawn.add_column("  way".ljust(way), overflow="fold")
    for name, width in zip(FIGURES, widths[1:], strict=True):
        if name == SPEEDUP:
            drawn.add_column(" " * (width - len("speed-up")) + name, justify="right", overflow="fold")
        else:
            drawn.add_column(name, justify="right", width=width, no_wrap=True)
    for called, *figures in rows:
        figures[SPEEDUP_AT].pad_left(widths[1 + SPEEDUP_AT] - figures[SPEEDUP_AT].cell_len)
        drawn.add_row(Text((" " * INDENT + called.plain).ljust(way)), *figures)
    return drawn


def _row(cell: CellFigures, labels: Labels) -> Row:
    style = "red" if cell.failure else STYLES.get(cell.verdict.result, "") if cell.verdict else ""
    return (
        Text(printable(labels.way(cell))),
        Text(milliseconds(cell.eager.median_us if cell.eager else None)),
        Text(milliseconds(cell.compiled.median_us if cell.compiled else None)),
        Text(speedup(cell), style),
        Text(seconds(cell.compile_seconds)),
        Text(calls_to_reckon_with(cell.break_even)),
    )


def _failures(sweep: Sweep, labels: Labels) -> Iterator[tuple[str, str]]:
    for work in sweep.works:
        for cell in work.cells:
            if cell.failure:
                why = f"{OUTCOMES[cell.outcome]}: {printable(cell.failure.message)}"
                yield printable(f"{labels.of(work)}, {labels.way(cell)}"), why


def _best(sweep: Sweep, labels: Labels) -> Iterator[Text]:
    for work in sweep.works:
        for best in work.best:
            words = f"{labels.of(work)}: {goal_words(best.goal, best.calls).lower()}: {best_words(best, labels, work)}"
            yield Text(printable(words))
            if best.clear:
                yield Text(f"  {printable(best.candidates[0].command)}", "dim")
