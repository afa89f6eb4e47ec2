"""How long did each rank wait in each collective, and how is its time divided?

A rank waits from its kernel's start to the last participant's start, at most for as long as the kernel runs; the rest
is transfer. Exposed is what no other GPU work covers. span = compute + exposed transfer + exposed waiting + idle, in
whole nanoseconds.
"""

import numpy as np
from msgspec import Struct

from tracekit import interval
from tracekit.interval import Intervals, Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.activities import communicating_outside, computing
from tracekit.ranks.clocks import Clocks
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.job_figures import CauseShare
from tracekit.ranks.matching import Matching
from tracekit.ranks.rows import Collective, times_of


class Waits(Struct, frozen=True):
    """Of each rank's collectives, row by row: nanoseconds of waiting, -1 where it cannot be told."""

    waiting_ns: dict[int, Ints]
    #: Of each collective in turn: who waited for whom; who was waited for longest, else came last; and how long.
    late: tuple[dict[int, int], ...]
    last: tuple[int, ...]
    spread_ns: tuple[int, ...]


def measure_waits(digests: dict[int, RankDigest], matching: Matching, clocks: Clocks) -> Waits:
    """Who waited for whom: a rank for those that it exchanges something with. On unknown clocks the shortest kernel of
    a collective is taken for its transfer: what others took longer they waited at least."""
    starts, ends = (times_of(digests, clocks, column) for column in ("start_ns", "end_ns"))
    waiting = {rank: np.full(len(each), -1, dtype=np.int64) for rank, each in starts.items()}
    late: list[dict[int, int]] = []
    last: list[int] = []
    spread: list[int] = []
    for each in matching.collectives:
        begun = {it.rank: int(starts[it.rank][it.row]) for it in each.members}
        over = {it.rank: int(ends[it.rank][it.row]) for it in each.members}
        if not clocks.known:
            # As if all had left at once.
            begun = {rank: begun[rank] - over[rank] for rank in begun}
            over = dict.fromkeys(over, 0)
        waits, late_for = _waits_of(each, begun, over)
        for it in each.members:
            waiting[it.rank][it.row] = waits[it.rank]
        longest = max(waits, key=lambda rank: (waits[rank], -rank))
        came_last = max(begun, key=lambda rank: (begun[rank], rank))
        late.append(late_for)
        last.append(late_for.get(longest, came_last))
        spread.append(begun[came_last] - min(begun.values()) if each.flow is None else waits[longest])
    return Waits(waiting, tuple(late), tuple(last), tuple(spread))


def _waits_of(each: Collective, begun: dict[int, int], over: dict[int, int]) -> tuple[dict[int, int], dict[int, int]]:
    """How long each rank waited, and for whom. For those that it only gives something to, it waited if it was still
    there when they came: what is small is sent without them."""
    if each.flow is None:
        late = max(begun, key=lambda rank: (begun[rank], rank))
        waits = {rank: min(begun[late] - begun[rank], over[rank] - begun[rank]) for rank in begun}
        return waits, {rank: late for rank, ns in waits.items() if ns > 0}
    waits, late_for = dict.fromkeys(begun, 0), {}
    for rank in begun:
        for other, needed in each.partners(rank):
            ns = min(begun[other], over[rank]) - begun[rank]
            if ns > waits[rank] and (needed or begun[other] <= over[rank]):
                waits[rank], late_for[rank] = ns, other
    return waits, late_for


class Account(Struct, frozen=True):
    """How one rank spent its window, in nanoseconds: span = compute + exposed + idle. Waiting and transfer are None
    where some collective was joined to none of another rank."""

    span_ns: int
    compute_ns: int
    communication_ns: int
    exposed_ns: int
    idle_ns: int
    waiting_ns: int
    transfer_ns: int
    unknown_ns: int  #: Of communication that is neither: collectives that were not joined.
    exposed_waiting_ns: int
    exposed_transfer_ns: int
    exposed_unknown_ns: int
    idle_causes: tuple[CauseShare, ...]


def compute_of(digest: RankDigest) -> Intervals:
    """When the rank's GPU did anything but communicate."""
    own = computing(digest)
    return interval.union(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())


def account_of(digest: RankDigest, waiting_ns: Ints) -> Account:
    """The rank's account, from its digest and how long it waited in each of its collectives."""
    window = np.array(digest.windows, dtype=np.int64).reshape(-1, 2)
    compute = compute_of(digest)
    starts, ends = (digest.collectives[column].to_numpy() for column in ("start_ns", "end_ns"))
    known = waiting_ns >= 0
    waits = interval.union(starts[known], starts[known] + waiting_ns[known])
    transfers = interval.union(starts[known] + waiting_ns[known], ends[known])
    outside = communicating_outside(digest).select("start_ns", "end_ns").to_numpy()
    communication = interval.union(np.concatenate((starts, outside[:, 0])), np.concatenate((ends, outside[:, 1])))

    def alone(some: Intervals, *others: Intervals) -> int:
        """Of `some` what none of the others covers."""
        edges = np.concatenate([others_.reshape(-1, 2) for others_ in others])
        covered = interval.union(edges[:, 0], edges[:, 1])
        return int(interval.covered_within(interval.complement(covered, some), window).sum())

    span, busy = interval.length(window), int(interval.covered_within(compute, window).sum())
    exposed = alone(communication, compute)
    exposed_waiting = alone(waits, compute)
    exposed_transfer = alone(transfers, compute, waits)
    causes = {cause: int(digest.gaps[cause].sum()) for cause in IDLE_CAUSES}
    return Account(
        span_ns=span,
        compute_ns=busy,
        communication_ns=int((ends - starts).sum()),
        exposed_ns=exposed,
        idle_ns=span - busy - exposed,
        waiting_ns=int(waiting_ns[known].sum()),
        transfer_ns=int((ends - starts - waiting_ns)[known].sum()),
        unknown_ns=int((ends - starts)[~known].sum()),
        exposed_waiting_ns=exposed_waiting,
        exposed_transfer_ns=exposed_transfer,
        exposed_unknown_ns=exposed - exposed_waiting - exposed_transfer,
        idle_causes=tuple(CauseShare(cause, ns / 1e3) for cause, ns in causes.items() if ns),
    )
