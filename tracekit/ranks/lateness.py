"""Since when was the rank late that others waited for, and what did it do more of since then?

A rank that arrives late at a collective may have fallen behind long before it: in a DDP step a host that slept before
the forward is late at every bucket of the backward. So both ranks are followed back to where they were last level, and
their accounts from there on are compared: what the late one did more of made it late.
"""

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit import interval
from tracekit.interval import Bools, Intervals, Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.activities import communication_of, compute_of
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.joined import Joined

#: Ranks are level where the one was behind by at most this share of what it is behind now.
LEVEL = 0.1
#: A host that was held up once shows in one gap; one that is slow throughout, in many.
ONE_GAP = 0.4
#: What a rank did between two collectives, in the order of a report.
CAUSES = ("compute", "communication", *IDLE_CAUSES)


class _Line(Struct, frozen=True):
    """One rank's time, to be asked for stretches of it."""

    busy: tuple[Intervals, Intervals]  #: Compute, and exposed communication.
    starts: Ints
    ends: Ints
    sums: Ints  #: Nanoseconds of each cause before each gap.
    ready: Ints  #: When it was ready for each collective, and when that was over.
    over: Ints
    held: Bools  #: Nothing else to do from being ready for the collective until it was over.

    def accounts(self, stretches: Intervals) -> Ints:
        """Nanoseconds of each of CAUSES in each stretch, between whose ends gaps are cut; one the other way round is
        negative, for a rank may be ready for a collective before the one before it is over."""
        first, last = np.searchsorted(self.starts, stretches.T, side="left")
        busy = (interval.covered_within(each, stretches) for each in self.busy)
        return np.column_stack((*busy, self.sums[last] - self.sums[first]))

    def longest_gap(self, begin: int, end: int) -> int:
        """Nanoseconds of the longest idle gap in that stretch, whatever cuts it."""
        first, last = np.searchsorted(self.starts, (begin, end), side="left")
        whole = interval.union(self.starts[first:last], self.ends[first:last])
        return int((whole[:, 1] - whole[:, 0]).max(initial=0))


def _line(digest: RankDigest) -> _Line:
    compute = compute_of(digest)
    talk = communication_of(digest)
    sums = np.cumsum(np.pad(digest.gaps.select(IDLE_CAUSES).to_numpy(), ((1, 0), (0, 0))), axis=0)
    starts, ends = (digest.gaps[name].to_numpy() for name in ("start_ns", "end_ns"))
    ready, over = (digest.collectives[name].to_numpy() for name in ("ready_ns", "end_ns"))
    covered = interval.covered_within(compute, np.stack((ready, over), axis=1))
    held = covered <= LEVEL * (over - ready)
    return _Line((compute, interval.complement(compute, talk)), starts, ends, sums, ready, over, held)


class Lateness(Struct, frozen=True):
    """One collective that a rank was late for: the stretches, by each rank's own clock, in which it fell behind the
    rank that waited longest, and what it did more of there."""

    collective: int  #: Its number, from 0.
    late: int
    waiter: int
    waited_ns: int  #: By all ranks together.
    of_late: tuple[int, int]
    of_waiter: tuple[int, int]
    more_ns: Ints  #: Of CAUSES; they add up to the lateness, what the late rank did less of is negative.
    one_gap: bool  #: Whether most of it is one idle gap.


