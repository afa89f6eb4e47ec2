"""Where on the other side does a unit stand? Both sides are cut wherever all library calls before the cut are tied to
calls before it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from tracekit.comparison.matching.anchors import Tie

#: Behind every unit.
END = 2**62


@dataclass(frozen=True, slots=True)
class Segments:
    """The segment of every unit of A and of B. Odd ones hold library calls, even ones what stands between them."""

    a: tuple[int, ...]
    b: tuple[int, ...]


def cut_into_segments(ties: Sequence[Tie], a_count: int, b_count: int) -> Segments:
    """Ties in order of A."""
    blocks = _blocks(ties)
    return Segments(
        _numbers([(block[0], block[1]) for block in blocks], a_count),
        _numbers([(block[2], block[3]) for block in blocks], b_count),
    )


def _blocks(ties: Sequence[Tie]) -> list[tuple[int, int, int, int]]:
    """First and last unit on A, and on B, of ties that cross each other."""
    found: list[tuple[int, int, int, int]] = []
    begun, high = 0, (-1, -1)
    for at, ahead in enumerate(_lowest_behind(ties)):
        high = max(high[0], *ties[at].a), max(high[1], *ties[at].b)
        if high[0] < ahead[0] and high[1] < ahead[1]:
            some = ties[begun : at + 1]
            low = min(i for each in some for i in each.a), min(j for each in some for j in each.b)
            found.append((low[0], high[0], low[1], high[1]))
            begun = at + 1
    return found


def _lowest_behind(ties: Sequence[Tie]) -> list[tuple[int, int]]:
    """For each tie the first unit of A and of B in all ties behind it."""
    found = [(END, END)]
    for tie in reversed(ties[1:]):
        found.append((min(found[-1][0], *tie.a), min(found[-1][1], *tie.b)))
    return found[::-1] if ties else []


def _numbers(blocks: list[tuple[int, int]], count: int) -> tuple[int, ...]:
    last = [high for _, high in blocks]
    numbers = []
    for unit in range(count):
        at = bisect_left(last, unit)
        numbers.append(2 * at + (at < len(blocks) and unit >= blocks[at][0]))
    return tuple(numbers)
