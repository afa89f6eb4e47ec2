from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracekit.comparison.matching.pairing import UnionFind


def test_things_hang_together_over_others_and_stand_in_the_order_they_were_named() -> None:
    together: UnionFind[str] = UnionFind()
    for some in (["d"], ["a", "b"], ["c", "e"], ["b", "c"], []):
        together.join(some)
    assert together.groups() == [["d"], ["a", "b", "c", "e"]]


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12))))
def test_two_things_are_of_one_group_when_a_chain_of_pairs_leads_from_one_to_the_other(
    pairs: list[tuple[int, int]],
) -> None:
    together: UnionFind[int] = UnionFind()
    reached = {each: {each} for pair in pairs for each in pair}
    for one, other in pairs:
        together.join([one, other])
        merged = reached[one] | reached[other]
        reached |= dict.fromkeys(merged, merged)
    assert {frozenset(group) for group in together.groups()} == {frozenset(group) for group in reached.values()}
