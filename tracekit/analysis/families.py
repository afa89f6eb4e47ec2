"""Which family does a kernel belong to? Told by its name, the first rule that matches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

#: Characters of a name that are looked at.
LONGEST_NAME = 2000


@dataclass(frozen=True)
class Rule:
    """A name belongs to the family if it holds one of the `parts`, once what is `not_meant` is taken out of it."""

    family: str
    parts: tuple[str, ...]
    not_meant: tuple[str, ...] = ()


def _rule(family: str, parts: str, not_meant: str = "") -> Rule:
    return Rule(family, tuple(parts.split()), tuple(not_meant.split()))


#: In lower case, without underscores between words that are written with and without. Order matters: attention kernels
#: are built from gemm pieces, and products from copies.
RULES = (
    _rule("communication", "nccl rccl allreduce all_reduce allgather all_gather reducescatter reduce_scatter multimem"),
    _rule("attention", "flash fmha attention sdpa mha_ _attn"),
    _rule(
        "copy",
        """nchwtonhwc nhwctonchw catarray direct_copy copy_kernel _copy_ native::copy< tensortransform transpose
        fill_index im2col index_select indexselect gather_kernel vectorized_gather indexkernel index_elementwise
        scatter""",
    ),
    _rule("convolution", "conv implicitgemm implicit_gemm fprop dgrad wgrad winograd miopen", not_meant="convert"),
    _rule("gemm", "gemm nvjet cutlass splitk matmul cublas xmma cijk_ gemv dot_kernel"),
    _rule("normalization", "norm rowwisemoments computefusedparams softmax bn_fw bn_bw", not_meant="normal_"),
    _rule(
        "reduction",
        "reduce reduction argmax argmin cumsum cumprod scan topk radixsort radix_sort bitonic meanops sumops ::sort",
    ),
    _rule(
        "pointwise",
        """elementwise pointwise functor upsample gelu silu relu dropout embedding distribution arange _foreach
        multi_tensor_apply philox""",
    ),
)


@cache
def family_of(name: str) -> str:
    """The family of a kernel's name, `other` when no rule knows it. Copies and sets have families of their own."""
    if name.startswith("triton_"):
        # Names of Triton kernels list the operators they fuse.
        return "triton"
    # What a kernel does stands at the beginning; the types of its arguments can go on for kilobytes.
    begin = name[:LONGEST_NAME].lower()
    return next((rule.family for rule in RULES if _matches(rule, begin)), "other")


def _matches(rule: Rule, name: str) -> bool:
    for other in rule.not_meant:
        name = name.replace(other, "")
    return any(part in name for part in rule.parts)