def find_lateness(joined: Joined) -> tuple[Lateness, ...]:
    """Every collective that somebody waited in, in order, as far as who was late and who waited are read in full; none
    where the clocks are unknown."""
    digests, clocks = joined.digests, joined.clocks
    if not clocks.known or not digests:
        return ()
    ready = {rank: clocks.common(rank, each.collectives["ready_ns"].to_numpy()) for rank, each in digests.items()}
    lines = {rank: _line(digest) for rank, digest in digests.items()}
    # Of each rank its row in each collective; -1: it has none.
    own_rows = {rank: np.full(joined.waits.collectives.height, -1, dtype=np.int64) for rank in digests}
    of_part = joined.waits.parts["collective"].to_numpy()
    for rank, rows in own_rows.items():
        numbers = of_part[joined.rows_of(rank)]
        rows[numbers[numbers >= 0]] = np.flatnonzero(numbers >= 0)
    pairs: dict[tuple[int, int], _Pair] = {}
    #: By rank the stretches that are asked for.
    stretches: dict[int, list[tuple[int, int]]] = {rank: [] for rank in digests}
    waits = _who_waited(joined)
    for k, late, waiter, _ in waits:
        own, other = int(own_rows[late][k]), int(own_rows[waiter][k])
        if (late, waiter) not in pairs:
            numbers = np.flatnonzero((own_rows[late] >= 0) & (own_rows[waiter] >= 0))
            both = [(rank, own_rows[rank][numbers]) for rank in (late, waiter)]
            held = np.logical_and(*(lines[rank].held[rows] for rank, rows in both))
            behind = ready[late][both[0][1]] - ready[waiter][both[1][1]]
            moments = [np.where(held, lines[rank].over[rows], lines[rank].ready[rows]) for rank, rows in both]
            pairs[late, waiter] = _Pair(numbers, behind, held, np.stack(moments, axis=1))
        begins = pairs[late, waiter].last_level(k, int(ready[late][own] - ready[waiter][other]))
        for rank, row, begin in zip((late, waiter), (own, other), begins or (None, None), strict=True):
            since = digests[rank].windows[0][0] if begin is None else begin
            stretches[rank].append((since, int(lines[rank].ready[row])))
    accounts = {
        rank: iter(zip(some, lines[rank].accounts(np.array(some, dtype=np.int64).reshape(-1, 2)), strict=True))
        for rank, some in stretches.items()
    }
    found: list[Lateness] = []
    for k, late, waiter, waited_ns in waits:
        (of_late, spent), (of_waiter, spent_there) = next(accounts[late]), next(accounts[waiter])
        more = spent - spent_there
        longest = lines[late].longest_gap(*of_late) - lines[waiter].longest_gap(*of_waiter)
        one_gap = longest >= ONE_GAP * max(int(more[more > 0].sum()), 1)
        found.append(Lateness(k, late, waiter, waited_ns, of_late, of_waiter, more, one_gap))
    return tuple(found)


class _Pair(Struct, frozen=True):
    """What two ranks did together: the collectives of both by their numbers, how far the one was behind at each,
    whether both had nothing else to do until it was over, and when it was over where they had, else when each was ready
    for it."""

    numbers: Ints
    behind: Ints
    held: Bools
    moments: Ints

    def last_level(self, k: int, lag: int) -> tuple[int, int] | None:
        """When the two were last level before collective `k`, by their own clocks: ready for one at about the same
        time, or both with nothing else to do until one was over."""
        before = slice(int(np.searchsorted(self.numbers, k)))
        level = np.flatnonzero(self.held[before] | (self.behind[before] <= LEVEL * max(lag, 0)))
        return (int(self.moments[level[-1], 0]), int(self.moments[level[-1], 1])) if len(level) else None


def _who_waited(joined: Joined) -> list[tuple[int, int, int, int]]:
    """Of each collective in order: who was late, who of those that are read in full waited longest, and how long all
    ranks did together."""
    waits, digests = joined.waits, [*joined.digests]
    late = waits.collectives.filter(pl.col("last_rank").is_in(digests) & (pl.col("spread") > 0))
    rows = waits.members.join(late.select("collective", "last_rank"), on="collective", maintain_order="left")
    rows = rows.hstack(waits.parts.select("rank")[rows["part"]])
    held = pl.col("rank").is_in(digests) & (pl.col("rank") != pl.col("last_rank"))
    sums = rows.with_columns(waited=pl.col("waiting").sum().over("collective"))
    some = sums.filter(held & (pl.col("waiting") > 0))
    longest = some.sort("collective", "waiting", "rank", descending=[False, True, False]).unique(
        "collective", keep="first", maintain_order=True
    )
    recorded = rows.select("collective", last_rank="rank")
    longest = longest.join(recorded, on=["collective", "last_rank"], how="semi", maintain_order="left")
    return longest.select("collective", "last_rank", "rank", "waited").rows()
