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
    """The time of `within` that `covered` leaves free."""
    pieces = [_holes(covered, int(begin), int(end)) for begin, end in within]
    return np.concatenate(pieces) if pieces else EMPTY


def _holes(covered: Intervals, begin: int, end: int) -> Intervals:
    first = np.searchsorted(covered[:, 1], begin, side="right")
    last = np.searchsorted(covered[:, 0], end, side="left")
    inside = covered[first:last]
    starts = np.concatenate(([begin], inside[:, 1]))
    ends = np.concatenate((inside[:, 0], [end]))
    holes = np.stack((starts, ends), axis=1)
    return holes[holes[:, 1] > holes[:, 0]]


def length(intervals: Intervals) -> int:
    """Their total length."""
    return int((intervals[:, 1] - intervals[:, 0]).sum())
