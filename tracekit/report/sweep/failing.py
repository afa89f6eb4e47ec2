"""What cells that failed have left: the end of their traceback, what the compiler said, what was printed."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.model.sweep_figures import Sweep
from tracekit.report.comment import Detail
from tracekit.report.names import printable
from tracekit.report.sweep.labels import label
from tracekit.report.sweep.words import OUTCOMES


def last_words(sweep: Sweep) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The names of cells without times, and the lines they left; those that left none are not among them."""
    labels = label(sweep)
    return tuple(
        (f"{labels.of(work)}, {labels.way(cell)}: {OUTCOMES[cell.outcome]}", cell.failure.last_lines)
        for work in sweep.works
        for cell in work.cells
        if cell.failure and cell.failure.last_lines
    )


def last_words_markdown(sweep: Sweep) -> Iterator[Detail]:
    """The same, each folded."""
    for name, lines in last_words(sweep):
        # Four ticks: what was printed may hold three.
        text = "\n".join(printable(line).replace("````", "'''") for line in lines)
        yield Detail(name, f"````text\n{text}\n````")
