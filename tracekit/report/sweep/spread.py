"""How far processes of the same eager work are apart, and which changes are no larger: a mark, its note, a warning."""

from __future__ import annotations

from tracekit.model.sweep_figures import Sweep
from tracekit.numbers import counted, percent
from tracekit.report.sweep.labels import label

#: Stands after a speed-up that is no farther from 1 than processes of its work's eager form are from each other.
SLIGHT = "~"
SLIGHT_NOTE = f"{SLIGHT}: a change no larger than eager of the same work differs by from process to process."
#: Eager processes of one work that are farther apart than this are worth a word.
MUCH_APART = 0.05
HOW = "tracekit profile with --repeat-process 4 measures that."


def slight_note(sweep: Sweep) -> str:
    """What the mark means; empty where none is shown."""
    return SLIGHT_NOTE if any(cell.within_eager_spread for cell in sweep.cells) else ""


def spread_sentences(sweep: Sweep) -> tuple[str, ...]:
    """How far eager processes are apart at most, where that is much or some change is no larger; empty where not."""
    spreads = [(work.eager.spread, work) for work in sweep.works if work.eager and work.eager.processes > 1]
    compared = [cell.within_eager_spread for cell in sweep.cells if cell.within_eager_spread is not None]
    if not spreads or not compared:
        return ()
    widest, work = max(spreads, key=lambda each: each[0])
    if widest <= MUCH_APART and not any(compared):
        return ()
    apart = f"Eager differs by up to {percent(widest)} from process to process ({label(sweep).of(work)})"
    return (f"{apart}{_changes(sum(compared), len(compared))} {HOW}",)


def _changes(slight: int, compared: int) -> str:
    if not slight:
        all_are, their = ("the one change is", "its") if compared == 1 else (f"all {compared:,} changes are", "their")
        return f"; {all_are} larger than that of {their} own work, yet each figure may move as much."
    are, their = ("is", "its") if slight == 1 else ("are", "their")
    return (
        f"; {slight:,} of {counted(compared, 'change')} {are} no larger than that of {their} own work, marked {SLIGHT}:"
        " another process may find none, or the opposite."
    )
