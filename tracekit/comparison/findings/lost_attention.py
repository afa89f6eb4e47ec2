"""Was a fused attention kernel lost in compilation?"""

from __future__ import annotations

from tracekit.comparison.layers import layer_by_layer, scope_changes
from tracekit.model.comparison import Comparison, Finding, KernelGroup

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
        facts={
            "a": a.label,
            "b": b.label,
            "attention_before_us": attention,
            "attention_after_us": kept,
            "products_more_us": gemm_us,
            "in_float32": _in_float32(comparison),
        },
        saving_us=extra_us if extra_us > 0 else None,
        action=layer_by_layer(comparison.b),
        changes=scope_changes(comparison.b),
    )


def _tells(group: KernelGroup) -> bool:
    return any(each.kind == "attention_lost" for each in group.evidence)


def _in_float32(comparison: Comparison) -> bool:
    """Whether the products are of float32: half of what they cost."""
    shown = (each for group in comparison.groups if _tells(group) for each in group.evidence)
    return any(each.kind == "single_precision" for each in shown)
