"""Which collectives of several ranks end at once? Where names cannot tell, equal ends can: all ranks leave a barrier
within microseconds of each other."""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracekit.interval import Floats, Ints
from tracekit.ranks.clocks import LEAST_FOR_DRIFT, MOST_DRIFT, ONE_CLOCK_NS, Clocks, slope
from tracekit.ranks.rows import Collective, Member, Row, joined

#: Ranks of one group, or two that are neighbours in its ring, leave this close to each other: mostly, and hardly ever
#: further apart than the second.
CLOSE_NS, HARDLY_NS = 10_000, 25_000
#: Long collectives of many steps end further apart: by this share of their duration.
APART_SHARE = 0.02
#: Process groups whose ranks leave this much closer together than all ranks are what kernels without a group are of.
CLOSER = 0.5
#: Ends meet when they are this close; how many do so by chance the density of ends says.
NEAR_NS = (2_000, 10_000, ONE_CLOCK_NS)
LEAST_MEETINGS, BY_CHANCE = 3, 1e-4
#: Where ranks of a job leave together in clusters that are so many times as far apart as their own ranks, they may be
#: groups that only work in step; but not if that is no further than the second.
FINER, LEAST_APART_NS = 4.0, 1_000
#: Ranks that come so far apart and leave together are one group; of fewer collectives than the second nothing else
#: tells.
PROVING_NS, FEW = 50_000, 5
#: Ranks of which that is asked: of more, these tell.
MOST_COMPARED = 64


class Times:
    """When every kernel of every rank began and was over, on the common clock."""

    def __init__(self, starts: dict[int, Ints], ends: dict[int, Ints], clocks: Clocks) -> None:
        self.starts, self.ends, self.clocks = starts, ends, clocks

    def impossible(self, each: Collective) -> bool:
        """Whether it was over on a rank before one began there that this rank needs: by more than clocks can differ."""
        if each.flow is None:
            begun = max(int(self.starts[it.rank][it.row]) for it in each.members)
            over = min(int(self.ends[it.rank][it.row]) for it in each.members)
            return begun - over > self.clocks.tolerance_ns
        row = {it.rank: it.row for it in each.members}
        return any(
            int(self.starts[a][row[a]]) - int(self.ends[b][row[b]]) > self.clocks.tolerance_ns
            for a, b in each.flow
            if a in row and b in row
        )

    def disagree(self, each: Collective) -> bool:
        """Whether its ends lie further apart than one collective's do."""
        if each.flow is not None:
            return False
        ends = [int(self.ends[it.rank][it.row]) for it in each.members]
        lasting = min(int(self.ends[it.rank][it.row] - self.starts[it.rank][it.row]) for it in each.members)
        return max(ends) - min(ends) > max(self.clocks.tolerance_ns, APART_SHARE * lasting)


def join_by_ends(
    sound: list[Collective], left: Sequence[Row], recorded: Sequence[int], times: Times
) -> tuple[list[Collective], list[tuple[Row, bool]]]:
    """Where ranks recorded unequally many, what ends at once: with a collective that others were joined to, else with
    each other. And each row that finds no partner, and whether another rank of its group was recorded."""
    kinds: dict[Hashable, list[Row]] = defaultdict(list)
    for each in left:
        kinds[each.group, each.signature].append(each)
    by_end = sorted(
        (int(np.median([times.ends[it.rank][it.row] for it in each.members])), at) for at, each in enumerate(sound)
    )
    moments = np.array([moment for moment, _ in by_end], dtype=np.int64)
    grown, alone_for_good = list(sound), []
    for some in kinds.values():
        alone: list[Row] = []
        for each in some:
            end = int(times.ends[each.rank][each.row])
            at = _nearest(moments, end, times.clocks) if times.clocks.known and each.sequence is None else None
            more = None if at is None else _grown(grown[by_end[at][1]], each)
            if at is None or more is None or times.impossible(more):
                alone.append(each)
            else:
                grown[by_end[at][1]] = more
        ranks = recorded_of(some, recorded)
        found = _together(alone, ranks, times) if times.clocks.known else []
        taken = {(it.rank, it.row) for each in found for it in each.members}
        grown += found
        alone_for_good += [(each, len(ranks) > 1) for each in alone if (each.rank, each.row) not in taken]
    return grown, alone_for_good


def recorded_of(rows: Sequence[Row], recorded: Sequence[int]) -> tuple[int, ...]:
    """The recorded ranks of the group; of one that nobody knows those that have such a kernel."""
    members = rows[0].ranks or sorted({each.rank for each in rows})
    return tuple(rank for rank in members if rank in recorded)


