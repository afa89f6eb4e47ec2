"""Was a fused attention kernel lost in compilation?"""

from __future__ import annotations

from tracekit.comparison.layers import PRICE, layer_by_layer, scope_changes
from tracekit.model.comparison import Comparison, Finding, KernelGroup
from tracekit.numbers import duration

#: The reason known; `comparison/layers.py` tells what it was measured on.
WHY = "A mask that only the compiled model makes can do this: fused kernels do not take every mask."

#: B keeps less than this share of A's attention time.
LOST = 0.1


def find_lost_attention(comparison: Comparison) -> Finding | None:
    """Found when A's attention kernels are gone from B, and B spends more on matrix products or has groups of kernels
    that lost one.

    The saving is what the groups that lost it take longer; where none is known, the extra time of the matrix products
    over what attention took. None when there is none.
    """
    a, b = comparison.a, comparison.b
    attention, kept = a.family_us("attention"), b.family_us("attention")
    gemm_us = b.family_us("gemm") - a.family_us("gemm")
    lost_us = [group.delta_us for group in comparison.groups if group.kind == "defused" and _tells(group)]
    # Products that Inductor wrote itself are of another family.
    if not attention or kept >= LOST * attention or (gemm_us <= 0 and not lost_us):
        return None
    extra_us = sum(lost_us) if lost_us else gemm_us - (attention - kept)
    return Finding(
        code="lost_attention",
        severity="warning",
        title="The fused attention kernel is lost",
        evidence=(
            f"Attention kernels took {duration(attention)} in {a.label} and take {duration(kept)} in "
            f"{b.label}{_products(gemm_us)}: attention is likely computed as matrix products and a softmax."
            f"{_types(comparison)} {WHY} {PRICE}"
        ),
        saving_us=extra_us if extra_us > 0 else None,
        advice=layer_by_layer(comparison.b),
        changes=scope_changes(comparison.b),
    )


def _products(gemm_us: float) -> str:
    return f", where matrix products take {duration(gemm_us)} more" if gemm_us > 0 else ""


def _tells(group: KernelGroup) -> bool:
    return any(sentence.startswith("The attention kernel") for sentence in group.evidence)


def _types(comparison: Comparison) -> str:
    """That the products are of float32 where they are: half of what they cost."""
    evidence = {line for group in comparison.groups if _tells(group) for line in group.evidence}
    return " The products are of float32." if any("float32" in line or "fp32" in line for line in evidence) else ""
