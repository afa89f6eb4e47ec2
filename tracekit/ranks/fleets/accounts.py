"""How did each rank spend its window? span = compute + exposed transfer + exposed waiting + idle."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.interval import Floats, Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.activities import compute_of
from tracekit.ranks.digests import RankDigest, RankSummary
from tracekit.ranks.fleets.runs import Runs
from tracekit.ranks.fleets.steps import Steps
from tracekit.ranks.fleets.waits import FleetWaits
from tracekit.ranks.job_figures import CauseShare, RankUse


def account_ranks(
    summaries: dict[int, RankSummary], steps: Steps, waits: FleetWaits, skews_us: Mapping[int, float]
) -> tuple[RankUse, ...]:
    """In the order of `summaries`."""
    communication = _sum_communication(waits)
    arrivals = dict(waits.collectives.filter(pl.col("spread") > 0)["last_rank"].value_counts().iter_rows())
    found = []
    for (rank, summary), slower in zip(summaries.items(), np.nan_to_num(steps.slower).tolist(), strict=True):
        count, whole, joined, waiting, bare, bare_joined, bare_waiting = communication.get(rank, (0,) * 7)
        span, compute, idle = (int(ns.sum()) for ns in (summary.spans_ns, summary.compute_ns, summary.idle_ns))
        exposed = max(span - compute - idle, 0)
        # Of collectives that overlap each other a part; exposed communication may hold some that was launched outside.
        part = min(exposed / bare, 1.0) if bare else 0.0
        causes = zip(IDLE_CAUSES, summary.idle_ns.sum(axis=0).tolist(), strict=True)
        # Of what was joined with no other rank's it is not known what was waiting.
        known = bool(joined) or not whole
        found.append(
            RankUse(
                rank=rank,
                path=summary.path,
                span_us=span / 1e3,
                compute_us=compute / 1e3,
                communication_us=whole / 1e3,
                waiting_us=waiting / 1e3 if known else None,
                transfer_us=(joined - waiting) / 1e3 if known else None,
                exposed_us=exposed / 1e3,
                exposed_waiting_us=part * bare_waiting / 1e3 if known else None,
                exposed_transfer_us=part * (bare_joined - bare_waiting) / 1e3 if known else None,
                idle_us=idle / 1e3,
                idle_causes=tuple(CauseShare(cause, ns / 1e3) for cause, ns in causes if ns),
                overlap_price_us=None,
                overlap_price_ci95=None,
                slower=slower,
                collectives=count,
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


def bare_share(parts: pl.DataFrame) -> Floats:
    """Of each part of a collective the share that no compute covers."""
    bare: Floats = np.clip(1 - (parts["covered"] / (parts["end"] - parts["start"]).clip(1)).to_numpy(), 0, 1)
    return bare


def _sum_communication(waits: FleetWaits) -> dict[int, tuple[int, int, int, int, float, float, float]]:
    """Of each rank how many collectives it has, and nanoseconds of all, of those that were joined with other ranks',
    and of waiting; then the same where no compute covers them: waiting is exposed as much as all of a collective."""
    rank, start, end, waiting = (waits.parts[name].to_numpy() for name in ("rank", "start", "end", "waiting"))
    lasting, bare, runs = end - start, bare_share(waits.parts), Runs(rank)
    whole = (lasting, np.where(waiting >= 0, lasting, 0), np.maximum(waiting, 0))
    sums = (runs.sums(each).tolist() for each in (*whole, *(each * bare for each in whole)))
    return dict(zip(runs.numbers.tolist(), zip(runs.counts.tolist(), *sums, strict=True), strict=True))
