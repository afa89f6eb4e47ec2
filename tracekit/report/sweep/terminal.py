"""A sweep on the terminal: a line a cell, what is best, and what failed."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from tracekit.model.sweep_figures import CellFigures, Sweep, Work
from tracekit.numbers import MISSING
from tracekit.report.names import printable
from tracekit.report.sweep.labels import Labels, label
from tracekit.report.sweep.words import (
    OUTCOMES,
    best_words,
    calls_until_even,
    goal_words,
    headline,
    milliseconds,
    progress_sentence,
    seconds,
    speedup,
)

STYLES = {"faster": "green", "slower": "red", "inconclusive": "yellow"}
#: Beyond so many works what is best for each is for the page.
MOST_WORKS = 8


def sweep_summary(sweep: Sweep) -> RenderableType:
    """Every cell, and for few works what is best for what."""
    labels = label(sweep)
    parts: list[RenderableType] = [Text(printable(headline(sweep)), "bold")]
    parts += [Text(printable(" · ".join(labels.common))), Text(progress_sentence(sweep))]
    parts += [Text(f"! {printable(each)}", "yellow") for each in sweep.warnings]
    parts += [Text(), _cells(sweep, labels)]
    parts += [Text(f"{name}: {why}", "red") for name, why in _failures(sweep, labels)]
    if len(sweep.works) <= MOST_WORKS:
        parts += [Text(), *_best(sweep, labels)]
    return Group(*parts)


def _cells(sweep: Sweep, labels: Labels) -> RichTable:
    drawn = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    drawn.add_column("work")
    drawn.add_column("way")
    for name in ("mean ms", "speed-up (95 %)", "compiling s", "even after"):
        drawn.add_column(name, justify="right")
    for work in sweep.works:
        for row in _rows(work, labels):
            drawn.add_row(*row)
    return drawn


def _rows(work: Work, labels: Labels) -> Iterator[tuple[Text, ...]]:
    name = Text(printable(labels.of(work)))
    if work.eager is not None:
        yield name, Text("eager"), Text(milliseconds(work.eager.mean_us)), Text("1"), Text(MISSING), Text(MISSING)
    for cell in work.cells:
        if cell.cell.form == "compiled" or cell.failure:
            yield name, *_cell(cell, labels)


def _cell(cell: CellFigures, labels: Labels) -> tuple[Text, ...]:
    style = "red" if cell.failure else STYLES.get(cell.verdict.result, "") if cell.verdict else ""
    return (
        Text(printable(labels.way(cell))),
        Text(milliseconds(cell.compiled.mean_us if cell.compiled else None)),
        Text(speedup(cell), style),
        Text(seconds(cell.compile_seconds)),
        Text(calls_until_even(cell.break_even)),
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
            words = f"{labels.of(work)}: {goal_words(best.goal, best.calls).lower()}: {best_words(best, labels, sweep)}"
            yield Text(printable(words))
            if best.clear:
                yield Text(f"  {printable(best.candidates[0].command)}", "dim")
