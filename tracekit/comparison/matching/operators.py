"""What the names of operators and of kernels say: which library work they do, what else, and which operators a Triton
kernel was made of."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from tracekit.model.sequence import Activity
from tracekit.names import is_triton, template_family

Kind = Literal["product", "attention", "convolution"]

#: Operators that multiply matrices, and which of their inputs are the two factors.
FACTORS = {
    **dict.fromkeys(("linear", "_linear_pointwise", "mm", "bmm", "matmul", "mv", "dot"), (0, 1)),
    **dict.fromkeys(("_scaled_mm", "_int_mm", "_grouped_mm"), (0, 1)),
    **dict.fromkeys(("addmm", "baddbmm", "addbmm", "addmv", "_addmm_activation"), (1, 2)),
}
#: A part of the names of operators that do attention, and of those that convolve.
ATTENTION = ("attention", "flash_attn", "fmha")
CONVOLUTION = re.compile(r"conv(?:olution|\dd|_transpose\dd)")
#: Operators that compute nothing: another view of the same memory, or memory yet to be written.
NO_WORK = frozenset(
    """alias as_strided _reshape_alias chunk detach diagonal empty empty_like empty_strided expand lift_fresh movedim
    narrow new_empty new_empty_strided permute reinterpret_tensor reshape resolve_conj resolve_neg select set_ slice
    split split_with_sizes squeeze swapaxes t to transpose unbind unfold unflatten unsafe_chunk unsafe_split
    unsafe_split_with_sizes unsqueeze view view_as view_as_complex view_as_real _unsafe_view""".split()
)

#: What Inductor calls its kernels: category, operators in alphabetical order, a number.
TRITON = re.compile(r"triton_[a-z]+_fused_(?P<operators>.+?)_?\d*$")

#: Which operators torch.compile takes apart before Inductor names kernels after them, and into what at least: made by
#: docs/making/decompositions.py from the version of torch that it names.
DECOMPOSITIONS = Path(__file__).with_name("decompositions.json")

#: What PyTorch's own kernels do, by a part of their names in lower case: for recordings that hold no operators.
DONE_BY_KERNEL = {
    **{f"{name}_kernel": (name,) for name in ("neg", "exp", "sin", "cos", "tanh", "sigmoid", "rsqrt")},
    **{name: (name,) for name in ("gelu", "silu", "relu", "layer_norm", "rms_norm", "embedding", "arange")},
    **{name: (name,) for name in ("grid_sampler_2d", "masked_fill", "roll")},
    **{f"upsample_{name}": (f"upsample_{name}",) for name in ("nearest2d", "bilinear2d", "bicubic2d", "trilinear3d")},
    "functor_add": ("add",),
    "mulfunctor": ("mul",),
    "divfunctor": ("div",),
    "pow_tensor": ("pow",),
    "meanops": ("mean",),
    "catarray": ("cat",),
    "softmax": ("_softmax", "_safe_softmax"),
    "batch_norm": ("native_batch_norm",),
    "bn_fw": ("cudnn_batch_norm",),
    "rowwisemoments": ("native_layer_norm", "native_group_norm"),
    "launch_clamp": ("clamp", "relu", "hardtanh"),
    "max_pool": ("max_pool2d_with_indices",),
    "sum_functor": ("sum",),
    "index_elementwise": ("index",),
    "gather_kernel": ("index", "index_select", "embedding"),
    "copy_kernel": ("_to_copy", "clone"),
}

#: The families of kernels that libraries are asked for, and what they do.
KIND_OF_FAMILY: dict[str, Kind] = {"gemm": "product", "attention": "attention", "convolution": "convolution"}
#: What Inductor may list in the names of kernels around such a call, where the call's operator is not known.
OPERATORS_OF_KIND: dict[Kind, frozenset[str]] = {
    "product": frozenset(FACTORS),
    "attention": frozenset(f"_scaled_dot_product_{each}_attention" for each in ("flash", "efficient", "cudnn")),
    "convolution": frozenset(("convolution",)),
}
#: Parts of names of kernels that only help a library kernel: they sum parts up, lay tensors out, clear memory. After
#: `..._execute_kernel__5x_cublas` comes `..._execute_split_k_kernel__5x_cublas`, which sums up.
HELPERS = (
    *("splitkreduce", "splitk_reduce", "execute_split_k_kernel", "memset"),
    *("nchwtonhwc", "nhwctonchw", "nhwcaddpadding", "tensortransform"),
)

#: How names of kernels say that they add a bias or apply an activation to what they have multiplied, and what that is.
EPILOGUES = {"_bias": ("add",), "epilogue": ("add", "relu", "gelu"), "relu": ("relu",), "gelu": ("gelu",)}
#: Operators of libraries that do more than multiply or convolve, and what at most (torch's native_functions.yaml).
OPERATOR_EPILOGUES = {
    **dict.fromkeys(("addmm", "addmv", "addbmm", "baddbmm"), ("add",)),
    "_addmm_activation": ("add", "relu", "gelu"),
    "cudnn_convolution_relu": ("relu",),
    "cudnn_convolution_add_relu": ("add", "relu"),
}


@cache
def plain_name(operator: str) -> str:
    """`aten.add_.Tensor`, `aten::add` and `torch.ops.aten.add.default` are all `add`: without namespace, overload, and
    the underscore of an in-place operator."""
    parts = operator.removeprefix("torch.ops.").replace("::", ".").split(".")
    name = parts[1] if len(parts) > 1 else parts[0]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def does_no_work(operator: str) -> bool:
    """Whether the operator launches nothing by itself, whatever its arguments."""
    return plain_name(operator) in NO_WORK


@cache
def _decompositions() -> Mapping[str, list[list[str]]]:
    told: dict[str, list[list[str]]] = json.loads(DECOMPOSITIONS.read_text())["operators"]
    return told


def is_listed(operator: str, fused: str) -> bool:
    """Whether a fused kernel's list (`_add_mul_gelu_`) has the operator, or all that torch.compile makes of it."""
    if operator == "index":
        # The end of another operator's name.
        fused = fused.replace("__unsafe_index_", "_")
    lists = ([operator], *_decompositions().get(operator, ()))
    return any(all(f"_{part}_" in fused for part in parts) for parts in lists)


