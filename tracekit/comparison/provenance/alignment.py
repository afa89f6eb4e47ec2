"""Which entry of a table of names is each name of a sequence? Both are in order, and equal but for accidents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher


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
    """Positions in both that are taken for the same, in order: what begins and ends alike, and long runs between."""
    begin = 0
    while begin < min(len(one), len(other)) and one[begin] == other[begin]:
        yield begin, begin
        begin += 1
    left = min(len(one), len(other)) - begin
    end = 0
    while end < left and one[-1 - end] == other[-1 - end]:
        end += 1
    middle = SequenceMatcher(None, one[begin : len(one) - end], other[begin : len(other) - end], autojunk=False)
    for block in middle.get_matching_blocks():
        for k in range(block.size):
            yield begin + block.a + k, begin + block.b + k
    for k in range(end, 0, -1):
        yield len(one) - k, len(other) - k
