"""What was each collective of a job, one by one and by kind?"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from statistics import median
from typing import Any

import numpy as np
from msgspec.structs import replace

from tracekit import interval
from tracekit.ranks.job_figures import (
    CollectiveClass,
    CollectivePart,
    CollectiveUse,
    OneCollective,
    RankBytes,
    RankTimes,
    RankWait,
)
from tracekit.ranks.joined import Joined
from tracekit.ranks.late_ranks import LatePlaces, causes_of
from tracekit.ranks.lateness import Lateness, find_lateness
from tracekit.ranks.links import peak_gbps
from tracekit.ranks.rows import Member
from tracekit.ranks.waiting import compute_of

#: Of a collective's time over its ranks: more is waiting, less than the second is transfer.
MOSTLY, HARDLY = 2 / 3, 1 / 3
#: What a rank sends, by what the collective carries: NCCL tests' doc/PERFORMANCE.md.
BUS_FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
}
VARYING = "all_to_all"
#: So many single collectives are the worst.
MOST_WORST = 20


def sum_collectives(joined: Joined) -> tuple[CollectiveUse, ...]:
    """A row for each kind, group and size; the one with most time first."""
    table = _Table(joined)
    kinds: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for k, each in enumerate(joined.matching.collectives):
        name, *known, width = table.told(k)
        # What ranks give each other in an all-to-all differs from one to the next.
        kinds[name, *known, None if name == VARYING else width, each.group, each.matched_by].append(k)
    rows = [CollectiveUse(**table.figures(some)) for some in kinds.values()]
    return tuple(sorted(rows, key=lambda each: -((each.transfer_us or 0.0) + sum(it.us for it in each.waiting_us))))


def list_collectives(joined: Joined) -> tuple[OneCollective, ...]:
    """Every collective, in order of its start."""
    table = _Table(joined)
    lateness = find_lateness(joined.digests, joined.matching, joined.waits, joined.clocks)
    why = {each.collective: each for each in lateness}
    return tuple(table.one(k, why.get(k)) for k in range(len(joined.matching.collectives)))


def worst_collectives(joined: Joined, lateness: Iterable[Lateness]) -> tuple[OneCollective, ...]:
    """Those in which ranks waited longest, all together, and where each one's lateness was made."""
    waiting = joined.waits.waiting_ns
    waited = [sum(int(waiting[it.rank][it.row]) for it in each.members) for each in joined.matching.collectives]
    worst = heapq.nlargest(MOST_WORST, (k for k, ns in enumerate(waited) if ns > 0), key=lambda k: waited[k])
    table, why = _Table(joined), {each.collective: each for each in lateness}
    late_places = LatePlaces(joined.digests)
    places = {k: late_places.of([why[k]]) if k in why else () for k in worst}
    return tuple(replace(table.one(k, why.get(k)), where=next(iter(places[k]), None)) for k in worst)


