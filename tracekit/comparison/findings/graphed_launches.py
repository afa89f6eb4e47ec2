"""Did CUDA graphs take over the launching?"""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Finding, Side


def find_graphed_launches(comparison: Comparison) -> Finding | None:
    """Found when B launches kernels by graphs and A does not; says what became of idle time meanwhile."""
    a, b = comparison.a, comparison.b
    if not (a.analysis.launches and b.analysis.launches):
        return None
    if a.analysis.launches.graph_launches or not b.analysis.launches.graph_launches:
        return None
    share = b.analysis.launches.kernels_in_graphs / b.analysis.kernels.count if b.analysis.kernels else 0.0
    idle = comparison.deltas.idle_us
    change = f" GPU idle time changed by {idle / 1e3:+.3f} ms." if idle is not None else ""
    return Finding(
        code="graphed_launches",
        severity="info",
        title=f"CUDA graphs start {share:.0%} of the kernels of {b.label}",
        evidence=f"{_launches(a):,.0f} launches became {_launches(b):,.0f}.{change}",
        saving_us=None,
        advice=None,
    )


def _launches(side: Side) -> float:
    return side.analysis.launches.count / side.steps if side.analysis.launches else 0.0
