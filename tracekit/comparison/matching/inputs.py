"""How large are an operator call's inputs, and are they the same on both sides?"""

import math
from collections.abc import Iterator
from functools import cache
from itertools import permutations

from msgspec import Struct

from tracekit.comparison.matching.operators import FACTORS, kind_of_operator, plain_name, without_number
from tracekit.model.sequence import Activity, Operator

Dims = tuple[int, ...]

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
