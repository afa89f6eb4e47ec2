"""Sets of time as sorted, disjoint half-open intervals: an int64 array of shape (n, 2), nanoseconds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Intervals = NDArray[np.int64]

EMPTY: Intervals = np.empty((0, 2), dtype=np.int64)


def union(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Intervals:
    """The time covered by any of the given stretches, which may overlap and come in any order."""
    some = ends > starts
    starts, ends = starts[some], ends[some]
    if not len(starts):
        return EMPTY
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    # A new interval begins where nothing before reaches.
    first = np.concatenate(([True], starts[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return np.stack((starts[first], reach[last]), axis=1)


def complement(covered: Intervals, within: Intervals) -> Intervals:
    """The time of `within` that `covered` leaves free; a hole that reaches over the edge of two is cut there."""
    if not len(within):
        return EMPTY
    # What is free on the whole line, then what of it lies within each.
    free_from = np.concatenate(([within[:, 0].min()], covered[:, 1]))
    free_to = np.concatenate((covered[:, 0], [within[:, 1].max()]))
    first = np.searchsorted(free_to, within[:, 0], side="right")
    counts = np.maximum(np.searchsorted(free_from, within[:, 1], side="left") - first, 0)
    owner = np.repeat(np.arange(len(within)), counts)
    free = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + first[owner]
    starts = np.maximum(free_from[free], within[owner, 0])
    ends = np.minimum(free_to[free], within[owner, 1])
    holes: Intervals = np.stack((starts, ends), axis=1)[ends > starts]
    return holes


def covered_within(covered: Intervals, within: Intervals) -> NDArray[np.int64]:
    """How much of each of `within` is covered."""
    before = np.concatenate(([0], np.cumsum(covered[:, 1] - covered[:, 0])))

    def until(moments: NDArray[np.int64]) -> NDArray[np.int64]:
        begun = np.searchsorted(covered[:, 0], moments, side="right")
        last = np.maximum(begun - 1, 0)
        over = np.maximum(covered[last, 1] - moments, 0) if len(covered) else 0
        found: NDArray[np.int64] = before[begun] - np.where(begun > 0, over, 0)
        return found

    return until(within[:, 1]) - until(within[:, 0])


def touching(starts: NDArray[np.int64], ends: NDArray[np.int64], within: Intervals) -> NDArray[np.bool_]:
    """Which of these stretches share time with any of `within`."""
    found: NDArray[np.bool_] = np.searchsorted(within[:, 1], starts, side="right") < np.searchsorted(
        within[:, 0], ends, side="left"
    )
    return found


def length(intervals: Intervals) -> int:
    """Their total length."""
    return int((intervals[:, 1] - intervals[:, 0]).sum())
