"""How did each rank of a fleet spend its window?"""

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.digests import RankSummary
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


def account_ranks(summaries: dict[int, RankSummary], steps: Steps, waits: FleetWaits) -> tuple[RankUse, ...]:
    """In the order of `summaries`."""
    communication = _sum_communication(waits)
    last = waits.members.filter(pl.col("last") > pl.col("first")).unique("collective")["last_rank"]
    arrivals = dict(last.value_counts().iter_rows())
    spans, compute = np.nansum(steps.span, axis=1), np.nansum(steps.compute, axis=1)
    idle, slower = np.nansum(steps.idle, axis=1), np.nan_to_num(steps.slower)
    found = []
    for at, (rank, summary) in enumerate(summaries.items()):
        each = communication.get(rank, _Communication())
        exposed_us = max(float(spans[at] - compute[at] - idle[at].sum()), 0.0)
        bare_transfer = each.bare_joined - each.bare_waiting
        # Of collectives that overlap each other a part; exposed communication may hold some that was launched outside.
        part = min(exposed_us * 1e3 / each.bare, 1.0) if each.bare else 0.0
        causes = zip(IDLE_CAUSES, idle[at], strict=True)
        found.append(
            RankUse(
                rank=rank,
                path=summary.path,
                span_us=float(spans[at]),
                compute_us=float(compute[at]),
                communication_us=each.whole / 1e3,
                waiting_us=each.waiting / 1e3 if each.is_told() else None,
                transfer_us=(each.joined - each.waiting) / 1e3 if each.is_told() else None,
                exposed_us=exposed_us,
                exposed_waiting_us=part * each.bare_waiting / 1e3 if each.is_told() else None,
                exposed_transfer_us=part * bare_transfer / 1e3 if each.is_told() else None,
                idle_us=float(idle[at].sum()),
                idle_causes=tuple(CauseShare(cause, float(us)) for cause, us in causes if us),
                overlap_price_us=None,
                overlap_price_ci95=None,
                slower=float(slower[at]),
                collectives=each.count,
                last_arrivals=arrivals.get(rank, 0),
            )
        )
    return tuple(found)


def _sum_communication(waits: FleetWaits) -> dict[int, _Communication]:
    lasting = pl.col("end") - pl.col("start")
    known = pl.col("waiting") >= 0
    # Of what a collective takes the part that no compute covers; waiting is exposed as much as all of it.
    bare = (1 - pl.col("covered") / lasting.clip(1)).clip(0, 1)
    table = waits.parts.group_by("rank").agg(
        count=pl.len(),
        whole=lasting.sum(),
        joined=lasting.filter(known).sum(),
        waiting=pl.col("waiting").filter(known).sum(),
        bare=(lasting * bare).sum(),
        bare_joined=(lasting.filter(known) * bare.filter(known)).sum(),
        bare_waiting=(pl.col("waiting").filter(known) * bare.filter(known)).sum(),
    )
    return {row.pop("rank"): _Communication(**row) for row in table.iter_rows(named=True)}
