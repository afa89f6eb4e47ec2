"""Did the compiled form really run compiled code?"""

from __future__ import annotations

from tracekit.model.comparison import Side
from tracekit.model.compilation import EagerFallback


def find_fallbacks(*sides: Side) -> tuple[str, ...]:
    """A sentence for each side that ran eager though it was to be compiled, and for each part of one that did."""
    return tuple(sentence for side in sides for sentence in _fallbacks(side))


def ran_eager(side: Side) -> bool:
    """Whether no step of the compiled form, as recorded, entered compiled code. False where that was not recorded, or
    only a part of the step is looked at."""
    if side.form is None or side.form.name != "compiled" or side.entering is None:
        return False
    if side.entering.window.kind != "steps":
        return False
    regions = side.entering.regions
    return regions is not None and regions.count == 0 and regions.graphs == 0


def find_whole_fallback(*sides: Side) -> tuple[str, ...]:
    """The sentence for each side that ran eager all of it."""
    return tuple(_ran_eager(side) for side in sides if ran_eager(side))


def _fallbacks(side: Side) -> tuple[str, ...]:
    if ran_eager(side):
        return (_ran_eager(side),)
    parts = side.diagnostics.fallbacks if side.diagnostics else ()
    return tuple(f"Part of the {side.label} form ran eager: {place(part)}: {part.reason}." for part in parts)


def _ran_eager(side: Side) -> str:
    parts = side.diagnostics.fallbacks if side.diagnostics else ()
    why = f" ({parts[-1].reason})" if parts else ""
    return f"The compiled form ran eager: no recorded step entered compiled code{why}. The verdict is not of it."


def place(part: EagerFallback) -> str:
    """`forward (model.py:12)`."""
    named = part.function or "a frame without a name"
    return f"{named} ({part.where})" if part.where else named
