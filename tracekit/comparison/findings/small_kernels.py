"""Are B's kernels too small to fill the GPU? Then neither bytes nor operations limit it."""

from tracekit.model.comparison import Comparison, Finding


def find_small_kernels(comparison: Comparison) -> Finding | None:
    """Found when B is latency-bound. What larger kernels would save nobody has measured."""
    side, bound = comparison.b, comparison.b_bound
    if bound is None or bound.kind != "latency-bound":
        return None
    facts = {"side": side.label, "small_us": bound.parts_us["small"], "whole_us": sum(bound.parts_us.values())}
    return Finding("small_kernels", "info", facts)
