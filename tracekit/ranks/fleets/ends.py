"""Which collectives of several ranks end at once? Where names cannot tell, equal ends can: all ranks leave a barrier
within microseconds of each other."""

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.interval import Floats, Ints
from tracekit.ranks.fleets.clocks import LEAST_FOR_DRIFT, MOST_DRIFT, ONE_CLOCK_NS, slope
from tracekit.statistics.chance import chance_of_as_many

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


class Times(Struct, frozen=True):
    """Of every part its rank, its start and its end on the common clock, and its number in a sequence or -1."""

    rank: Ints
    start: Ints
    end: Ints
    sequence: Ints
    tolerance_ns: float

    def impossible(self, rows: Sequence[int]) -> bool:
        """Whether it was over on a rank before another came: by more than clocks can differ."""
        some = np.array(rows)
        return bool(self.start[some].max() - self.end[some].min() > self.tolerance_ns)

    def nearest(self, moments: Ints, moment: int) -> int | None:
        """The position of the moment that is nearest, None where none is near."""
        if not len(moments):
            return None
        after = int(np.searchsorted(moments, moment))
        near = (each for each in (after - 1, after) if 0 <= each < len(moments))
        at = min(near, key=lambda it: abs(int(moments[it]) - moment))
        return at if abs(int(moments[at]) - moment) <= self.tolerance_ns else None


def grow_by_ends(
    sound: dict[int, list[int]],
    by_end: Sequence[tuple[int, int]],
    groups: dict[int, tuple[int, ...]],
    loose: Iterable[int],
    times: Times,
) -> set[int]:
    """Adds to collectives, of the rows that `sound` has, what ended at once with them on a rank of their group that
    lacks them. Which of these have grown. `by_end` has when each ended, the median, and its number, in order."""
    moments = np.array([moment for moment, _ in by_end], dtype=np.int64)
    grown: set[int] = set()
    for row in loose:
        at = times.nearest(moments, int(times.end[row])) if times.sequence[row] < 0 else None
        if at is None:
            continue
        number = by_end[at][1]
        rows, rank = sound[number], times.rank[row]
        if rank in groups[number] and rank not in times.rank[rows] and not times.impossible([*rows, row]):
            rows.append(row)
            grown.add(number)
    return grown


def meet_by_ends(
    loose: Sequence[int], group: tuple[int, ...], recorded: Collection[int], times: Times
) -> list[list[int]]:
    """Of the rows of one kind, of the rank that has fewest each with what ended at once on all other recorded ranks of
    its group, which is empty where nobody knows."""
    ranks = [rank for rank in group if rank in recorded] or np.unique(times.rank[loose]).tolist()
    here = {rank: np.array([row for row in loose if times.rank[row] == rank]) for rank in ranks}
    if len(ranks) < 2 or not all(map(len, here.values())):
        return []
    found: list[list[int]] = []
    taken: set[int] = set()
    fewest = min(ranks, key=lambda rank: len(here[rank]))
    for row in here[fewest].tolist():
        same = [row]
        for rank in (rank for rank in ranks if rank != fewest):
            at = times.nearest(times.end[here[rank]], int(times.end[row]))
            other = None if at is None else int(here[rank][at])
            if other is not None and other not in taken and times.sequence[other] == times.sequence[row]:
                same.append(other)
        if len(same) == len(ranks) and not times.impossible(same):
            found.append(same)
            taken |= {*same}
    return found


#: Of the job's ranks into process groups of one size.
Partitions = tuple[tuple[tuple[int, ...], ...], ...]
#: A collective's place among those of its kind, the places of its ranks, and its group where that is not the kind's.
Split = tuple[int, list[int], tuple[int, ...] | None]


