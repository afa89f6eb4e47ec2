"""How large are a product's, an attention's, a convolution's inputs and result, how many arithmetic operations is that,
and how do a convolution's data lie in memory? Told by recorded sizes, arguments and strides.

The formulas are those of `torch.utils.flop_counter`: a multiplication and an addition count as two. Causal masks are
not taken into account, nor is anything but products, attention and convolutions. Of a convolution's backward in groups
torch's formula counts the gradient of the weights once for each group; here it is counted once.
"""

import re
from collections.abc import Iterable
from math import prod
from typing import Literal

from msgspec import Struct

from tracekit.model.sequence import Activity, Operator

Shape = tuple[int, ...]

BACKWARD = "aten::convolution_backward"


def aten(names: str) -> tuple[str, ...]:
    """Operators by their names in traces."""
    return tuple(f"aten::{name}" for name in names.split())


#: Where the arguments stand among an operator's inputs, as torch declares it: from a position on, one behind the other.
#: An operator without one has its default.
ARGUMENTS = {
    name: {argument: first + at for at, argument in enumerate(arguments.split())}
    for first, arguments, names in (
        (3, "stride padding dilation transposed output_padding groups", "convolution _convolution"),
        (3, "stride padding dilation transposed output_padding groups", "convolution_overrideable"),
        (2, "padding stride dilation groups", "cudnn_convolution"),
        (3, "stride padding dilation groups", "cudnn_convolution_relu"),
        (5, "stride padding dilation groups", "cudnn_convolution_add_relu"),
        (3, "padding stride dilation groups", "miopen_convolution mkldnn_convolution"),
        (4, "stride padding", "_slow_conv2d_forward thnn_conv2d slow_conv3d_forward"),
        (4, "stride padding dilation", "_conv_depthwise2d conv_depthwise3d"),
        (2, "padding output_padding stride dilation groups", "cudnn_convolution_transpose"),
        (3, "padding output_padding stride dilation groups", "miopen_convolution_transpose"),
    )
    for name in aten(names)
}
ALWAYS_TRANSPOSED = aten("cudnn_convolution_transpose miopen_convolution_transpose")
NUMBER = re.compile(r"-?\d+")
DEFAULTS = {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0, "groups": 1}

#: Where the two factors stand among an operator's inputs.
MATMULS = {
    **dict.fromkeys(aten("mm _int_mm _scaled_mm bmm"), 0),
    **dict.fromkeys(aten("addmm _addmm_activation baddbmm"), 1),
}

#: Attention whose query, key and value are (batch, heads, length, width). A backward has the gradient before them.
ATTENTION = aten(
    """_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward
    _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
    _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
    _scaled_dot_product_fused_attention_overrideable _cudnn_attention_forward _cudnn_attention_backward"""
)
#: The same where they are (batch, length, heads, width).
ATTENTION_BY_LENGTH = aten(
    """_flash_attention_forward _flash_attention_backward
    _efficient_attention_forward _efficient_attention_backward"""
)

#: Its inputs are (..., k) and (n, k), and perhaps a bias.
LINEAR = "aten::linear"


def flops_of(operator: Operator, output: Shape | None = None) -> int | None:
    """Estimated operations of one call; None where the recorded sizes do not say.

    A convolution's result follows from its recorded stride and padding; `output` is its size where it is known from
    elsewhere.
    """
    if operator.name in MATMULS or operator.name == LINEAR:
        factors = factors_of(operator)
        return 2 * prod(factors[0]) * factors[1][2] if factors else None
    if operator.name in ATTENTION or operator.name in ATTENTION_BY_LENGTH:
        sizes = attention_sizes(operator)
        if sizes is None:
            return None
        (batch, heads, queries, width), (_, _, keys, _), (_, _, _, value_width) = sizes
        # Backward computes the scores again, and then two products for each of the two of the forward.
        widths = 3 * width + 2 * value_width if operator.name.endswith("_backward") else width + value_width
        return 2 * batch * heads * queries * keys * widths
    if operator.name == BACKWARD:
        # Each gradient takes as many operations as the convolution itself.
        asked, transposed = gradients_of(operator), operator.values[7:8]
        if asked is None or len(operator.dims) < 3 or any(len(size) < 3 for size in operator.dims[:3]):
            return None
        gradient, data, weight = operator.dims[:3]
        positions = data if transposed == ("True",) else gradient
        return sum(asked) * 2 * data[0] * prod(positions[2:]) * prod(weight)
    found = find_convolution(operator, output)
    if found is None or found.positions is None:
        return None
    return 2 * found.data[0] * prod(found.positions) * prod(found.weight)


def factors_of(operator: Operator) -> tuple[Shape, Shape] | None:
    """The sizes of a product's two factors, (batch, m, k) and (batch, k, n); None for anything else."""
    if operator.name == LINEAR:
        if len(operator.dims) < 2 or not operator.dims[0] or len(operator.dims[1]) != 2:
            return None
        data, (n, k) = operator.dims[:2]
        return ((1, prod(data[:-1]), k), (1, k, n)) if data[-1] == k else None
    first = MATMULS.get(operator.name)
    if first is None or len(operator.dims) < first + 2:
        return None
    left, right = operator.dims[first : first + 2]
    if len(left) != len(right) or len(left) not in (2, 3) or left[-1] != right[-2] or left[:-2] != right[:-2]:
        return None
    return ((1, *left), (1, *right)) if len(left) == 2 else (left, right)