def _nearest(moments: Ints, moment: int, clocks: Clocks) -> int | None:
    """The position of the moment that is nearest, None where none is near."""
    if not len(moments):
        return None
    after = int(np.searchsorted(moments, moment))
    near = (each for each in (after - 1, after) if 0 <= each < len(moments))
    at = min(near, key=lambda it: abs(int(moments[it]) - moment))
    return at if abs(int(moments[at]) - moment) <= clocks.tolerance_ns else None


def _grown(collective: Collective, row: Row) -> Collective | None:
    """With one rank more; None where it has that rank, is of a group without it, or is no barrier."""
    if any(it.rank == row.rank for it in collective.members) or row.rank not in collective.group:
        return None
    if collective.flow is not None or row.exchange != "all":
        return None
    members = sorted((*collective.members, Member(row.rank, row.row)), key=lambda it: it.rank)
    return replace(collective, members=tuple(members), matched_by="ends")


def _together(rows: Sequence[Row], ranks: tuple[int, ...], times: Times) -> list[Collective]:
    """Of the rank that has fewest each with what ends at once on all other ranks."""
    here = {rank: [each for each in rows if each.rank == rank] for rank in ranks}
    if len(ranks) < 2 or not all(here.values()) or rows[0].exchange != "all":
        return []
    found: list[Collective] = []
    taken: set[tuple[int, int]] = set()
    fewest = min(ranks, key=lambda rank: len(here[rank]))
    moments = {rank: np.array([times.ends[rank][each.row] for each in here[rank]]) for rank in ranks}
    for each in here[fewest]:
        same = [each]
        for rank in (rank for rank in ranks if rank != fewest):
            at = _nearest(moments[rank], int(times.ends[fewest][each.row]), times.clocks)
            other = None if at is None else here[rank][at]
            if other is not None and (rank, other.row) not in taken and other.sequence == each.sequence:
                same.append(other)
        whole = joined(same, each.ranks or ranks, "ends")
        if len(same) == len(ranks) and not times.impossible(whole):
            found.append(whole)
            taken.update((it.rank, it.row) for it in whole.members)
    return found


class Places(Struct, frozen=True):
    """What recordings say of who is where, by which groups are told that kernels do not name."""

    partitions: tuple[tuple[tuple[int, ...], ...], ...]  #: Of the job's ranks into process groups of one size.
    one_host: bool  #: Whether all recordings name the same host: then their clocks are one.


def split_by_ends(
    some: Sequence[Collective], starts: dict[int, Ints], ends: dict[int, Ints], places: Places
) -> tuple[list[Collective], list[Member]]:
    """Kernels that state no group may be of several groups that work in step: ranks that leave together are one group.
    `some` are of one kind. And the kernels of which that does not tell whose they are."""
    ranks = tuple(it.rank for it in some[0].members)
    if len(ranks) < 3 or len({tuple(it.rank for it in each.members) for each in some}) > 1:
        return list(some), []
    begun, over = (
        np.array([[int(times[it.rank][it.row]) for it in each.members] for each in some], dtype=np.float64)
        for times in (starts, ends)
    )
    clusters = _stated_groups(over, ranks, places) or _clusters(over, places.one_host)
    if len(clusters) == 1:
        # Had ranks of two groups been late, these groups' ends would lie apart.
        late = int((np.ptp(begun, axis=1) > PROVING_NS).sum())
        proven = late >= LEAST_MEETINGS or (len(some) >= FEW and not _has_finer(over))
        return (list(some), []) if proven else ([], [it for each in some for it in each.members])
    if max(map(len, clusters)) < 2:
        return list(some), []
    # Where all leave at once, now and then, groups did by chance, or it was a collective of all.
    spread = np.ptp(over, axis=1)
    at_once = (spread <= HARDLY_NS) & (spread.max() > HARDLY_NS)
    of_all = spread <= _hardly_by_chance(over, clusters, at_once)
    # A rank by itself may have a clock of its own, and be of any group.
    doubtful = min(map(len, clusters)) < 2
    found: list[Collective] = []
    unknown: list[Member] = []
    for k, each in enumerate(some):
        if at_once[k]:
            found += [each] if of_all[k] else []
            unknown += [] if of_all[k] else each.members
            continue
        for cluster in clusters:
            members = tuple(each.members[at] for at in cluster)
            group = ranks if doubtful else tuple(it.rank for it in members)
            found.append(replace(each, members=members, group=group))
    return found, unknown


