"""Did the compiled form really run compiled code?"""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.model.comparison import Side
from tracekit.model.compilation import EagerFallback
from tracekit.model.note import Note


def find_fallbacks(*sides: Side) -> tuple[Note, ...]:
    """A note for each side that ran eager though it was to be compiled, and for each part of one that did."""
    return tuple(note for side in sides for note in _fallbacks(side))


def ran_eager(side: Side) -> bool:
    """Whether no step of the compiled form, as recorded, entered compiled code. False where that was not recorded, or
    only a part of the step is looked at."""
    if side.form is None or side.form.name != "compiled" or side.entering is None:
        return False
    if side.entering.window.kind != "steps":
        return False
    regions = side.entering.regions
    return regions is not None and regions.count == 0 and regions.graphs == 0


def _fallbacks(side: Side) -> Iterator[Note]:
    parts = side.diagnostics.fallbacks if side.diagnostics else ()
    if ran_eager(side):
        yield Note("ran_eager", "error", facts={"reason": parts[-1].reason if parts else None}, grave=True)
        return
    for part in parts:
        yield Note("part_ran_eager", subject=side.label, facts={"place": place(part), "reason": part.reason})


def place(part: EagerFallback) -> str:
    """`forward (model.py:12)`."""
    named = part.function or "a frame without a name"
    return f"{named} ({part.where})" if part.where else named
