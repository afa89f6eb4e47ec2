"""How did each rank spend its window? span = compute + exposed transfer + exposed waiting + idle."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit import interval
from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.activities import compute_of
from tracekit.ranks.digests import RankDigest, RankSummary
from tracekit.ranks.fleets.runs import Runs
from tracekit.ranks.fleets.steps import Steps
from tracekit.ranks.fleets.waits import FleetWaits
from tracekit.ranks.job_figures import CauseShare, RankUse


class _Communication(Struct, frozen=True):
    """Nanoseconds of one rank; `bare` is what no compute covers, `joined` what was joined with other ranks'."""

    count: int = 0
    whole: int = 0
    joined: int = 0
    waiting: int = 0
    bare: float = 0.0
    bare_joined: float = 0.0
    bare_waiting: float = 0.0

    def is_told(self) -> bool:
        """Whether waiting and transfer are known."""
        return bool(self.joined) or not self.whole


def account_ranks(
    summaries: dict[int, RankSummary], steps: Steps, waits: FleetWaits, skews_us: Mapping[int, float]
) -> tuple[RankUse, ...]:
    """In the order of `summaries`."""
    communication = _sum_communication(waits)
    arrivals = dict(waits.collectives.filter(pl.col("spread") > 0)["last_rank"].value_counts().iter_rows())
    slower = np.nan_to_num(steps.slower)
    found = []
    for at, (rank, summary) in enumerate(summaries.items()):
        each = communication.get(rank, _Communication())
        span, compute, idle = (int(ns.sum()) for ns in (summary.spans_ns, summary.compute_ns, summary.idle_ns))
        exposed = max(span - compute - idle, 0)
        bare_transfer = each.bare_joined - each.bare_waiting
        # Of collectives that overlap each other a part; exposed communication may hold some that was launched outside.
        part = min(exposed / each.bare, 1.0) if each.bare else 0.0
        causes = zip(IDLE_CAUSES, summary.idle_ns.sum(axis=0).tolist(), strict=True)
        found.append(
            RankUse(
                rank=rank,
                path=summary.path,
                span_us=span / 1e3,
                compute_us=compute / 1e3,
                communication_us=each.whole / 1e3,
                waiting_us=each.waiting / 1e3 if each.is_told() else None,
                transfer_us=(each.joined - each.waiting) / 1e3 if each.is_told() else None,
                exposed_us=exposed / 1e3,
                exposed_waiting_us=part * each.bare_waiting / 1e3 if each.is_told() else None,
                exposed_transfer_us=part * bare_transfer / 1e3 if each.is_told() else None,
                idle_us=idle / 1e3,
                idle_causes=tuple(CauseShare(cause, ns / 1e3) for cause, ns in causes if ns),
                overlap_price_us=None,
                overlap_price_ci95=None,
                slower=float(slower[at]),
                collectives=each.count,
                last_arrivals=arrivals.get(rank, 0),
                start_skew_us=skews_us[rank],
            )
        )
    return tuple(found)


def exposed_of(digest: RankDigest, waiting_ns: Ints, *, told: bool) -> dict[str, float | None]:
    """Of a rank's digest, by how long it waited in each of its collectives, what of that no compute covers."""
    if not told:
        return {}
    window = np.array(digest.windows, dtype=np.int64).reshape(-1, 2)
    compute = compute_of(digest)
    starts, ends = (digest.collectives[column].to_numpy() for column in ("start_ns", "end_ns"))
    known = waiting_ns >= 0
    waits = interval.union(starts[known], starts[known] + waiting_ns[known])
    transfers = interval.union(starts[known] + waiting_ns[known], ends[known])
    both = np.concatenate((compute, waits))
    waiting, transfer = (
        int(interval.covered_within(interval.complement(covered, some), window).sum())
        for some, covered in ((waits, compute), (transfers, interval.union(both[:, 0], both[:, 1])))
    )
    return {"exposed_waiting_us": waiting / 1e3, "exposed_transfer_us": transfer / 1e3}


def _sum_communication(waits: FleetWaits) -> dict[int, _Communication]:
    rank, start, end, covered = (waits.parts[name].to_numpy() for name in ("rank", "start", "end", "covered"))
    lasting, waiting = end - start, waits.parts["waiting"].to_numpy()
    joined, waited = np.where(waiting >= 0, lasting, 0), np.maximum(waiting, 0)
    # Of what a collective takes the part that no compute covers; waiting is exposed as much as all of it.
    bare = np.clip(1 - covered / np.maximum(lasting, 1), 0, 1)
    runs = Runs(rank)
    sums = (
        runs.sums(each).tolist() for each in (lasting, joined, waited, lasting * bare, joined * bare, waited * bare)
    )
    rows = zip(runs.numbers.tolist(), runs.counts.tolist(), *sums, strict=True)
    return {rank: _Communication(*row) for rank, *row in rows}