def _hardly_by_chance(over: Floats, clusters: list[list[int]], at_once: NDArray[np.bool_]) -> float:
    """How close to each other all leave more often than groups do by chance, -1 where they do not; how far groups lie
    apart else tells how likely that is."""
    if not at_once.any():
        return -1.0
    middles = np.stack([np.median(over[:, each], axis=1) for each in clusters], axis=1)
    usual, spread = float(np.median(np.ptp(middles, axis=1)[~at_once])), np.ptp(over, axis=1)
    for near in (*NEAR_NS[:2], HARDLY_NS):
        if _chance(int((spread <= near).sum()), len(over), near / max(usual, near)) <= BY_CHANCE:
            return near
    return -1.0


def _has_finer(over: Floats) -> bool:
    """Whether ranks leave in clusters of at least two that lie far apart for how close their own ranks are."""
    some = over[:, :MOST_COMPARED]
    apart = np.stack([np.median(np.abs(some - one[:, np.newaxis]), axis=0) for one in some.T])
    for below, above in pairwise(np.unique(apart)):
        if above >= max(FINER * below, LEAST_APART_NS):
            near = apart <= below
            # All of a cluster are near each other, and none is by itself.
            alike = all((near[one] == near[other]).all() for one, other in np.argwhere(near))
            if alike and near.sum(axis=1).min() > 1:
                return True
    return False


def _stated_groups(over: Floats, ranks: tuple[int, ...], places: Places) -> list[list[int]]:
    """The process groups whose ranks leave far closer together than all ranks do; empty where there are none such."""
    at = {rank: place for place, rank in enumerate(ranks)}
    whole = float(np.median(np.ptp(over, axis=1)))
    for groups in places.partitions:
        clusters = [[at[rank] for rank in group if rank in at] for group in groups]
        clusters = [each for each in clusters if each]
        within = max(float(np.median(np.ptp(over[:, each], axis=1))) for each in clusters)
        if sum(map(len, clusters)) == len(ranks) and len(clusters) > 1 and within <= CLOSER * whole:
            return clusters
    return []


def _clusters(over: Floats, one_host: bool) -> list[list[int]]:
    clusters: list[list[int]] = []
    for at in range(over.shape[1]):
        near = [each for each in clusters if any(_meet(over[:, at], over[:, other], one_host) for other in each)]
        merged = sorted([at, *(other for each in near for other in each)])
        clusters = [each for each in clusters if each not in near] + [merged]
    return clusters


def _meet(one: Floats, other: Floats, one_host: bool) -> bool:
    """Whether two ranks leave together, by one clock or by two that differ steadily."""
    apart = one - other
    if _close(apart):
        return True
    if one_host or len(apart) < LEAST_FOR_DRIFT or not np.ptp(one):
        return False
    drift = slope(one, apart)
    rest = apart - drift * (one - one[0])
    return abs(drift) <= MOST_DRIFT and _close(rest - np.median(rest))


def _close(apart: Floats) -> bool:
    usual, most = np.quantile(np.abs(apart), (0.5, 0.9))
    return bool(usual <= CLOSE_NS and most <= HARDLY_NS)


def share_a_clock(ends: dict[int, Ints], names: dict[int, list[str]]) -> bool:
    """Whether the ends of equal collectives meet far more often than ends so dense do by chance: then all ranks'
    recordings are of one clock, whatever was left out of them."""
    ranks = sorted(ends)
    reference = max(ranks, key=lambda rank: (len(ends[rank]), -rank))
    return all(
        any(_met(ends[reference], names[reference], ends[rank], names[rank], near) for near in NEAR_NS)
        for rank in ranks
        if rank != reference
    )


def _met(one: Ints, one_names: list[str], other: Ints, other_names: list[str], near: int) -> bool:
    met, count, expected = 0, 0, 0.0
    for name in sorted(set(one_names) & set(other_names)):
        here = np.sort(one[[each == name for each in one_names]])
        there = other[[each == name for each in other_names]]
        span = max(int(max(here[-1], there.max()) - min(here[0], there.min())), 1)
        at = np.searchsorted(here, there)
        before, after = here[np.maximum(at - 1, 0)], here[np.minimum(at, len(here) - 1)]
        met += int((np.minimum(np.abs(before - there), np.abs(after - there)) <= near).sum())
        count += len(there)
        expected += len(there) * min(1.0, 2 * near * len(here) / span)
    return met >= LEAST_MEETINGS and _chance(met, count, expected / count) <= BY_CHANCE


def _chance(met: int, count: int, share: float) -> float:
    """How likely so many or more of `count` are, each by itself with that likelihood."""
    if not 0 < share < 1:
        return float(share > 0)
    logs = [
        math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
        + k * math.log(share) + (count - k) * math.log1p(-share)
        for k in range(met, count + 1)
    ]  # fmt: skip
    return sum(math.exp(each) for each in logs)
