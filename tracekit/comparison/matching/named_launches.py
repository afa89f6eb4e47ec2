"""Which entry of a table of names is each name of a sequence? Both are in order, and equal but for accidents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

#: Sequences that differ in more places are not the same work, and are not aligned where they differ.
MOST_EDITS = 600


def align(names: Sequence[str], table: Sequence[str], repeats: int = 1) -> list[int | None]:
    """For each name its place in the table, None where it has none. `names` may run through the table several times."""
    repeated = [*table] * repeats
    if [*names] == repeated:
        return [i % len(table) for i in range(len(repeated))] if table else []
    found: list[int | None] = [None] * len(names)
    for i, j in equal_pairs(names, repeated):
        found[i] = j % len(table)
    return found


def equal_pairs(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Positions in both that are taken for the same, in order: what begins and ends alike, and as much as can be of
    what lies between, unless that differs throughout."""
    begin = 0
    while begin < min(len(one), len(other)) and one[begin] == other[begin]:
        yield begin, begin
        begin += 1
    left = min(len(one), len(other)) - begin
    end = 0
    while end < left and one[-1 - end] == other[-1 - end]:
        end += 1
    middle = _fewest_edits(one[begin : len(one) - end], other[begin : len(other) - end])
    yield from ((begin + i, begin + j) for i, j in middle)
    for k in range(end, 0, -1):
        yield len(one) - k, len(other) - k


def _fewest_edits(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Equal positions under the fewest insertions and deletions (E. Myers, An O(ND) difference algorithm, 1986); none
    where it takes more than `MOST_EDITS`."""
    furthest = {1: 0}
    before: list[dict[int, int]] = []
    for edits in range(min(len(one) + len(other), MOST_EDITS) + 1):
        before.append(dict(furthest))
        for diagonal in range(-edits, edits + 1, 2):
            down = _goes_down(furthest, diagonal, edits)
            i = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            while i < len(one) and 0 <= i - diagonal < len(other) and one[i] == other[i - diagonal]:
                i += 1
            furthest[diagonal] = i
            if i >= len(one) and i - diagonal >= len(other):
                return _walk_back(before, len(one), len(other))
    return []


def _goes_down(furthest: dict[int, int], diagonal: int, edits: int) -> bool:
    """Whether the best way to a diagonal skips a name of the second sequence, not of the first."""
    return diagonal == -edits or (diagonal != edits and furthest[diagonal - 1] < furthest[diagonal + 1])


def _walk_back(before: list[dict[int, int]], i: int, j: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for edits in range(len(before) - 1, -1, -1):
        diagonal = i - j
        came_from = diagonal + 1 if _goes_down(before[edits], diagonal, edits) else diagonal - 1
        start = before[edits][came_from]
        while i > start and j > start - came_from and i > 0 and j > 0:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        i, j = start, start - came_from
    return pairs[::-1]
