"""What cells that failed have left: the end of their traceback, what the compiler said, what was printed."""

from __future__ import annotations

from collections import defaultdict

from tracekit.model.sweep_figures import Sweep
from tracekit.report.sweep.labels import label
from tracekit.report.sweep.words import OUTCOMES


def last_words(sweep: Sweep) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The names of cells without times, and the lines they left, those that left the same lines together; cells that
    left none are not among them."""
    labels, cells = label(sweep), defaultdict[tuple[str, tuple[str, ...]], list[str]](list)
    for work in sweep.works:
        for cell in work.cells:
            if cell.failure and cell.failure.last_lines:
                how = f"{labels.way(cell)}: {OUTCOMES[cell.outcome]}"
                cells[how, cell.failure.last_lines].append(labels.of(work))
    return tuple((f"{'; '.join(works)}, {how}", lines) for (how, lines), works in cells.items())
