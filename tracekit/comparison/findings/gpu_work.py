"""Did B's kernels take longer than A's, and did B need markedly fewer of them?"""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Finding

#: Less than this is within what recordings of the same work differ by (1 to 4 % on an H200).
LONGER = 1.05
#: Fewer than this share of A's kernels is worth a line.
FEWER = 0.9


def find_more_gpu_time(comparison: Comparison) -> Finding | None:
    """Found when the GPU is busy for a twentieth longer in B: whatever B gained, it did not gain it in kernels."""
    facts = _counts_and_times(comparison)
    if facts is None or not facts["a_busy_us"] or facts["b_busy_us"] < LONGER * facts["a_busy_us"]:
        return None
    # Where it went other findings say, each with its own saving.
    return Finding("more_gpu_time", "warning", {"side": comparison.b.label, **facts}, saving_us=None)


def find_fewer_kernels(comparison: Comparison) -> Finding | None:
    """Found when B runs at least a tenth fewer kernels; says what that did to GPU time, which counts alone do not."""
    facts = _counts_and_times(comparison)
    if facts is None or facts["b_kernels"] >= FEWER * facts["a_kernels"]:
        return None
    return Finding("fewer_kernels", "info", dict(facts), saving_us=None)


def _counts_and_times(comparison: Comparison) -> dict[str, float] | None:
    a, b = comparison.a, comparison.b
    if not (a.analysis.kernels and b.analysis.kernels) or a.busy_us is None or b.busy_us is None:
        return None
    return {
        "a_kernels": a.analysis.kernels.count / a.steps,
        "b_kernels": b.analysis.kernels.count / b.steps,
        "a_busy_us": a.busy_us,
        "b_busy_us": b.busy_us,
    }
