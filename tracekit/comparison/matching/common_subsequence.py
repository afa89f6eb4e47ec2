"""The longest common subsequence of two long sequences that run side by side: names of kernels, or library calls."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from tracekit.interval import Ints

Pairs = list[tuple[int, int]]

#: The two sequences are looked at through windows of this length: what is further apart is not found. A window in which
#: less than a share of `TOO_FEW` is common is made longer, up to `LONGEST`.
WINDOW = 2048
LONGEST = 8192
TOO_FEW = 1 / 8
#: Two recordings that differ in more places than this are not the same work.
MOST_EDITS = 600


def common_subsequence(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """Positions of equal elements, increasing on both sides: as many as there can be, within a window."""
    numbers: dict[Hashable, int] = {}
    one, other = (
        np.fromiter((numbers.setdefault(each, len(numbers)) for each in side), np.int64, len(side)) for side in (a, b)
    )
    found: Pairs = []
    i = j = 0
    while i < len(one) and j < len(other):
        length = min(len(one) - i, len(other) - j)
        differing = np.flatnonzero(one[i : i + length] != other[j : j + length])
        same = int(differing[0]) if len(differing) else length
        found += [(i + k, j + k) for k in range(same)]
        i, j = i + same, j + same
        pairs, reach = _common_in_window(one[i:], other[j:])
        found += [(i + p, j + q) for p, q in pairs]
        i, j = i + reach[0], j + reach[1]
    return found


def _common_in_window(one: Ints, other: Ints) -> tuple[Pairs, tuple[int, int]]:
    """What is common at the beginning, and how far that goes. The second half of a window is looked at again."""
    size = WINDOW
    while True:
        left, right = one[:size], other[:size]
        pairs = _longest(left, right)
        if len(left) == len(one) and len(right) == len(other):
            return pairs, (len(one), len(other))
        if size >= LONGEST or len(pairs) >= TOO_FEW * min(len(left), len(right)):
            break
        size *= 2
    near = [(p, q) for p, q in pairs if p < size // 2 and q < size // 2]
    if near:
        return near, (near[-1][0] + 1, near[-1][1] + 1)
    return [], (min(size // 2, len(one)), min(size // 2, len(other)))


def _longest(one: Ints, other: Ints) -> Pairs:
    """The textbook's table, a row at a time, from the end. `table[i, j]`: how many elements are common behind i and j.

    Of several ways the one that pairs what comes first is taken: a window ends where something else is still to come.
    """
    others = other.tolist()
    common = {*others}
    # What stands on one side alone is passed over.
    places = [i for i, key in enumerate(one.tolist()) if key in common]
    if not places:
        return []
    keys = one[places].tolist()
    table = np.zeros((len(keys) + 1, len(others) + 1), dtype=np.int16)
    backwards = other[::-1]
    for i in range(len(keys) - 1, -1, -1):
        behind = table[i + 1, ::-1]
        best = np.where(backwards == keys[i], behind[:-1] + 1, behind[1:])
        table[i, -2::-1] = np.maximum.accumulate(best)
    pairs: Pairs = []
    i = j = 0
    while i < len(keys) and j < len(others):
        if keys[i] == others[j]:
            pairs.append((places[i], j))
            i, j = i + 1, j + 1
        elif table[i + 1, j] >= table[i, j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def same_launches(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Positions in two recordings of the same work that are taken for the same, in order: what begins and ends alike,
    and as much as can be of what lies between, unless that differs throughout."""
    shorter = min(len(one), len(other))
    begin = next((i for i in range(shorter) if one[i] != other[i]), shorter)
    end = next((i for i in range(shorter - begin) if one[-1 - i] != other[-1 - i]), shorter - begin)
    left, right = one[begin : len(one) - end], other[begin : len(other) - end]
    # No more can be common than stands on both sides in whatever order.
    most = (Counter(left) & Counter(right)).total()
    between = common_subsequence(left, right) if len(left) + len(right) - 2 * most <= MOST_EDITS else []
    if len(left) + len(right) - 2 * len(between) > MOST_EDITS:
        between = []
    yield from ((i, i) for i in range(begin))
    yield from ((begin + i, begin + j) for i, j in between)
    yield from ((len(one) - i, len(other) - i) for i in range(end, 0, -1))


def places_in_table(names: Sequence[str], table: Sequence[str], repeats: int = 1) -> list[int | None]:
    """For each name its place in the table, None where it has none. `names` may run through the table several times."""
    found: list[int | None] = [None] * len(names)
    for i, j in same_launches(names, [*table] * repeats):
        found[i] = j % len(table)
    return found
