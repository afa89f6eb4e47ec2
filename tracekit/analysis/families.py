"""Which family does a kernel belong to? Told by its name, the first rule that matches."""

from __future__ import annotations

import re
from functools import cache

#: Characters of a name that are looked at.
LONGEST_NAME = 2000

#: A family and the parts of names that tell it. Order matters: attention kernels are built from
#: gemm pieces, Triton kernels name the operators they fuse.
RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (family, re.compile("|".join(parts.split()), flags))
    for family, parts, flags in (
        ("triton", r"^triton_", re.NOFLAG),
        ("communication", r"nccl rccl all_?reduce all_?gather reduce_?scatter multimem", re.IGNORECASE),
        ("attention", r"flash fmha attention sdpa mha_ _attn", re.IGNORECASE),
        (
            "copy",
            r"""nchwToNhwc nhwcToNchw CatArray direct_copy copy_kernel _copy_ native::Copy< tensorTransform transpose
            fill_index im2col index_select indexSelect gather_kernel vectorized_gather IndexKernel index_elementwise
            scatter""",
            re.IGNORECASE,
        ),
        ("convolution", r"conv(?!ert) implicit_?gemm fprop dgrad wgrad winograd miopen", re.IGNORECASE),
        ("gemm", r"gemm nvjet cutlass splitK matmul cublas xmma Cijk_ gemv dot_kernel", re.IGNORECASE),
        ("normalization", r"norm(?!al_) RowwiseMoments ComputeFusedParams softmax bn_fw bn_bw", re.IGNORECASE),
        (
            "reduction",
            r"reduce reduction argmax argmin cumsum cumprod scan topk \bsort radix_?sort bitonic MeanOps SumOps",
            re.IGNORECASE,
        ),
        (
            "pointwise",
            r"""elementwise pointwise Functor upsample gelu silu relu dropout embedding distribution arange _foreach
            multi_tensor_apply philox""",
            re.IGNORECASE,
        ),
    )
)


@cache
def family_of(name: str) -> str:
    """The family of a kernel's name, `other` when no rule knows it. Copies and sets have families of their own."""
    # What a kernel does stands at the beginning; the types of its arguments can go on for kilobytes.
    begin = name[:LONGEST_NAME]
    return next((family for family, rule in RULES if rule.search(begin)), "other")
