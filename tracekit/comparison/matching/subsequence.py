"""The longest common subsequence of two long sequences that run side by side."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Pairs = list[tuple[int, int]]

#: The two sequences are looked at through windows of this length: what is further apart is not found. A window in which
#: less than a share of `TOO_FEW` is common is made longer, up to `LONGEST`.
WINDOW = 2048
LONGEST = 8192
TOO_FEW = 1 / 8


def common_subsequence(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """Positions of equal elements, increasing on both sides: as many as there can be, within a window."""
    numbers: dict[Hashable, int] = {}
    one, other = (
        np.fromiter((numbers.setdefault(each, len(numbers)) for each in side), np.int64, len(side)) for side in (a, b)
    )
    found: Pairs = []
    i = j = 0
    while i < len(one) and j < len(other):
        same = _common_prefix(one[i:], other[j:])
        found += [(i + k, j + k) for k in range(same)]
        i, j = i + same, j + same
        pairs, reach = _accepted(one[i:], other[j:])
        found += [(i + p, j + q) for p, q in pairs]
        i, j = i + reach[0], j + reach[1]
    return found


def _common_prefix(one: Ints, other: Ints) -> int:
    length = min(len(one), len(other))
    differing = np.flatnonzero(one[:length] != other[:length])
    return int(differing[0]) if len(differing) else length


def _accepted(one: Ints, other: Ints) -> tuple[Pairs, tuple[int, int]]:
    """What is common at the beginning, and how far that goes. The second half of a window is looked at again."""
    size = WINDOW
    while True:
        left, right = one[:size], other[:size]
        pairs = _whole(left, right)
        if size >= LONGEST or len(pairs) >= TOO_FEW * min(len(left), len(right)):
            break
        size *= 2
    if len(left) == len(one) and len(right) == len(other):
        return pairs, (len(one), len(other))
    near = [(p, q) for p, q in pairs if p < size // 2 and q < size // 2]
    if near:
        return near, (near[-1][0] + 1, near[-1][1] + 1)
    return [], (min(size // 2, len(one)), min(size // 2, len(other)))


def _whole(one: Ints, other: Ints) -> Pairs:
    """The textbook's table, a row at a time. `table[i, j]`: how many elements the first i and the first j share."""
    table = np.zeros((len(one) + 1, len(other) + 1), dtype=np.int16)
    for i, element in enumerate(one):
        above = table[i]
        np.maximum.accumulate(np.where(other == element, above[:-1] + 1, above[1:]), out=table[i + 1, 1:])
    pairs: Pairs = []
    i, j = len(one), len(other)
    while i and j:
        if one[i - 1] == other[j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif table[i - 1, j] >= table[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]
