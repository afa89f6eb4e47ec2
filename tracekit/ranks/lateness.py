"""Since when was the rank late that others waited for, and what did it do more of since then?

A rank that arrives late at a collective may have fallen behind long before it: in a DDP step a host that slept before
the forward is late at every bucket of the backward. So both ranks are followed back to where they were last level, and
their accounts from there on are compared: what the late one did more of made it late.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit import interval
from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.clocks import Clocks
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.matching import Matching
from tracekit.ranks.rows import times_of
from tracekit.ranks.waiting import Waits, compute_of

#: Ranks are level where the one was behind by at most this share of what it is behind now.
LEVEL = 0.1
#: A host that was held up once shows in one gap; one that is slow throughout, in many.
ONE_GAP = 0.4
#: What a rank did between two collectives, in the order of a report.
CAUSES = ("compute", "communication", *IDLE_CAUSES)


class _Line(Struct, frozen=True):
    """One rank's time, to be asked for stretches of it."""

    busy: tuple[tuple[Ints, Ints], ...]  #: Starts and ends of compute, and of exposed communication.
    starts: Ints
    ends: Ints
    sums: Ints  #: Nanoseconds of each cause before each gap.
    ready: Ints  #: When it was ready for each collective, and when that was over.
    over: Ints
    held: NDArray[np.bool_]  #: Nothing else to do from being ready for the collective until it was over.

    def account(self, begin: int, end: int) -> Ints:
        """Nanoseconds of each of CAUSES from `begin` to `end`, between which gaps are cut; the other way round it
        is negative, for a rank may be ready for a collective before the one before it is over."""
        if end < begin:
            return -self.account(end, begin)
        first, last = np.searchsorted(self.starts, (begin, end), side="left")
        busy = []
        for starts, ends in self.busy:
            # Only what lies in the stretch is looked at: there are as many stretches as collectives.
            some = slice(np.searchsorted(ends, begin, side="right"), np.searchsorted(starts, end, side="left"))
            busy.append(int((np.minimum(ends[some], end) - np.maximum(starts[some], begin)).sum()))
        return np.concatenate((np.array(busy, dtype=np.int64), self.sums[last] - self.sums[first]))

    def longest_gap(self, begin: int, end: int) -> int:
        """Nanoseconds of the longest idle gap in that stretch, whatever cuts it."""
        first, last = np.searchsorted(self.starts, (begin, end), side="left")
        starts, ends = self.starts[first:last], self.ends[first:last]
        if not len(starts):
            return 0
        # Parts of one gap follow on each other.
        fresh = np.concatenate(([0], np.flatnonzero(starts[1:] != ends[:-1]) + 1))
        return int(np.add.reduceat(ends - starts, fresh).max())


def _line(digest: RankDigest) -> _Line:
    compute = compute_of(digest)
    talk = interval.union(*(digest.collectives[column].to_numpy() for column in ("start_ns", "end_ns")))
    parts = digest.gaps.select(IDLE_CAUSES).to_numpy()
    sums = np.concatenate((np.zeros((1, len(IDLE_CAUSES)), dtype=np.int64), np.cumsum(parts, axis=0)))
    starts, ends = digest.gaps.select("start_ns", "end_ns").to_numpy().T
    ready, over = digest.collectives.select("ready_ns", "end_ns").to_numpy().T
    covered = interval.covered_within(compute, np.stack((ready, over), axis=1))
    held = covered <= LEVEL * (over - ready)
    busy = tuple((each[:, 0].copy(), each[:, 1].copy()) for each in (compute, interval.complement(compute, talk)))
    return _Line(busy, starts.copy(), ends.copy(), sums, ready.copy(), over.copy(), held)


class Lateness(Struct, frozen=True):
    """One collective that a rank was late for: the stretches, by each rank's own clock, in which it fell behind the
    rank that waited longest, and what it did more of there."""

    collective: int  #: Its place in the matching.
    late: int
    waiter: int
    waited_ns: int  #: By all ranks together.
    of_late: tuple[int, int]
    of_waiter: tuple[int, int]
    more_ns: Ints  #: Of CAUSES; they add up to the lateness, what the late rank did less of is negative.
    one_gap: bool  #: Whether most of it is one idle gap.


def find_lateness(
    digests: dict[int, RankDigest], matching: Matching, waits: Waits, clocks: Clocks
) -> tuple[Lateness, ...]:
    """Every collective that somebody waited in, in order; none where the clocks are unknown."""
    if not clocks.known:
        return ()
    ready = times_of(digests, clocks, "ready_ns")
    lines = {rank: _line(digest) for rank, digest in digests.items()}
    rows = [{it.rank: it.row for it in each.members} for each in matching.collectives]
    # Of each rank its row in each collective; -1: it has none.
    own_rows = {rank: np.full(len(rows), -1, dtype=np.int64) for rank in digests}
    for k, each in enumerate(rows):
        for rank, row in each.items():
            own_rows[rank][k] = row
    pairs: dict[tuple[int, int], _Pair] = {}
    found: list[Lateness] = []
    for k, late in enumerate(waits.last):
        waited = {rank: int(waits.waiting_ns[rank][row]) for rank, row in rows[k].items()}
        waiter = max(waited, key=lambda rank: (waited[rank], -rank))
        if waiter == late or waited[waiter] <= 0:
            continue
        lag = int(ready[late][rows[k][late]] - ready[waiter][rows[k][waiter]])
        if (late, waiter) not in pairs:
            numbers = np.flatnonzero((own_rows[late] >= 0) & (own_rows[waiter] >= 0))
            both = [(rank, own_rows[rank][numbers]) for rank in (late, waiter)]
            held = np.logical_and(*(lines[rank].held[own] for rank, own in both))
            behind = ready[late][both[0][1]] - ready[waiter][both[1][1]]
            moments = [np.where(held, lines[rank].over[own], lines[rank].ready[own]) for rank, own in both]
            pairs[late, waiter] = _Pair(numbers, behind, held, np.stack(moments, axis=1))
        begins = pairs[late, waiter].last_level(k, lag)
        if begins is None:
            begins = (digests[late].windows[0][0], digests[waiter].windows[0][0])
        ends = (int(lines[late].ready[rows[k][late]]), int(lines[waiter].ready[rows[k][waiter]]))
        of_late, of_waiter = (begins[0], ends[0]), (begins[1], ends[1])
        more = lines[late].account(*of_late) - lines[waiter].account(*of_waiter)
        longest = lines[late].longest_gap(*of_late) - lines[waiter].longest_gap(*of_waiter)
        one_gap = longest >= ONE_GAP * max(int(more[more > 0].sum()), 1)
        found.append(Lateness(k, late, waiter, sum(waited.values()), of_late, of_waiter, more, one_gap))
    return tuple(found)


class _Pair(Struct, frozen=True):
    """What two ranks did together: the collectives of both by their numbers, how far the one was behind at each,
    whether both had nothing else to do until it was over, and when it was over where they had, else when each was ready
    for it."""

    numbers: Ints
    behind: Ints
    held: NDArray[np.bool_]
    moments: Ints

    def last_level(self, k: int, lag: int) -> tuple[int, int] | None:
        """When the two were last level before collective `k`, by their own clocks: ready for one at about the same
        time, or both with nothing else to do until one was over."""
        before = slice(int(np.searchsorted(self.numbers, k)))
        level = np.flatnonzero(self.held[before] | (self.behind[before] <= LEVEL * max(lag, 0)))
        return (int(self.moments[level[-1], 0]), int(self.moments[level[-1], 1])) if len(level) else None
