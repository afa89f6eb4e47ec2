from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracekit.analysis.interval import Intervals, complement, covered_within, touching, union

stretches = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=8)


def disjoint(some: list[tuple[int, int]]) -> Intervals:
    starts = np.array([start for start, _ in some], dtype=np.int64)
    return union(starts, starts + np.array([length for _, length in some], dtype=np.int64))


def moments(intervals: Intervals) -> set[int]:
    return {moment for begin, end in intervals.tolist() for moment in range(begin, end)}


@given(stretches, stretches)
def test_what_is_free_within_is_what_is_there_and_not_covered(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    covered, within = disjoint(some), disjoint(others)
    free = complement(covered, within)
    assert moments(free) == moments(within) - moments(covered)
    assert (free[1:, 0] >= free[:-1, 1]).all()
    lengths = [len(moments(within[i : i + 1]) & moments(covered)) for i in range(len(within))]
    assert covered_within(covered, within).tolist() == lengths


@given(stretches, st.lists(st.tuples(st.integers(0, 45), st.integers(1, 9)), max_size=8))
def test_what_shares_a_moment_touches(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    within = disjoint(some)
    starts = np.array([start for start, _ in others], dtype=np.int64)
    ends = starts + np.array([length for _, length in others], dtype=np.int64)
    expected = [bool(set(range(start, start + length)) & moments(within)) for start, length in others]
    assert touching(starts, ends, within).tolist() == expected
