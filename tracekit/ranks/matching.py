"""Which communication kernels of several ranks are one collective?

The surest way first: the number in its group's sequence; equal signatures, the k-th of each, where all ranks have
equally many; the order of kernels of one name, likewise. Where counts differ order tells nothing: then the ends must
agree. What was joined is checked: a collective cannot be over anywhere before its last rank has begun it.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.model.ranks import MatchedBy, RankDigest, Unmatched
from tracekit.ranks.clocks import Clocks

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Member:
    """A rank's part in a collective: its row in the rank's digest."""

    rank: int
    row: int


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective over ranks."""

    members: tuple[Member, ...]
    group: tuple[int, ...]  #: The ranks of its group, as far as known; else those that were recorded.
    matched_by: MatchedBy


@dataclass(frozen=True, slots=True)
class Matching:
    """All collectives that were joined, and of each rank the rows that were not, with the reason."""

    collectives: tuple[Collective, ...]
    unmatched: dict[int, dict[int, Unmatched]]


@dataclass(frozen=True, slots=True)
class _Row:
    """A communication kernel of a rank, and what it is known by."""

    rank: int
    row: int
    group: tuple[str | None, Hashable]
    ranks: tuple[int, ...]
    signature: Hashable
    sequence: int | None


def list_rows(digests: dict[int, RankDigest]) -> list[_Row]:
    """Every communication kernel, rank by rank in the order of their starts."""
    rows: list[_Row] = []
    for rank, digest in digests.items():
        table = digest.collectives
        columns = (table[name].to_list() for name in ("group", "ranks", "size", "signature", "sequence", "in_graph"))
        for row, (group, listed, size, signature, sequence, in_graph) in enumerate(zip(*columns, strict=True)):
            members = tuple(listed) or digest.groups.get(group or "", ())
            # Groups of one name differ where each rank counts its own: the default group's name is all ranks'.
            key = (group, members or size)
            rows.append(_Row(rank, row, key, members, (signature, bool(in_graph)), sequence))
    return rows


def candidates(rows: Iterable[_Row], recorded: Sequence[int]) -> tuple[list[Collective], list[_Row]]:
    """What names alone join, unchecked, and what they leave over because counts differ."""
    found: list[Collective] = []
    left: list[_Row] = []
    kinds: dict[Hashable, list[_Row]] = defaultdict(list)
    for each in rows:
        kinds[(each.group, each.signature, each.sequence is not None)].append(each)
    for some in kinds.values():
        ranks, named = _expected(some, recorded), some[0].group[0] is not None
        if named and some[0].sequence is not None:
            by_key: dict[Hashable, list[_Row]] = defaultdict(list)
            for each in some:
                by_key[each.sequence].append(each)
            for same in by_key.values():
                # A number twice on one rank is of two kernels of one call: the k-th of each.
                found += _by_occurrence(same, ranks, "sequence", left)
        else:
            found += _by_occurrence(some, ranks, "signature" if named else "order", left)
    return found, left


def _expected(rows: Sequence[_Row], recorded: Sequence[int]) -> tuple[int, ...]:
    """The recorded ranks of the group."""
    members = rows[0].ranks or tuple(recorded)
    return tuple(rank for rank in members if rank in recorded)


def _by_occurrence(rows: Sequence[_Row], ranks: tuple[int, ...], how: MatchedBy, left: list[_Row]) -> list[Collective]:
    """The k-th of each rank together, of those ranks that have as many as most; the others' are left over. Where no two
    ranks have equally many all are."""
    counts = Counter(each.rank for each in rows)
    usual, having = Counter(counts[rank] for rank in ranks).most_common(1)[0] if ranks else (0, 0)
    alike = tuple(rank for rank in ranks if counts[rank] == usual)
    left += [each for each in rows if each.rank not in alike]
    if not usual or (having < len(ranks) and having < 2):
        left += [each for each in rows if each.rank in alike]
        return []
    of_rank: dict[int, list[_Row]] = defaultdict(list)
    for each in rows:
        of_rank[each.rank].append(each)
    group = rows[0].ranks or ranks
    together = zip(*(of_rank[rank] for rank in alike), strict=True)
    return [Collective(tuple(Member(each.rank, each.row) for each in same), group, how) for same in together]


def times_of(digests: dict[int, RankDigest], clocks: Clocks, column: str) -> dict[int, Ints]:
    """A column of each rank's collectives on the common clock, in nanoseconds."""
    return {
        rank: clocks.common(rank, digest.collectives[column].cast(pl.Int64).to_numpy())
        for rank, digest in digests.items()
    }


