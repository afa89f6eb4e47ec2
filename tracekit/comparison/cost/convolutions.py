"""How large is a convolution's result, and how do its data lie in memory? Told by recorded arguments and strides."""

import re
from collections.abc import Iterable
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