def split_by_ends(
    begun: Floats, over: Floats, ranks: tuple[int, ...], partitions: Partitions, *, one_host: bool
) -> tuple[list[Split], list[int]]:
    """Kernels that state no group may be of several groups that work in step: ranks that leave together are one group.
    Of one kind, by occurrence (rows) and rank (columns). And the rows of which that does not tell whose they are.
    `one_host`: all recordings name the same one, so that their clocks are one."""
    every = [*range(len(over))]
    whole: list[Split] = [(k, [*range(len(ranks))], None) for k in every]
    if len(ranks) < 3:
        return whole, []
    clusters = _stated_groups(over, ranks, partitions) or _clusters(over, one_host)
    if len(clusters) == 1:
        # Had ranks of two groups been late, these groups' ends would lie apart.
        late = int((np.ptp(begun, axis=1) > PROVING_NS).sum())
        proven = late >= LEAST_MEETINGS or (len(over) >= FEW and not _has_finer(over))
        return (whole, []) if proven else ([], every)
    if max(map(len, clusters)) < 2:
        return whole, []
    # Where all leave at once, now and then, groups did by chance, or it was a collective of all.
    spread = np.ptp(over, axis=1)
    at_once = (spread <= HARDLY_NS) & (spread.max() > HARDLY_NS)
    of_all = spread <= _hardly_by_chance(over, clusters, at_once)
    # A rank by itself may have a clock of its own, and be of any group.
    doubtful = min(map(len, clusters)) < 2
    found: list[Split] = []
    for k in every:
        if not at_once[k]:
            found += [(k, each, ranks if doubtful else tuple(ranks[at] for at in each)) for each in clusters]
        elif of_all[k]:
            found.append(whole[k])
    return found, [k for k in every if at_once[k] and not of_all[k]]


def _hardly_by_chance(over: Floats, clusters: list[list[int]], at_once: NDArray[np.bool_]) -> float:
    """How close to each other all leave more often than groups do by chance, -1 where they do not; how far groups lie
    apart else tells how likely that is."""
    if not at_once.any():
        return -1.0
    middles = np.stack([np.median(over[:, each], axis=1) for each in clusters], axis=1)
    usual, spread = float(np.median(np.ptp(middles, axis=1)[~at_once])), np.ptp(over, axis=1)
    for near in (*NEAR_NS[:2], HARDLY_NS):
        if chance_of_as_many(int((spread <= near).sum()), len(over), near / max(usual, near)) <= BY_CHANCE:
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


def _stated_groups(over: Floats, ranks: tuple[int, ...], partitions: Partitions) -> list[list[int]]:
    """The process groups whose ranks leave far closer together than all ranks do; empty where there are none such."""
    at = {rank: place for place, rank in enumerate(ranks)}
    whole = float(np.median(np.ptp(over, axis=1)))
    for groups in partitions:
        clusters = [[at[rank] for rank in group if rank in at] for group in groups]
        clusters = [each for each in clusters if each]
        within = max(float(np.median(np.ptp(over[:, each], axis=1))) for each in clusters)
        if sum(map(len, clusters)) == len(ranks) and len(clusters) > 1 and within <= CLOSER * whole:
            return clusters
    return []


def _clusters(over: Floats, one_host: bool) -> list[list[int]]:
    clusters: list[list[int]] = []
    if over.shape[1] > MOST_COMPARED:
        return _clusters_of_many(over)
    for at in range(over.shape[1]):
        near = [each for each in clusters if any(_meet(over[:, at], over[:, other], one_host) for other in each)]
        merged = sorted([at, *(other for each in near for other in each)])
        clusters = [each for each in clusters if each not in near] + [merged]
    return clusters


def _clusters_of_many(over: Floats) -> list[list[int]]:
    """The same by one rank of each cluster, and one clock: the time taken grows with ranks times clusters."""
    clusters: list[list[int]] = []
    for at in range(over.shape[1]):
        apart = np.abs(over[:, [each[0] for each in clusters]] - over[:, [at]])
        usual, most = np.quantile(apart, (0.5, 0.9), axis=0) if clusters else np.zeros((2, 0))
        near = np.flatnonzero((usual <= CLOSE_NS) & (most <= HARDLY_NS))
        if len(near):
            clusters[near[0]].append(at)
        else:
            clusters.append([at])
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
    return met >= LEAST_MEETINGS and chance_of_as_many(met, count, expected / count) <= BY_CHANCE
