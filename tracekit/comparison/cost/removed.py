"""How much memory traffic did B save, in all groups together?"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tracekit.comparison.members import time_of
from tracekit.model.comparison import KernelGroup
from tracekit.model.rates import TrafficTotal


def total_traffic(groups: Iterable[KernelGroup]) -> TrafficTotal | None:
    """The traffic of the groups in which it is known of every call of both sides, per step, and how much of the GPU
    time these are; None where it is known of none."""
    groups = tuple(groups)
    known = [(group, group.traffic) for group in groups if group.traffic and group.traffic.removed_bytes is not None]
    if not any(traffic.eager_bytes or traffic.compiled_bytes for _, traffic in known):
        return None
    return TrafficTotal(
        eager_bytes=math.fsum(traffic.eager_bytes or 0.0 for _, traffic in known),
        compiled_bytes=math.fsum(traffic.compiled_bytes or 0.0 for _, traffic in known),
        a_time_known=_share([time_of(group.a) for group, _ in known], [time_of(group.a) for group in groups]),
        b_time_known=_share([time_of(group.b) for group, _ in known], [time_of(group.b) for group in groups]),
    )


def _share(some: Iterable[float], all_: Iterable[float]) -> float:
    whole = math.fsum(all_)
    return min(math.fsum(some) / whole, 1.0) if whole else 1.0
