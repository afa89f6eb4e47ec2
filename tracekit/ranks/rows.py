"""What is each communication kernel of each rank known by, and what is one collective?"""

from collections.abc import Hashable, Sequence
from itertools import product

import polars as pl
from msgspec import Struct

from tracekit.interval import Ints
from tracekit.ranks.clocks import Clocks
from tracekit.ranks.digests import Exchange, RankDigest
from tracekit.ranks.job_figures import MatchedBy


class Row(Struct, frozen=True):
    """A communication kernel of a rank, and what it is known by."""

    rank: int
    row: int
    group: tuple[str | None, Hashable]
    ranks: tuple[int, ...]  #: Of the group; empty where nobody knows.
    size: int | None
    signature: Hashable
    sequence: int | None
    exchange: Exchange
    root: int | None
    targets: tuple[int, ...]
    sources: tuple[int, ...]


class Member(Struct, frozen=True):
    """A rank's part in a collective: its row in the rank's digest."""

    rank: int
    row: int


class Collective(Struct, frozen=True):
    """One collective over ranks."""

    members: tuple[Member, ...]
    group: tuple[int, ...]  #: The ranks of its group, as far as known; else those that were recorded.
    matched_by: MatchedBy
    #: Who gives to whom; None: everybody to everybody, so that it is over nowhere before all have come.
    flow: frozenset[tuple[int, int]] | None = None

    def partners(self, rank: int) -> tuple[tuple[int, bool], ...]:
        """With whom a rank exchanges, and whether it takes something from there, without which it cannot be over."""
        others = [it.rank for it in self.members if it.rank != rank]
        if self.flow is None:
            return tuple((other, True) for other in others)
        met = [other for other in others if (other, rank) in self.flow or (rank, other) in self.flow]
        return tuple((other, (other, rank) in self.flow) for other in met)


def list_rows(digests: dict[int, RankDigest]) -> list[Row]:
    """Every communication kernel, rank by rank in the order of their starts."""
    rows: list[Row] = []
    # Of ten thousand ranks a group is not to be looked at for each of its kernels.
    numbers: dict[Hashable, int] = {}
    names = ("group", "ranks", "size", "signature", "sequence", "in_graph", "exchange", "root", "targets", "sources")
    for rank, digest in digests.items():
        of_group: dict[tuple[str | None, tuple[int, ...]], tuple[tuple[int, ...], int]] = {}
        columns = (digest.collectives[name].to_list() for name in names)
        for row, (group, listed, size, text, sequence, in_graph, *peers) in enumerate(zip(*columns, strict=True)):
            named = (group, tuple(listed))
            if named not in of_group:
                ranks = named[1] or digest.groups.get(group or "", ())
                of_group[named] = (ranks, numbers.setdefault(ranks, len(numbers)))
            members, number = of_group[named]
            # Groups of one name differ where each rank counts its own: the default group's name is all ranks'.
            key = (group, (number, None if members else size))
            exchange, root, targets, sources = peers
            signature = (text, bool(in_graph))
            known = (exchange, root, tuple(targets), tuple(sources))
            rows.append(Row(rank, row, key, members, size, signature, sequence, *known))
    return rows


def joined(rows: Sequence[Row], group: tuple[int, ...], how: MatchedBy) -> Collective:
    """Rows of several ranks as one collective."""
    members = tuple(Member(each.rank, each.row) for each in sorted(rows, key=lambda each: each.rank))
    return Collective(members, group, how, _flow(rows))


def _flow(rows: Sequence[Row]) -> frozenset[tuple[int, int]] | None:
    ranks = [each.rank for each in rows]
    first = rows[0]
    if first.exchange == "from_root":
        return frozenset((first.root, other) for other in ranks if other != first.root and first.root is not None)
    if first.exchange == "to_root":
        return frozenset((other, first.root) for other in ranks if other != first.root and first.root is not None)
    if not any(each.targets or each.sources for each in rows):
        return None
    # An all-to-all in which some give some others nothing.
    barred = {pair for each in rows for pair in _nothing(each, ranks)}
    return frozenset(pair for pair in product(ranks, ranks) if pair[0] != pair[1] and pair not in barred)


def _nothing(row: Row, ranks: Sequence[int]) -> list[tuple[int, int]]:
    given = [(row.rank, other) for other in ranks if row.targets and other not in row.targets]
    taken = [(other, row.rank) for other in ranks if row.sources and other not in row.sources]
    return given + taken


def times_of(digests: dict[int, RankDigest], clocks: Clocks, column: str) -> dict[int, Ints]:
    """A column of each rank's collectives on the common clock, in nanoseconds."""
    return {
        rank: clocks.common(rank, digest.collectives[column].cast(pl.Int64).to_numpy())
        for rank, digest in digests.items()
    }
