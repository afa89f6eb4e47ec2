"""Was a fused attention kernel lost in compilation?"""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Finding, KernelGroup
from tracekit.numbers import duration

#: B keeps less than this share of A's attention time.
LOST = 0.1


def find_lost_attention(comparison: Comparison) -> Finding | None:
    """Found when A's attention kernels are gone from B and B spends more on matrix products.

    The saving is what the groups that lost it take longer; where none is known, the extra time of the matrix products
    over what attention took. None when there is none.
    """
    a, b = comparison.a, comparison.b
    attention, kept = a.family_us("attention"), b.family_us("attention")
    gemm_us = b.family_us("gemm") - a.family_us("gemm")
    if not attention or kept >= LOST * attention or gemm_us <= 0:
        return None
    lost_us = [group.delta_us for group in comparison.groups if group.kind == "defused" and _tells(group)]
    extra_us = sum(lost_us) if lost_us else gemm_us - (attention - kept)
    return Finding(
        code="lost_attention",
        severity="warning",
        title="The fused attention kernel is lost",
        evidence=(
            f"Attention kernels took {duration(attention)} in {a.label} and take {duration(kept)} in "
            f"{b.label}, where matrix products take {duration(gemm_us)} more: attention is likely computed as "
            "matrix products and a softmax." + _types(comparison)
        ),
        saving_us=extra_us if extra_us > 0 else None,
        advice=None,
    )


def _tells(group: KernelGroup) -> bool:
    return any(sentence.startswith("The attention kernel") for sentence in group.evidence)


def _types(comparison: Comparison) -> str:
    """That the products are of float32 where they are: half of what they cost."""
    evidence = {line for group in comparison.groups if _tells(group) for line in group.evidence}
    return " The products are of float32." if any("float32" in line or "fp32" in line for line in evidence) else ""
