"""Was a fused attention kernel lost in compilation?

Measured on an H200, torch 2.11 and transformers 5.17, batch 1, bfloat16: compiled whole, both models make an attention
mask that eager code skips (transformers does not look into masks while it is traced, before torch 2.14). ViT-B's
attention then becomes products and a softmax, 814 us of GPU time a call; with its layers compiled one by one it keeps
cuDNN's kernel, 644 us, and the call, which waits for the host, takes 5.25 ms instead of 4.58. Four layers of gemma: 144
us of attention whole, 65 us layer by layer, as eager.
"""

from __future__ import annotations

from tracekit.comparison.commands import layer_by_layer, scope_changes
from tracekit.model.comparison import Comparison, Finding

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
    shown = [(group, {each.kind for each in group.evidence}) for group in comparison.groups]
    lost_us = [group.delta_us for group, kinds in shown if group.kind == "defused" and "attention_lost" in kinds]
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
            # Half of what they cost.
            "in_float32": any(kinds >= {"attention_lost", "single_precision"} for _, kinds in shown),
        },
        saving_us=extra_us if extra_us > 0 else None,
        action=layer_by_layer(comparison.b),
        changes=scope_changes(comparison.b),
    )
