"""Are B's kernels too small to fill the GPU? Then neither bytes nor operations limit it."""

from tracekit.model.comparison import Comparison, Finding
from tracekit.statements.findings.kernels import SmallKernels


def find_small_kernels(comparison: Comparison) -> Finding | None:
    """Found when B is latency-bound. What larger kernels would save nobody has measured."""
    side, bound = comparison.b, comparison.b.bound
    if bound is None or bound.kind != "latency-bound":
        return None
    return Finding(SmallKernels(side.label, bound.parts_us["small"], sum(bound.parts_us.values())))