class _Table:
    """What is known of each collective of the job by its number."""

    def __init__(self, joined: Joined) -> None:
        self.joined = joined
        self.starts, self.lasting, self.names, self.given, self.exposed = {}, {}, {}, {}, {}
        since_zero = joined.since_zero()
        for rank, digest in joined.digests.items():
            starts, ends = (digest.collectives[column].to_numpy() for column in ("start_ns", "end_ns"))
            self.starts[rank], self.lasting[rank] = since_zero(rank, starts), ends - starts
            transfers = np.stack((starts + np.maximum(joined.waits.waiting_ns[rank], 0), ends), axis=1)
            self.exposed[rank] = ends - transfers[:, 0] - interval.covered_within(compute_of(digest), transfers)
            self.names[rank] = digest.collectives.select("collective", "group", "size", "dtype", "bytes").rows()
            self.given[rank] = digest.collectives.select("sent_bytes", "received_bytes").rows()

    def told(self, k: int) -> tuple[Any, ...]:
        """Its collective, group, size of the group, type and bytes, as its first rank recorded them."""
        members = self.joined.matching.collectives[k].members
        *known, width = self.names[members[0].rank][members[0].row]
        if known[0] == VARYING:
            widths = [self.names[it.rank][it.row][-1] for it in members]
            width = max((each for each in widths if each is not None), default=None)
        return (*known, width)

    def rank_bytes(self, some: list[int]) -> tuple[RankBytes, ...]:
        """What each rank gave and took in these all-to-alls; none where a recording does not say."""
        sent: Counter[int] = Counter()
        received: Counter[int] = Counter()
        for k in some:
            for it in self.joined.matching.collectives[k].members:
                given, taken = self.given[it.rank][it.row]
                if given is None or taken is None:
                    return ()
                sent[it.rank] += given
                received[it.rank] += taken
        return tuple(RankBytes(rank, sent[rank], received[rank]) for rank in sorted(sent))

    def one(self, k: int, why: Lateness | None) -> OneCollective:
        known = self.joined.clocks.known
        first = self.joined.matching.collectives[k].members[0]
        parts: list[CollectivePart] = []
        for it in self.joined.matching.collectives[k].members:
            waited, lasted = int(self.joined.waits.waiting_ns[it.rank][it.row]), int(self.lasting[it.rank][it.row])
            start_us = int(self.starts[it.rank][it.row]) / 1e3 if known else None
            parts.append(CollectivePart(it.rank, start_us, waited / 1e3, (lasted - waited) / 1e3))
        return OneCollective(
            **self.figures([k]),
            start_us=min((each.start_us for each in parts if each.start_us is not None), default=None),
            last_rank=self.joined.waits.last[k] if known else None,
            parts=tuple(parts),
            number=k + 1,
            step=self._step(first),
            causes=causes_of([why]) if why else (),
        )

    def _step(self, part: Member) -> int | None:
        """The number of its step or span."""
        digest = self.joined.digests[part.rank]
        return digest.steps[digest.collectives["step"][part.row]] if digest.steps else None

    def figures(self, some: list[int]) -> dict[str, Any]:
        """The fields of a `CollectiveUse`: sums over these collectives, which are of one kind."""
        name, group, size, dtype, width = self.told(some[0])
        if name == VARYING and width is not None:
            width = round(median(self.told(k)[-1] or 0 for k in some))
        collectives, waits, clocks = self.joined.matching.collectives, self.joined.waits, self.joined.clocks
        waiting: Counter[int] = Counter()
        transfers: list[int] = []
        exposed_ns = 0
        for k in some:
            for it in collectives[k].members:
                waited = int(waits.waiting_ns[it.rank][it.row])
                waiting[it.rank] += waited
                transfers.append(int(self.lasting[it.rank][it.row]) - waited)
                exposed_ns += int(self.exposed[it.rank][it.row])
        transfer_ns, usual_ns = sum(transfers), median(transfers)
        n = size if size is not None else len(collectives[some[0]].group)
        algorithm = width / usual_ns if width is not None and usual_ns > 0 else None
        factor = BUS_FACTORS.get(name)
        late = Counter(waits.last[k] for k in some if waits.spread_ns[k] > 0 and clocks.known)
        spread_ns = median(waits.spread_ns[k] for k in some)
        share = waiting.total() / max(waiting.total() + transfer_ns, 1)
        kind: CollectiveClass = "waiting" if share >= MOSTLY else "mixed" if share > HARDLY else "transfer"
        if not clocks.known or (share > HARDLY and spread_ns <= (clocks.uncertainty_ns or 0.0)):
            kind = "inconclusive"
        return {
            "name": name,
            "group": group,
            "ranks": collectives[some[0]].group,
            "dtype": dtype,
            "bytes": width,
            "count": len(some),
            "transfer_us": transfer_ns / 1e3,
            "arrival_spread_us": spread_ns / 1e3 if clocks.known else None,
            "late_ranks": tuple(RankTimes(rank, times) for rank, times in late.most_common()),
            "waiting_us": tuple(RankWait(rank, ns / 1e3) for rank, ns in sorted(waiting.items())),
            "algbw_gbps": algorithm,
            "busbw_gbps": algorithm * factor(n) if algorithm and factor and n else algorithm,
            "peak_gbps": peak_gbps(self.joined.digests, collectives[some[0]].group, clocks.hosts),
            "exposed_transfer_us": exposed_ns / 1e3,
            "kind": kind,
            "matched_by": collectives[some[0]].matched_by,
            "rank_bytes": self.rank_bytes(some) if name == VARYING else (),
        }
