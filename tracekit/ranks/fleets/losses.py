"""What do stragglers cost, whom, and why?"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from msgspec.structs import replace

from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.fleets.steps import Steps
from tracekit.ranks.fleets.stragglers import known_median
from tracekit.ranks.fleets.waits import FleetWaits
from tracekit.ranks.job_figures import CauseShare, Straggler, WaitedFor


def sum_waits(waits: FleetWaits) -> tuple[WaitedFor, ...]:
    """How long each rank waited for each other."""
    told = waits.parts.filter((pl.col("late") >= 0) & (pl.col("waiting") > 0))
    sums = told.group_by("rank", "late").agg(pl.col("waiting").sum()).sort("rank", "late")
    return tuple(WaitedFor(rank, late, ns / 1e3) for rank, late, ns in sums.iter_rows())


def explain_straggler(each: Straggler, steps: Steps, waited: Sequence[WaitedFor]) -> Straggler:
    """With what it lost, and why: what it has more of than its peers."""
    if each.kind == "link":
        return each
    causes = dict.fromkeys(("compute", *IDLE_CAUSES), 0.0)
    lost = []
    for row in np.flatnonzero(np.isin(steps.ranks, each.ranks)):
        alike = steps.peers == steps.peers[row]
        more = steps.compute[row] - known_median(steps.compute[alike], axis=0)
        causes["compute"] += float(np.nansum(more))
        idle = np.nansum(steps.idle[row] - known_median(steps.idle[alike], axis=0), axis=0)
        for cause, us in zip(IDLE_CAUSES, idle, strict=True):
            causes[cause] += float(us)
        lost.append(float(np.nansum(more) + idle.sum()))
    lost_us = float(np.median(lost))
    made = sorted(((cause, us) for cause, us in causes.items() if us > 0), key=lambda one: -one[1])
    whole = sum(us for _, us in made) or 1.0
    shares = tuple(CauseShare(cause, lost_us * us / whole) for cause, us in made)
    waited_us = sum(one.us for one in waited if one.late in each.ranks)
    return replace(each, lost_us=lost_us, causes=shares, waited_us=waited_us)
