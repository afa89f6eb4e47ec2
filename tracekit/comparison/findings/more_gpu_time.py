"""Did B's kernels take longer than A's?"""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Finding
from tracekit.numbers import count, duration, percent

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
        title=f"The kernels of {b.label} take longer: GPU busy time grew by {percent(b.busy_us / a.busy_us - 1, 0)}",
        evidence=(
            f"GPU busy time went from {duration(a.busy_us)} to {duration(b.busy_us)}, "
            f"kernels from {count(a_count)} to {count(b_count)}."
        ),
        # Where it went other findings say, each with its own saving.
        saving_us=None,
        advice=None,
    )
