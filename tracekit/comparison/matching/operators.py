"""What the names of operators and of kernels say: which library work they do, what else, and which operators a Triton
kernel was made of. And how large an operator call's inputs are, and whether they are the same on both sides."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tracekit.model.sequence import Activity, Operator
from tracekit.names import NO_WORK, is_triton, plain_name, template_family

Kind = Literal["product", "attention", "convolution"]
Dims = tuple[int, ...]

#: Operators that multiply matrices, and which of their inputs are the two factors.
FACTORS = {
    **dict.fromkeys(("linear", "_linear_pointwise", "mm", "bmm", "matmul", "mv", "dot"), (0, 1)),
    **dict.fromkeys(("_scaled_mm", "_int_mm", "_grouped_mm"), (0, 1)),
    **dict.fromkeys(("addmm", "baddbmm", "addbmm", "addmv", "_addmm_activation"), (1, 2)),
}
#: A part of the names of operators that do attention, and of those that convolve.
ATTENTION = ("attention", "flash_attn", "fmha")
CONVOLUTION = re.compile(r"conv(?:olution|\dd|_transpose\dd)")
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

#: Operators whose second factor lies transposed.
WEIGHT_FIRST = ("linear", "_linear_pointwise")
#: Operators whose result is as large as all their inputs.
JOINING = ("cat", "concat", "stack", "hstack", "vstack")

#: Where operators of attention have the mask, and the flag that says "causal", among their arguments (torch's
#: native_functions.yaml). None where there is no such argument.
MASKS: dict[str, tuple[int | None, int | None]] = {
    "scaled_dot_product_attention": (3, 5),
    "_scaled_dot_product_flash_attention": (None, 4),
    "_scaled_dot_product_efficient_attention": (3, 6),
    "_scaled_dot_product_cudnn_attention": (3, 6),
    "_scaled_dot_product_fused_attention_overrideable": (3, 5),
    "_cudnn_attention_forward": (3, 10),
    "_flash_attention_forward": (None, 8),
    "_efficient_attention_forward": (3, 9),
}
#: How the flag is written where it is on; the last operator's is a number, 0 for no mask.
ON = ("True", "1", "2")


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


@cache
def size_of(operator: Operator) -> Dims | None:
    """What two operators for the same work have in common, however they are spelled; None where shapes are unknown.

    (batch, M, N, K) of a product, (batch times heads, queries, keys, head size) of attention, and the shapes of input
    and weight of a convolution.
    """
    kind, dims = kind_of_operator(operator.name), operator.dims
    if kind == "product":
        if not operator.name.startswith("triton_"):
            left, right = FACTORS[plain_name(operator.name)]
            if len(dims) <= right or not dims[left] or not dims[right]:
                return None
            one, other = dims[left], dims[right]
            columns = 1 if len(other) == 1 else other[-2] if plain_name(operator.name) in WEIGHT_FIRST else other[-1]
            if len(other) <= 2:
                return (1, math.prod(one[:-1]), columns, one[-1])
            return (math.prod(one[:-2]), one[-2] if len(one) > 1 else 1, columns, one[-1])
        # A template's: the one way in which two of the inputs multiply to a third.
        found = {
            (math.prod(one[:-2]), one[-2], other[-1], one[-1])
            for one, other, made in permutations([each for each in dims if len(each) in (2, 3)], 3)
            if one[-1] == other[-2] and made == (*one[:-1], other[-1]) and one[:-2] == other[:-2]
        }
        return found.pop() if len(found) == 1 else None
    tensors = [each for each in dims if len(each) >= 3]
    if kind == "attention" and len(tensors) >= 2 and len(tensors[0]) == 4 == len(tensors[1]):
        queries, keys = tensors[0], tensors[1]
        return (queries[0] * queries[1], queries[2], keys[2], queries[3])
    if kind == "convolution" and len(tensors) >= 2:
        return (*tensors[0], 0, *tensors[1])
    return None


@cache
def sizes_in(operator: Operator) -> frozenset[int]:
    """How many elements each of its tensors has, and what it makes of several of them."""
    sizes = [math.prod(each) for each in operator.dims if each]
    return frozenset((*sizes, sum(sizes)) if plain_name(operator.name) in JOINING else sizes)


class Masking(Struct, frozen=True):
    """What an attention call was told to leave out: the shape of its mask, None without one; and whether it was to be
    causal, None where the recording does not say."""

    mask: Dims | None
    causal: bool | None


def masking_of(operator: Operator) -> Masking | None:
    """None for an operator that is not known, or without recorded shapes."""
    places = MASKS.get(plain_name(operator.name))
    if places is None or not operator.dims:
        return None
    mask, causal = places
    said = operator.values[causal] if causal is not None and causal < len(operator.values) else ""
    shape = operator.dims[mask] if mask is not None and mask < len(operator.dims) else ()
    return Masking(shape or None, said in ON if said else None)


def same_kernel(one: Activity, other: Activity) -> bool:
    """Whether the kernel has the same name, but for Inductor's number, and inputs of the same sizes and types where
    both recordings tell them."""
    if without_number(one.name) != without_number(other.name):
        return False
    return one.operator is None or other.operator is None or same_inputs(one.operator, other.operator)


def same_inputs(one: Operator, other: Operator) -> bool:
    """Whether both calls got tensors of the same sizes and types, and attention the same mask; True where a side does
    not say.

    Of two spellings of one product or attention (`mm` and `addmm`) the sizes of the work count. Else numbers of
    elements do: a view of a tensor is the same input. One tensor more at the end is what the result is written to
    (`out=`), which Inductor hands over.
    """
    if not one.dims or not other.dims:
        return True
    sizes = size_of(one), size_of(other)
    if None not in sizes and sizes[0] != sizes[1]:
        return False
    masking, others = masking_of(one), masking_of(other)
    if masking and others and (masking.mask != others.mask or {masking.causal, others.causal} == {True, False}):
        return False
    if plain_name(without_number(one.name)) == plain_name(without_number(other.name)):
        shorter, longer = sorted((list(_tensors(one)), list(_tensors(other))), key=len)
        return len(longer) <= len(shorter) + 1 and longer[: len(shorter)] == shorter
    return None in sizes or {dtype for _, dtype in _tensors(one)} == {dtype for _, dtype in _tensors(other)}


def _tensors(operator: Operator) -> Iterator[tuple[int, str]]:
    dtypes = operator.dtypes or ("",) * len(operator.dims)
    return ((math.prod(dims), dtype) for dims, dtype in zip(operator.dims, dtypes, strict=False) if dims)
