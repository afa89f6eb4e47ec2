"""Did CUDA graphs take over the launching?"""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Finding


def find_graphed_launches(comparison: Comparison) -> Finding | None:
    """Found when B launches kernels by graphs and A does not; says what became of idle time meanwhile."""
    a, b = comparison.a, comparison.b
    if not (a.analysis.launches and b.analysis.launches):
        return None
    if a.analysis.launches.graph_launches or not b.analysis.launches.graph_launches:
        return None
    return Finding(
        code="graphed_launches",
        severity="info",
        facts={
            "side": b.label,
            "graphed_share": b.graphed_share,
            "a_launches": a.launches_per_step,
            "b_launches": b.launches_per_step,
            "idle_change_us": comparison.deltas.idle_us,
        },
        saving_us=None,
    )
