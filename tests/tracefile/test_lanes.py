from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tracekit.tracefile.lanes import nested, side_by_side

Times = list[tuple[int, int]]
TIMES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=40).map(
    lambda some: sorted(((start, start + long) for start, long in some), key=lambda each: (each[0], -each[1]))
)


def by_lane(times: Times, lanes: list[int]) -> list[Times]:
    found: dict[int, Times] = defaultdict(list)
    for each, lane in zip(times, lanes, strict=True):
        found[lane].append(each)
    return list(found.values())


def test_what_follows_stays_in_one_lane() -> None:
    assert side_by_side([(0, 10), (10, 20), (25, 30)]) == [0, 0, 0]
    assert nested([(0, 10), (10, 20), (25, 30)]) == [0, 0, 0]


def test_an_overlap_of_a_nanosecond_takes_a_second_lane_and_the_first_is_used_again() -> None:
    assert side_by_side([(0, 10), (9, 20), (20, 30)]) == [0, 1, 0]
    assert nested([(0, 10), (9, 20), (20, 30)]) == [0, 1, 0]


def test_one_inside_another_nests_only_where_that_is_meant() -> None:
    times = [(0, 100), (10, 50), (20, 30), (60, 100)]
    assert nested(times) == [0, 0, 0, 0]
    assert side_by_side(times) == [0, 1, 2, 1]


@given(TIMES)
def test_side_by_side_no_lane_is_used_twice_at_one_time(times: Times) -> None:
    for lane in by_lane(times, side_by_side(times)):
        assert all(end <= following for (_, end), (following, _) in pairwise(lane))


@given(TIMES)
def test_nested_any_two_of_a_lane_are_apart_or_one_is_inside_the_other(times: Times) -> None:
    for lane in by_lane(times, nested(times)):
        for at, (start, end) in enumerate(lane):
            for begun, over in lane[at + 1 :]:
                assert begun >= end or (start <= begun and over <= end)
