"""How far processes of the same eager work are apart, and which changes are no larger: a mark, its note, a warning."""

from __future__ import annotations

from tracekit.model.note import Note
from tracekit.model.sweep_figures import Sweep
from tracekit.report.sweep.labels import label
from tracekit.report.words.notes.sweeps import SLIGHT

SLIGHT_NOTE = f"{SLIGHT}: a change no larger than eager of the same work differs by from process to process."
#: Eager processes of one work that are farther apart than this are worth a word.
MUCH_APART = 0.05


def slight_note(sweep: Sweep) -> str:
    """What the mark means; empty where none is shown."""
    return SLIGHT_NOTE if any(cell.within_eager_spread for cell in sweep.cells) else ""


def spread_notes(sweep: Sweep) -> tuple[Note, ...]:
    """How far eager processes are apart at most, where that is much or some change is no larger; empty where not."""
    spreads = [(work.eager.spread, work) for work in sweep.works if work.eager and work.eager.processes > 1]
    compared = [cell.within_eager_spread for cell in sweep.cells if cell.within_eager_spread is not None]
    if not spreads or not compared:
        return ()
    widest, work = max(spreads, key=lambda each: each[0])
    if widest <= MUCH_APART and not any(compared):
        return ()
    facts = {"work": label(sweep).of(work), "spread": widest, "slight": sum(compared), "compared": len(compared)}
    return (Note("eager_process_spread", facts=facts),)