@cache
def decomposed_in(fused: str) -> frozenset[str]:
    """Operators that torch.compile takes apart and of which a fused kernel's list has all parts."""
    return frozenset(operator for operator in _decompositions() if is_listed(operator, fused))


@cache
def operators_of_kernel(kernel: str) -> frozenset[str]:
    """The operators that a kernel of PyTorch's could have been launched for, told by its name."""
    name = kernel.lower()
    return frozenset(word for part, words in DONE_BY_KERNEL.items() if part in name for word in words)


@cache
def triton_operators(kernel: str) -> str | None:
    """`_add_mul_gelu_` of `triton_poi_fused_add_mul_gelu_3`; None for what Inductor did not name."""
    found = TRITON.match(kernel)
    return f"_{found['operators']}_" if found else None


@cache
def without_number(kernel: str) -> str:
    """The kernel's name without the number that Inductor gave it: that differs from compilation to compilation."""
    return re.sub(r"_\d+$", "", kernel) if is_triton(kernel) else kernel


def is_generated(kernel: str) -> bool:
    """Whether Inductor wrote the kernel: on a GPU Triton kernels, on the CPU C++ functions."""
    return kernel.startswith(("triton_", "cpp_fused"))


@cache
def kind_of_operator(operator: str) -> Kind | None:
    """Which library work the operator, or the kernel that Inductor made from a template, does."""
    if is_triton(operator):
        family = template_family(operator)
        return KIND_OF_FAMILY[family] if family else None
    name = plain_name(operator)
    if name in FACTORS:
        return "product"
    if any(part in name for part in ATTENTION):
        return "attention"
    return "convolution" if CONVOLUTION.search(name) else None


@cache
def is_helper(kernel: str) -> bool:
    """Whether the kernel only helps a library kernel."""
    name = kernel.lower()
    return any(part in name for part in HELPERS)


def is_library(activity: Activity) -> bool:
    """Whether the kernel itself multiplies matrices, attends or convolves: a library's, or of a template of
    Inductor's."""
    return library_family(activity) is not None


def library_family(activity: Activity) -> str | None:
    """`gemm`, `attention` or `convolution`; None for what is no library kernel, or only helps one."""
    return activity.family if activity.family in KIND_OF_FAMILY and not is_helper(activity.name) else None


@cache
def operator_epilogue(operator: str) -> frozenset[str]:
    """What the operator asks for beside the product or convolution; of one of Inductor's templates, as its name lists
    it."""
    if kind_of_operator(operator) is None:
        return frozenset()
    listed = triton_operators(operator)
    if listed is None:
        return frozenset(OPERATOR_EPILOGUES.get(plain_name(operator), ()))
    named = {word for name, words in OPERATOR_EPILOGUES.items() if f"_{name}_" in listed for word in words}
    return frozenset((*named, *(word for word in ("add", "relu", "gelu") if f"_{word}_" in listed)))


@cache
def kernel_epilogue(kernel: str) -> frozenset[str]:
    """What a library kernel's name says that it does to its product."""
    name = kernel.lower()
    return frozenset(word for part, words in EPILOGUES.items() if part in name for word in words)


def epilogues_differ(one: Activity, other: Activity) -> bool:
    """Whether two library kernels were asked for different work beside the product; False where a side does not say."""
    if one.operator is None or other.operator is None:
        return False
    return operator_epilogue(one.operator.name) != operator_epilogue(other.operator.name)
