"""What do libraries do? Matrix products, attention and convolutions, which fusion leaves to one kernel each."""

from __future__ import annotations

from functools import cache

from tracekit.comparison.matching.operators import Kind, kind_of_operator
from tracekit.model.sequence import Activity

#: The families of kernels that libraries are asked for, and what they do.
KIND_OF_FAMILY: dict[str, Kind] = {"gemm": "product", "attention": "attention", "convolution": "convolution"}

#: Parts of names of kernels that only help a library kernel: they sum parts up, lay tensors out, clear memory. After
#: `..._execute_kernel__5x_cublas` comes `..._execute_split_k_kernel__5x_cublas`, which sums up.
HELPERS = ("splitkreduce", "splitk_reduce", "execute_split_k_kernel", "nchwtonhwc", "nhwctonchw", "memset")


def is_library(activity: Activity) -> bool:
    """Whether the kernel itself multiplies matrices, attends or convolves: a library's, or of a template of
    Inductor's."""
    return library_family(activity) is not None


def library_family(activity: Activity) -> str | None:
    """`gemm`, `attention` or `convolution`; None for what is no library kernel, or only helps one."""
    if activity.family == "triton":
        return _family_of_template(activity.name)
    return activity.family if activity.family in KIND_OF_FAMILY and not is_helper(activity.name) else None


@cache
def is_helper(kernel: str) -> bool:
    name = kernel.lower()
    return any(part in name for part in HELPERS)


@cache
def _family_of_template(kernel: str) -> str | None:
    kind = kind_of_operator(kernel)
    return next((family for family, each in KIND_OF_FAMILY.items() if each == kind), None)
