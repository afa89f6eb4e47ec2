"""Did B need markedly fewer kernels?"""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Finding

#: Fewer than this share of A's kernels is worth a line.
MARKED = 0.9


def find_fewer_kernels(comparison: Comparison) -> Finding | None:
    """Found when B runs at least a tenth fewer kernels; says what that did to GPU time, which counts alone do not."""
    a, b = comparison.a, comparison.b
    if not (a.analysis.kernels and b.analysis.kernels):
        return None
    a_count, b_count = a.analysis.kernels.count / a.steps, b.analysis.kernels.count / b.steps
    a_busy, b_busy = a.busy_us, b.busy_us
    if b_count >= MARKED * a_count or a_busy is None or b_busy is None:
        return None
    return Finding(
        code="fewer_kernels",
        severity="info",
        facts={"a_kernels": a_count, "b_kernels": b_count, "a_busy_us": a_busy, "b_busy_us": b_busy},
        saving_us=None,
    )