def attention_sizes(operator: Operator) -> tuple[Shape, Shape, Shape] | None:
    """Query, key and value as (batch, heads, length, width); None where they are not recorded or do not fit."""
    by_length = operator.name in ATTENTION_BY_LENGTH
    if not by_length and operator.name not in ATTENTION:
        return None
    first = int(operator.name.endswith("_backward"))
    sizes = operator.dims[first : first + 3]
    if len(sizes) < 3 or any(len(size) != 4 for size in sizes):
        return None
    query, key, value = ((size[0], size[2], size[1], size[3]) if by_length else size for size in sizes)
    fits = query[0] == key[0] == value[0] and key[1:3] == value[1:3] and query[3] == key[3]
    return (query, key, value) if fits and key[1] and query[1] % key[1] == 0 else None


def gradients_of(operator: Operator) -> tuple[bool, bool] | None:
    """Whether a convolution's backward computes the gradients of its data and of its weights; None if not recorded."""
    asked = operator.values[10].strip("[]").replace(" ", "").split(",") if len(operator.values) > 10 else []
    return (asked[0] == "True", asked[1] == "True") if len(asked) == 3 else None


def is_counted(name: str) -> bool:
    """Whether the operator is one of those whose operations are counted."""
    return name in (LINEAR, BACKWARD) or any(
        name in names for names in (MATMULS, ATTENTION, ATTENTION_BY_LENGTH, ARGUMENTS)
    )


class Convolution(Struct, frozen=True):
    """Sizes of what is convolved and of the weights; `positions` are those that the weights are laid at (of the result,
    transposed of the data), None where stride and padding were not recorded."""

    data: Shape
    weight: Shape
    result: Shape | None
    positions: Shape | None


def find_convolution(operator: Operator, output: Shape | None = None) -> Convolution | None:
    """The convolution that the operator computes; None for any other. `output` is the size of its result, if known."""
    if operator.name not in ARGUMENTS or len(operator.dims) < 2:
        return None
    data, weight = operator.dims[:2]
    if len(data) < 3 or len(data) != len(weight):
        return None
    result = output if output is not None and len(output) == len(data) else _result(operator, data, weight)
    transposed = _is_transposed(operator)
    positions = None if transposed is None else data if transposed else result
    return Convolution(data, weight, result, positions[2:] if positions else None)


def _is_transposed(operator: Operator) -> bool | None:
    """None where it was not recorded."""
    at = ARGUMENTS[operator.name].get("transposed")
    if at is None:
        return operator.name in ALWAYS_TRANSPOSED
    return {"True": True, "False": False}.get(operator.values[at]) if len(operator.values) > at else None


def _result(operator: Operator, data: Shape, weight: Shape) -> Shape | None:
    """By the formulas in the documentation of torch.nn.Conv2d and ConvTranspose2d."""
    transposed, lengths = _is_transposed(operator), len(data) - 2
    named = ("stride", "padding", "dilation", "output_padding")
    stride, padding, dilation, more = (_numbers(operator, name, lengths) for name in named)
    groups = _numbers(operator, "groups", 1)
    if transposed is None or not (groups and stride and padding and dilation and more) or 0 in stride:
        return None
    reach = [each * (size - 1) for each, size in zip(dilation, weight[2:], strict=True)]
    ends = zip(data[2:], stride, padding, reach, more, strict=True)
    if transposed:
        return (data[0], weight[1] * groups[0], *((n - 1) * s - 2 * p + far + add + 1 for n, s, p, far, add in ends))
    return (data[0], weight[0], *((n + 2 * p - far - 1) // s + 1 for n, s, p, far, _ in ends))


def _numbers(operator: Operator, name: str, count: int) -> Shape | None:
    """An argument's numbers, one for each dimension; None where they were not recorded or do not fit."""
    at = ARGUMENTS[operator.name].get(name)
    if at is None:
        return (DEFAULTS[name],) * count
    if len(operator.values) <= at:
        return None
    numbers = tuple(map(int, NUMBER.findall(operator.values[at])))
    return numbers * count if len(numbers) == 1 else numbers if len(numbers) == count else None


Layout = Literal["channels first", "channels last"]


def find_layout(operator: Operator) -> Layout | None:
    """Of what a convolution is given, by its strides: channels are last where neighbouring channels lie nearest to each
    other, as in torch.channels_last (NHWC), and first where they lie furthest apart (NCHW).

    None of any other operator, where strides were not recorded, and where there is but one channel or one place: then
    both are the same. Nor where one value stands for all channels or places (a stride of 0).
    """
    if find_convolution(operator) is None or not operator.strides or len(operator.strides[0]) != len(operator.dims[0]):
        return None
    (_, channels, *lengths), (_, channel_stride, *strides) = operator.dims[0], operator.strides[0]
    spatial = [stride for length, stride in zip(lengths, strides, strict=True) if length > 1]
    if channels < 2 or not spatial or 0 in (channel_stride, *spatial):
        return None
    if channel_stride < min(spatial):
        return "channels last"
    return "channels first" if channel_stride > max(spatial) else None


def moved_last(a: Iterable[Activity], b: Iterable[Activity]) -> bool:
    """Whether channels were first in A and are last in B, of every convolution among them that tells."""
    one, other = ({find_layout(each.operator) for each in side if each.operator} - {None} for side in (a, b))
    return one == {"channels first"} and other == {"channels last"}
