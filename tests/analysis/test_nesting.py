from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.analysis import nesting
from tracekit.analysis.nesting import Nesting, nest

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


@settings(max_examples=400, deadline=None)
@given(events_in_order())
def test_the_innermost_event_is_the_one_that_began_last(events: Events) -> None:
    assert innermost(nest(*columns(events))) == innermost_by_looking(events)


@settings(max_examples=200, deadline=None)
@given(events_in_order())
def test_one_after_the_other_gives_the_same(events: Events) -> None:
    starts, ends = columns(events)
    swept = nesting._sweep(starts, ends, np.flatnonzero(ends > starts))
    assert innermost(swept) == innermost_by_looking(events)
    assert swept.parents.tolist() == nest(starts, ends).parents.tolist()


@settings(max_examples=200, deadline=None)
@given(events_in_order())
def test_a_parent_is_the_innermost_event_open_when_it_began(events: Events) -> None:
    parents = nest(*columns(events)).parents
    for row, (begin, end) in enumerate(events):
        around = [i for i, (b, e) in enumerate(events[:row]) if b <= begin < e]
        assert parents[row] == (max(around, default=-1) if end > begin else -1)


def test_a_staircase_of_overlaps_is_read_in_reasonable_time_and_space(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = []
    real = nesting._sweep
    monkeypatch.setattr(nesting, "_sweep", lambda *columns: swept.append(1) or real(*columns))
    starts = np.arange(20_000, dtype=np.int64)
    found = nest(starts, starts + 1000)
    assert swept, "cutting each event a thousand times would take all memory"
    assert found.rows[:5].tolist() == [0, 1, 2, 3, 4]
