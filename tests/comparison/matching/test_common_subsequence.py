from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.comparison.matching import common_subsequence as subsequence
from tracekit.comparison.matching.common_subsequence import common_subsequence, places_in_table, same_launches

LETTERS = st.lists(st.sampled_from("abcd"), max_size=25)


def longest(a: list[str], b: list[str]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def check(a: list[str], b: list[str], pairs: list[tuple[int, int]]) -> None:
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p < q and r < s for (p, r), (q, s) in pairwise(pairs))


@given(LETTERS, LETTERS)
def test_it_is_common_increasing_and_as_long_as_can_be(a: list[str], b: list[str]) -> None:
    for pairs in (common_subsequence(a, b), list(same_launches(a, b))):
        check(a, b, pairs)
        assert len(pairs) == longest(a, b)


@settings(max_examples=50)
@given(LETTERS, LETTERS)
def test_through_short_windows_it_is_still_common_and_increasing(a: list[str], b: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subsequence, "WINDOW", 4)
        patch.setattr(subsequence, "LONGEST", 8)
        check(a, b, common_subsequence(a, b))


def test_twenty_thousand_on_a_side_take_seconds() -> None:
    a = [f"{i % 7}{i % 11}" for i in range(20_000)]
    b = [each for i, each in enumerate(a) if i % 9]
    began = time.process_time()
    pairs = common_subsequence(a, b)
    assert time.process_time() - began < 7
    assert len(pairs) > 0.95 * len(b)


def test_recordings_that_differ_throughout_pair_nothing() -> None:
    assert list(same_launches(["a", "b", "e"] * 300, ["c", "d", "e"] * 300)) == [(899, 899)]
    assert list(same_launches(["a", "b"] * 50_000, ["b", "c", "d"] * 50_000)) == []


@pytest.mark.parametrize(
    ("names", "found"),
    [("abc", [0, 1, 2]), ("abcabc", [0, 1, 2, 0, 1, 2]), ("axbc", [0, None, 1, 2]), ("ac", [0, 2]), ("", [])],
)
def test_names_find_their_place_in_the_table(names: str, found: list[int | None]) -> None:
    assert places_in_table(names, "abc", 2 if names == "abcabc" else 1) == found
