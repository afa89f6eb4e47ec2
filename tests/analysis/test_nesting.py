import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzzing import fuzzed

from tracekit.analysis import nesting
from tracekit.analysis.nesting import Nesting, nest
from tracekit.interval import Intervals, complement, covered_within, touching, union

Events = list[tuple[int, int]]


@st.composite
def events_in_order(draw: st.DrawFn) -> Events:
    """Events that overlap in any way, some of no length."""
    some = draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 25)), max_size=25))
    return sorted(((begin, begin + length) for begin, length in some), key=lambda event: (event[0], -event[1]))


def innermost_by_looking(events: Events) -> list[int]:
    """For each moment the event that began last of those that are open, -1 for none."""
    found = []
    for moment in range(80):
        open_ = [row for row, (begin, end) in enumerate(events) if begin <= moment < end]
        found.append(max(open_, default=-1))
    return found


def innermost(found: Nesting) -> list[int]:
    at = np.full(80, -1)
    for begin, end, row in zip(found.starts, found.ends, found.rows, strict=True):
        assert (at[begin:end] == -1).all(), "stretches must not overlap"
        at[begin:end] = row
    return at.tolist()


def columns(events: Events) -> tuple[np.ndarray, np.ndarray]:
    both = np.array(events, dtype=np.int64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


@fuzzed(60)
@given(events_in_order())
def test_both_ways_find_the_innermost_event_and_the_parent_that_was_open_when_it_began(events: Events) -> None:
    starts, ends = columns(events)
    for found in (nest(starts, ends), nesting._sweep(starts, ends, np.flatnonzero(ends > starts))):
        assert innermost(found) == innermost_by_looking(events)
        for row, (begin, end) in enumerate(events):
            around = [i for i, (b, e) in enumerate(events[:row]) if b <= begin < e]
            assert found.parents[row] == (max(around, default=-1) if end > begin else -1)


def test_only_stretches_with_an_event_that_outlasts_its_parent_are_gone_through_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    swept: list[int] = []
    real = nesting._sweep
    monkeypatch.setattr(nesting, "_sweep", lambda starts, ends, rows: swept.extend(rows) or real(starts, ends, rows))
    found = nest(*columns([(0, 9), (1, 5), (10, 20), (15, 25), (30, 40)]))
    assert (swept, found.rows.tolist()) == ([2, 3], [0, 1, 0, 2, 3, 4])


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
