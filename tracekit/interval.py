"""Sets of time as sorted, disjoint half-open intervals: an int64 array of shape (n, 2), nanoseconds."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Intervals = NDArray[np.int64]

#: After every moment of a trace; its negative is before.
NEVER = 2**62
EMPTY: Intervals = np.empty((0, 2), dtype=np.int64)


def union(starts: Ints, ends: Ints) -> Intervals:
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


def overlaps(some: Intervals, within: Intervals) -> tuple[Ints, Ints]:
    """Every pair of one of `some` and one of `within` that share time, by their positions, in the order of the second.
    Those of `within` may overlap each other."""
    first = np.searchsorted(some[:, 1], within[:, 0], side="right")
    counts = np.maximum(np.searchsorted(some[:, 0], within[:, 1], side="left") - first, 0)
    owner = np.repeat(np.arange(len(within), dtype=np.int64), counts)
    positions = np.arange(len(owner), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts) + first[owner]
    return positions, owner


def holes(covered: Intervals, within: Intervals) -> tuple[Intervals, Ints]:
    """The stretches that `covered` leaves free of each of `within`, and the position of the one that each is of."""
    # What is free on the whole line, then what of it lies within each.
    free_from, free_to = np.concatenate(([-NEVER], covered[:, 1])), np.concatenate((covered[:, 0], [NEVER]))
    free, owner = overlaps(np.stack((free_from, free_to), axis=1), within)
    starts, ends = np.maximum(free_from[free], within[owner, 0]), np.minimum(free_to[free], within[owner, 1])
    some = ends > starts
    return np.stack((starts, ends), axis=1)[some], owner[some]


def complement(covered: Intervals, within: Intervals) -> Intervals:
    """The time of `within` that `covered` leaves free; a hole that reaches over the edge of two is cut there."""
    return holes(covered, within)[0]


def covered_within(covered: Intervals, within: Intervals) -> Ints:
    """How much of each of `within` is covered."""
    return integral(covered.ravel(), np.tile([1, 0], len(covered)), within)


def integral(moments: Ints, counts: Ints, within: Intervals) -> Ints:
    """Count times nanoseconds, for each of the intervals: a count is that from its moment on, 0 before the first."""
    if not len(moments):
        return np.zeros(len(within), dtype=np.int64)
    steps = np.concatenate(([0], np.cumsum(counts[:-1] * np.diff(moments))))

    def until(at: Ints) -> Ints:
        last = np.searchsorted(moments, at, side="right") - 1
        return np.where(last >= 0, steps[last] + counts[last] * (at - moments[last]), 0)

    found: Ints = until(within[:, 1]) - until(within[:, 0])
    return found


def touching(starts: Ints, ends: Ints, within: Intervals) -> Bools:
    """Which of these stretches share time with any of `within`."""
    found: Bools = np.searchsorted(within[:, 1], starts, side="right") < np.searchsorted(
        within[:, 0], ends, side="left"
    )
    return found


def containing(starts: Ints, ends: Ints, moments: Ints) -> Ints:
    """The position of the stretch in which each moment lies, -1 for none. The stretches are in order, and none lies
    inside another; of two that overlap the later one counts."""
    if not len(starts):
        return np.full(len(moments), -1, dtype=np.int64)
    at = np.searchsorted(starts, moments, side="right") - 1
    return np.where((at >= 0) & (moments < ends[at]), at, -1)


def length(intervals: Intervals) -> int:
    """Their total length."""
    return int((intervals[:, 1] - intervals[:, 0]).sum())