def match_collectives(digests: dict[int, RankDigest], clocks: Clocks) -> Matching:
    """The collectives of all ranks that were recorded; `clocks` puts their times side by side."""
    recorded = sorted(digests)
    found, left = candidates(list_rows(digests), recorded)
    starts, ends = (times_of(digests, clocks, column) for column in ("start_ns", "end_ns"))
    unmatched: dict[int, dict[int, Unmatched]] = {rank: {} for rank in recorded}
    sound: list[Collective] = []
    for each in found:
        if len(each.members) < 2:
            for member in each.members:
                unmatched[member.rank][member.row] = "missing_rank"
        elif clocks.known and _apart(each, starts, ends) > clocks.tolerance_ns:
            for member in each.members:
                unmatched[member.rank][member.row] = "not_at_once"
        else:
            sound.append(each)
    sound = _by_ends(sound, left, recorded, starts, ends, clocks, unmatched)
    first = {id(each): min(int(starts[it.rank][it.row]) for it in each.members) for each in sound}
    return Matching(tuple(sorted(sound, key=lambda each: first[id(each)])), unmatched)


def _apart(each: Collective, starts: dict[int, Ints], ends: dict[int, Ints]) -> int:
    """By how much its first end lies before its last start: more than clocks can differ is impossible."""
    begun = max(int(starts[it.rank][it.row]) for it in each.members)
    over = min(int(ends[it.rank][it.row]) for it in each.members)
    return begun - over


def _by_ends(
    sound: list[Collective],
    left: Sequence[_Row],
    recorded: Sequence[int],
    starts: dict[int, Ints],
    ends: dict[int, Ints],
    clocks: Clocks,
    unmatched: dict[int, dict[int, Unmatched]],
) -> list[Collective]:
    """Where ranks recorded unequally many, what ends at once: with a collective that others were joined to, else with
    each other. Each counts once; what finds no partner is counted."""
    kinds: dict[Hashable, list[_Row]] = defaultdict(list)
    for each in left:
        kinds[each.group, each.signature].append(each)
    by_end = sorted(
        (int(np.median([ends[it.rank][it.row] for it in each.members])), at) for at, each in enumerate(sound)
    )
    moments = np.array([moment for moment, _ in by_end], dtype=np.int64)
    grown = list(sound)
    for some in kinds.values():
        alone: list[_Row] = []
        for each in some:
            at = _nearest(moments, int(ends[each.rank][each.row]), clocks) if clocks.known else None
            joined = None if at is None else _grown(grown[by_end[at][1]], each)
            if at is None or joined is None or _apart(joined, starts, ends) > clocks.tolerance_ns:
                alone.append(each)
            else:
                grown[by_end[at][1]] = joined
        ranks = _expected(some, recorded)
        found = _together(alone, ranks, starts, ends, clocks) if clocks.known else []
        taken = {(it.rank, it.row) for each in found for it in each.members}
        grown += found
        for each in alone:
            if (each.rank, each.row) not in taken:
                unmatched[each.rank][each.row] = "counts_differ" if len(ranks) > 1 else "missing_rank"
    return grown


def _nearest(moments: Ints, moment: int, clocks: Clocks) -> int | None:
    """The position of the moment that is nearest, None where none is near."""
    if not len(moments):
        return None
    after = int(np.searchsorted(moments, moment))
    near = (each for each in (after - 1, after) if 0 <= each < len(moments))
    at = min(near, key=lambda it: abs(int(moments[it]) - moment))
    return at if abs(int(moments[at]) - moment) <= clocks.tolerance_ns else None


def _grown(collective: Collective, row: _Row) -> Collective | None:
    """With one rank more; None where it has that rank, or is of a group without it."""
    if any(it.rank == row.rank for it in collective.members) or row.rank not in collective.group:
        return None
    members = sorted((*collective.members, Member(row.rank, row.row)), key=lambda it: it.rank)
    return Collective(tuple(members), collective.group, "ends")


def _together(
    rows: Sequence[_Row], ranks: tuple[int, ...], starts: dict[int, Ints], ends: dict[int, Ints], clocks: Clocks
) -> list[Collective]:
    """Of the rank that has fewest each with what ends at once on all other ranks."""
    here = {rank: [each for each in rows if each.rank == rank] for rank in ranks}
    if len(ranks) < 2 or not all(here.values()):
        return []
    found: list[Collective] = []
    taken: set[tuple[int, int]] = set()
    fewest = min(ranks, key=lambda rank: len(here[rank]))
    moments = {rank: np.array([ends[rank][each.row] for each in here[rank]]) for rank in ranks}
    for each in here[fewest]:
        same = [Member(fewest, each.row)]
        for rank in (rank for rank in ranks if rank != fewest):
            at = _nearest(moments[rank], int(ends[fewest][each.row]), clocks)
            if at is not None and (rank, here[rank][at].row) not in taken:
                same.append(Member(rank, here[rank][at].row))
        joined = Collective(tuple(sorted(same, key=lambda it: it.rank)), each.ranks or ranks, "ends")
        if len(same) == len(ranks) and _apart(joined, starts, ends) <= clocks.tolerance_ns:
            found.append(joined)
            taken.update((it.rank, it.row) for it in same)
    return found
