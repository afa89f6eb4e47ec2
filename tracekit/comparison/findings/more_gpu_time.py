"""Did B's kernels take longer than A's?"""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Finding

#: Less than this is within what recordings of the same work differ by (1 to 4 % on an H200).
MARKED = 1.05


def find_more_gpu_time(comparison: Comparison) -> Finding | None:
    """Found when the GPU is busy for a twentieth longer in B: whatever B gained, it did not gain it in kernels."""
    a, b = comparison.a, comparison.b
    if not (a.analysis.kernels and b.analysis.kernels and a.busy_us and b.busy_us):
        return None
    if b.busy_us < MARKED * a.busy_us:
        return None
    a_count, b_count = a.analysis.kernels.count / a.steps, b.analysis.kernels.count / b.steps
    return Finding(
        code="more_gpu_time",
        severity="warning",
        facts={
            "side": b.label,
            "a_busy_us": a.busy_us,
            "b_busy_us": b.busy_us,
            "a_kernels": a_count,
            "b_kernels": b_count,
        },
        # Where it went other findings say, each with its own saving.
        saving_us=None,
    )
