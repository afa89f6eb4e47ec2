"""Ranks whose collectives are not those of the others, in recordings made by hand."""

from collections.abc import Sequence

import polars as pl
from msgspec.structs import replace
from tests.ranks.jobs import make_digest

from tracekit.ranks.compared.nouns import UnevenCollectives
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.uneven_collectives import find_uneven_collectives


def rank(number: int, *names: str, numbered: bool = True, of: Sequence[int] = (0, 1, 2)) -> RankDigest:
    """A rank of three that issues these, one after the other."""
    digest = make_digest(number, 3, talk=[(at * 100.0, at * 100.0 + 20) for at in range(len(names))])
    columns = [pl.Series("collective", names), pl.Series("ranks", [list(of)] * len(names), dtype=pl.List(pl.Int64))]
    columns += [pl.Series("sequence", range(len(names)) if numbered else [None] * len(names), dtype=pl.Int64)]
    columns += [pl.Series("exchange", ["all"] * len(names), dtype=pl.String)]
    return replace(digest, collectives=digest.collectives.with_columns(*columns))


BOTH = ("all_gather", "reduce_scatter")


def test_ranks_that_communicate_alike_are_not_uneven() -> None:
    assert find_uneven_collectives([rank(each, *BOTH, *BOTH) for each in range(3)]) == ()
    # Each group by itself.
    assert find_uneven_collectives([rank(0, *BOTH, of=(0,)), rank(1, "all_reduce", of=(1,))]) == ()


def test_a_rank_with_more_or_fewer_is_named_beside_what_is_usual() -> None:
    ranks = [rank(0, *BOTH), rank(1, *BOTH, "all_gather"), rank(2, *BOTH)]
    assert find_uneven_collectives(ranks) == (UnevenCollectives(1, "all_gather", 2, 1),)
    assert find_uneven_collectives([rank(0, *BOTH), rank(1, *BOTH), rank(2)]) == (
        UnevenCollectives(2, "all_gather", 0, 1),
        UnevenCollectives(2, "reduce_scatter", 0, 1),
    )


def test_another_order_is_told_by_the_numbers_of_the_group_alone() -> None:
    ranks = [rank(0, *BOTH), rank(1, *BOTH), rank(2, *reversed(BOTH))]
    assert find_uneven_collectives(ranks) == (UnevenCollectives(2, "reduce_scatter", 1, 1, "all_gather"),)
    assert find_uneven_collectives([rank(0, *BOTH), rank(1, *BOTH), rank(2, *reversed(BOTH), numbered=False)]) == ()
