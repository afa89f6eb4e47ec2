"""Which family does a kernel belong to? Told by its name, the first rule that matches."""

from __future__ import annotations

import re
from functools import cache

#: Order matters: attention kernels are built from gemm pieces, Triton kernels name the operators they fuse.
RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("triton", re.compile(r"^triton_")),
    ("communication", re.compile(r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|multimem", re.I)),
    ("attention", re.compile(r"flash|fmha|attention|sdpa|mha_|_attn", re.I)),
    ("copy", re.compile(r"nchwToNhwc|nhwcToNchw|CatArray|direct_copy|copy_kernel|_copy_|native::Copy<|tensorTransform|transpose|fill_index|im2col|"
                        r"index_select|indexSelect|gather_kernel|vectorized_gather|IndexKernel|index_elementwise|scatter", re.I)),
    ("convolution", re.compile(r"conv(?!ert)|implicit_?gemm|fprop|dgrad|wgrad|winograd|miopen", re.I)),
    ("gemm", re.compile(r"gemm|nvjet|cutlass|splitK|matmul|cublas|xmma|Cijk_|gemv|_s\d+gemm|dot_kernel", re.I)),
    ("normalization", re.compile(r"norm(?!al_)|RowwiseMoments|ComputeFusedParams|softmax|bn_fw|bn_bw", re.I)),
    ("reduction", re.compile(r"reduce|reduction|argmax|argmin|cumsum|cumprod|scan|topk|\bsort|radix_?sort|bitonic|MeanOps|SumOps",
                            re.I)),
    ("pointwise", re.compile(r"elementwise|pointwise|FillFunctor|Functor|upsample|gelu|silu|relu|dropout|embedding|"
                             r"distribution|arange|_foreach|multi_tensor_apply|philox", re.I)),
)  # fmt: skip


@cache
def family_of(name: str) -> str:
    """The family of a kernel's name, `other` when no rule knows it. Copies and sets have families of their own."""
    return next((family for family, rule in RULES if rule.search(name)), "other")
