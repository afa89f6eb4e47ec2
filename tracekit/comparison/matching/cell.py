"""What belongs together on the two sides, by position."""

from __future__ import annotations

from dataclasses import dataclass

from tracekit.model.comparison import MatchedBy


@dataclass(frozen=True, slots=True)
class Cell:
    """The activities of A and of B that do one piece of work: positions in the activities of the two sequences.

    Cells of one alignment are a partition: every position of either side is in exactly one. `where` names source lines
    or module paths, where they are known. `exact` is False where it was found by elimination, not one by one: what was
    left of both sides in one place, or what names alone tell.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    how: MatchedBy
    where: tuple[str, ...] = ()
    exact: bool = True


def check_partition(cells: tuple[Cell, ...], a_count: int, b_count: int) -> None:
    """Raises AssertionError where a position is in no cell or in two: no figure would add up."""
    for side, count, positions in (
        ("A", a_count, sorted(each for cell in cells for each in cell.a)),
        ("B", b_count, sorted(each for cell in cells for each in cell.b)),
    ):
        if positions != list(range(count)):
            raise AssertionError(f"the cells of {side} hold {len(positions)} positions, not each of {count} once")
