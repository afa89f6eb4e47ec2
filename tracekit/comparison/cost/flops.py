"""How many arithmetic operations does an operator call do? Estimated from the sizes of its inputs.

The formulas are those of `torch.utils.flop_counter`: a multiplication and an addition count as two. Causal masks are
not taken into account, nor is anything but products, attention and convolutions. Of a convolution's backward in groups
torch's formula counts the gradient of the weights once for each group; here it is counted once.
"""

from math import prod

from tracekit.comparison.cost.convolutions import ARGUMENTS, BACKWARD, Shape, aten, find_convolution
from tracekit.model.sequence import Operator

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
