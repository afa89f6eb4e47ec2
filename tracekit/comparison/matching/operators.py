"""What an operator's name and sizes say: which library work it is, of what size, and the words it shares with the names
of Triton kernels."""

from __future__ import annotations

import math
import re
from functools import cache
from itertools import permutations
from typing import Literal

from tracekit.model.sequence import Operator

Kind = Literal["product", "attention", "convolution"]
Dims = tuple[int, ...]

#: Operators that multiply matrices, and which of their inputs are the two factors.
FACTORS = {
    "linear": (0, 1),
    "_linear_pointwise": (0, 1),
    "mm": (0, 1),
    "bmm": (0, 1),
    "matmul": (0, 1),
    "mv": (0, 1),
    "dot": (0, 1),
    "addmm": (1, 2),
    "baddbmm": (1, 2),
    "addbmm": (1, 2),
    "addmv": (1, 2),
    "_addmm_activation": (1, 2),
    "_scaled_mm": (0, 1),
    "_int_mm": (0, 1),
    "_grouped_mm": (0, 1),
}
#: Those whose second factor lies transposed.
WEIGHT_FIRST = ("linear", "_linear_pointwise")
#: A part of the names of operators that do attention, and of those that convolve.
ATTENTION = ("attention", "flash_attn", "fmha")
CONVOLUTION = re.compile(r"conv(?:olution|\dd|_transpose\dd)")

#: What Inductor calls its kernels: category, operators in alphabetical order, a number.
TRITON = re.compile(r"triton_(?P<category>[a-z]+)_fused_(?P<operators>.+?)_?(?P<number>\d*)$")
#: Inductor's own products and attention, from templates.
TEMPLATE = "tem"

#: What PyTorch's own kernels do, by a part of their names in lower case: for recordings that hold no operators.
DONE_BY_KERNEL = {
    "functor_add": ("add",),
    "mulfunctor": ("mul",),
    "divfunctor": ("div",),
    "neg_kernel": ("neg",),
    "exp_kernel": ("exp",),
    "sin_kernel": ("sin",),
    "cos_kernel": ("cos",),
    "tanh_kernel": ("tanh",),
    "sigmoid_kernel": ("sigmoid",),
    "pow_tensor": ("pow",),
    "rsqrt_kernel": ("rsqrt",),
    "meanops": ("mean",),
    "gelu": ("gelu",),
    "silu": ("silu",),
    "relu": ("relu",),
    "softmax": ("_softmax", "_safe_softmax"),
    "layer_norm": ("layer_norm",),
    "rms_norm": ("rms_norm",),
    "catarray": ("cat",),
    "copy_kernel": ("_to_copy", "clone"),
    "embedding": ("embedding",),
    "arange": ("arange",),
}

#: Words for work that one kernel cannot finish where a row is long: it may be spread over several.
SPREAD = re.compile(r"norm|softmax|mean|sum|var|amax|amin|argmax|logsumexp|cumsum|topk|sort")


#: Operators whose result is as large as all their inputs.
JOINING = ("cat", "concat", "stack", "hstack", "vstack")


def short_name(operator: str) -> str:
    """`aten::add_` is `add`: without its namespace, and whether in place or not."""
    name = operator.rpartition("::")[2].partition(".")[0]
    return name.rstrip("_") or name


@cache
def done_by_kernel(kernel: str) -> frozenset[str]:
    """The operators that a kernel of PyTorch's could have been launched for, told by its name."""
    name = kernel.lower()
    return frozenset(word for part, words in DONE_BY_KERNEL.items() if part in name for word in words)


@cache
def kind_of_operator(operator: str) -> Kind | None:
    """Which library work the operator asks for."""
    name = short_name(operator)
    if operator.startswith("triton_"):
        return _kind_of_template(operator)
    if name in FACTORS:
        return "product"
    if any(part in name for part in ATTENTION):
        return "attention"
    return "convolution" if CONVOLUTION.search(name) else None


def _kind_of_template(kernel: str) -> Kind | None:
    found = TRITON.match(kernel)
    if found is None or found["category"] != TEMPLATE:
        return None
    operators = f"_{found['operators']}_"
    if "attention" in operators:
        return "attention"
    if "_convolution_" in operators:
        return "convolution"
    return "product" if any(f"_{name}_" in operators for name in FACTORS) else None


@cache
def size_of(operator: Operator) -> Dims | None:
    """What two operators for the same work have in common, however they are spelled; None where shapes are unknown.

    (batch, M, N, K) of a product, (batch times heads, queries, keys, head size) of attention, and the shapes of input
    and weight of a convolution.
    """
    kind, dims = kind_of_operator(operator.name), operator.dims
    if kind == "product":
        if operator.name.startswith("triton_"):
            return _template_size(dims)
        left, right = FACTORS[short_name(operator.name)]
        transposed = short_name(operator.name) in WEIGHT_FIRST
        return _product_size(dims, left, right, transposed=transposed)
    tensors = [each for each in dims if len(each) >= 3]
    if kind == "attention" and len(tensors) >= 2 and len(tensors[0]) == 4 == len(tensors[1]):
        queries, keys = tensors[0], tensors[1]
        return (queries[0] * queries[1], queries[2], keys[2], queries[3])
    if kind == "convolution" and len(tensors) >= 2:
        return (*tensors[0], 0, *tensors[1])
    return None


def _product_size(dims: tuple[Dims, ...], left: int, right: int, *, transposed: bool) -> Dims | None:
    if len(dims) <= right or not dims[left] or not dims[right]:
        return None
    one, other = dims[left], dims[right]
    columns = 1 if len(other) == 1 else other[-2] if transposed else other[-1]
    if len(other) <= 2:
        return (1, math.prod(one[:-1]), columns, one[-1])
    return (math.prod(one[:-2]), one[-2] if len(one) > 1 else 1, columns, one[-1])


def _template_size(dims: tuple[Dims, ...]) -> Dims | None:
    """The one way in which two of the inputs multiply to a third; None where there are none or several."""
    matrices = [each for each in dims if len(each) in (2, 3)]
    found = {
        (math.prod(one[:-2]), one[-2], other[-1], one[-1])
        for one, other, made in permutations(matrices, 3)
        if one[-1] == other[-2] and made == (*one[:-1], other[-1]) and one[:-2] == other[:-2]
    }
    return found.pop() if len(found) == 1 else None


@cache
def triton_operators(kernel: str) -> str | None:
    """`_add_mul_gelu_` of `triton_poi_fused_add_mul_gelu_3`; None for what Inductor did not name."""
    found = TRITON.match(kernel)
    return f"_{found['operators']}_" if found else None


@cache
def without_number(kernel: str) -> str:
    """The kernel's name without the number that Inductor gave it: that differs from compilation to compilation."""
    return re.sub(r"_\d+$", "", kernel) if kernel.startswith("triton_") else kernel


@cache
def sizes_in(operator: Operator) -> frozenset[int]:
    """How many elements each of its tensors has, and what it makes of several of them."""
    sizes = [math.prod(each) for each in operator.dims if each]
    return frozenset((*sizes, sum(sizes)) if short_name(operator.name) in JOINING else sizes)
