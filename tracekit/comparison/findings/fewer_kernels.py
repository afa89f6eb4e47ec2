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
        title=f"{a_count - b_count:,.0f} fewer kernels",
        evidence=(
            f"{a_count:,.0f} kernels became {b_count:,.0f}; GPU busy time went from {a_busy / 1e3:.3f} ms to "
            f"{b_busy / 1e3:.3f} ms."
        ),
        saving_us=None,
        advice=None,
    )
