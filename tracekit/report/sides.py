"""Sides that stand beside each other in a report, each with the letter that it goes by."""

from __future__ import annotations

from string import ascii_uppercase
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tracekit.model.comparison import Comparison, Side

#: Letter and side, in the order of the columns. A side that has none beside it has no letter.
Sides: TypeAlias = "tuple[tuple[str, Side], ...]"


def with_letters(*sides: Side) -> Sides:
    """A, B, C, ...; of a single side the empty letter."""
    return tuple(zip(ascii_uppercase, sides, strict=False)) if len(sides) > 1 else (("", sides[0]),)


def both_sides(comparison: Comparison) -> Sides:
    return with_letters(comparison.a, comparison.b)


def side_name(letter: str, side: Side) -> str:
    """`B: compiled`, as columns and captions name it."""
    return f"{letter}: {side.label}" if letter else side.label
