"""Did CUDA graphs take over the launching?"""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Finding
from tracekit.numbers import count, duration_change, percent


def find_graphed_launches(comparison: Comparison) -> Finding | None:
    """Found when B launches kernels by graphs and A does not; says what became of idle time meanwhile."""
    a, b = comparison.a, comparison.b
    if not (a.analysis.launches and b.analysis.launches):
        return None
    if a.analysis.launches.graph_launches or not b.analysis.launches.graph_launches:
        return None
    idle = comparison.deltas.idle_us
    change = f" GPU idle time changed by {duration_change(idle)}." if idle is not None else ""
    return Finding(
        code="graphed_launches",
        severity="info",
        title=f"CUDA graphs start {percent(b.graphed_share, 0)} of the kernels of {b.label}",
        evidence=f"{count(a.launches_per_step)} launches became {count(b.launches_per_step)}.{change}",
        saving_us=None,
        advice=None,
    )
