"""How many bytes does a call move through the GPU's memory? Estimated from the sizes and types of its inputs.

Each input is read once and each output written once: what a kernel reads twice, or finds in a cache, is not known. An
input that `expand` repeats is as large as it is in memory. A kernel that Triton made takes its outputs as arguments, so
all its arguments count once (an argument that is updated in place is counted once, though it is read and written).
Outputs of operators are not recorded: those of element-wise operators follow from broadcasting, those of products,
attention and convolutions from their sizes.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from tracekit.comparison.cost import flops
from tracekit.model.dtypes import CPP_ELEMENT_BYTES
from tracekit.model.sequence import Operator
from tracekit.names import is_triton

FLOATING = ("double", "float", "c10::BFloat16", "c10::Half")

#: Element-wise operators by how many of their inputs are tensors that are read; those behind are outputs (`out=`).
UNARY = """abs acos acosh asin asinh atan atanh bitwise_not ceil clamp clamp_max clamp_min cos cosh deg2rad elu erf erfc
    erfinv exp exp2 expm1 floor frac gelu glu hardsigmoid hardswish hardtanh leaky_relu log log10 log1p log2 logical_not
    logit mish nan_to_num neg positive pow reciprocal relu relu6 round rsqrt selu sigmoid sign silu sin sinh softplus
    sqrt square tan tanh threshold trunc _to_copy clone contiguous native_dropout isnan isinf isfinite"""
BINARY = """add sub rsub mul div true_divide floor_divide fmod remainder maximum minimum fmax fmin atan2 copysign hypot
    bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor masked_fill sigmoid_backward tanh_backward
    silu_backward gelu_backward threshold_backward eq ne lt le gt ge"""
TERNARY = "where addcmul addcdiv lerp"
READ = {name: count for count, names in ((1, UNARY), (2, BINARY), (3, TERNARY)) for name in flops.aten(names)}
#: Their output is one byte for each element.
TRUTH = flops.aten("eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan isinf isfinite")
#: They write their first input and read none of it.
FILLING = flops.aten("fill_ zero_ normal_ uniform_ random_ bernoulli_")
#: All their tensors are read, and what is written is as large as the first.
NORMALIZING = flops.aten(
    """_softmax _log_softmax _safe_softmax _masked_softmax native_layer_norm native_group_norm native_batch_norm
    cudnn_batch_norm _batch_norm_with_update batch_norm_elemt _fused_rms_norm cumsum"""
)
#: What they write is small beside what they read, and its size is not recorded: left out.
REDUCING = flops.aten("sum mean var std var_mean amax amin max min argmax argmin any all norm prod linalg_vector_norm")

#: Operators that read some rows of an input: how many, its size does not say.
PICKING = ("embedding", "gather", "index", "scatter")


def bytes_of(operator: Operator, output: flops.Shape | None = None) -> int | None:
    """Estimated memory traffic of one call; None where the recorded sizes do not say. `output` is the size of its
    result, where it is known from elsewhere."""
    if len(operator.dims) != len(operator.dtypes) or not any(operator.dims):
        return None
    if is_triton(operator.name):
        if any(word in operator.name for word in PICKING):
            return None
        # Of one tensor alone: it is updated in place. Of several nobody can tell which are, and each counts once.
        total, tensors = _sum_of(operator, range(len(operator.dims))), sum(map(bool, operator.dims))
        return 2 * total if tensors == 1 and total is not None else total
    if flops.is_counted(operator.name):
        return _of_matmul(operator) or _of_attention(operator) or _of_convolution(operator, output)
    if operator.name in FILLING:
        return _size(operator, 0)
    if operator.name == "aten::copy_":
        return _sum_of(operator, (0, 1))
    if operator.name in NORMALIZING:
        return sum_if_known(_sum_of(operator, range(len(operator.dims))), _dense_size(operator, 0))
    if operator.name in REDUCING:
        return _size(operator, 0)
    if operator.name in ("aten::embedding", "aten::index_select", "aten::gather"):
        # The places to look at, and the rows that are read and written.
        table, places = operator.dims[0], 2 if operator.name != "aten::embedding" else 1
        width = CPP_ELEMENT_BYTES.get(operator.dtypes[0])
        if len(operator.dims) <= places or width is None or not operator.dims[places]:
            return None
        rows = prod(operator.dims[places])
        each = 1 if operator.name == "aten::gather" else prod(table[1:])
        if operator.name == "aten::index_select" and len(table) > 1 and output is None:
            # Along which dimension is not recorded.
            return None
        picked = rows * each if output is None else prod(output)
        return sum_if_known(_size(operator, places), 2 * picked * width)
    in_place = operator.name.endswith("_") and not operator.name.endswith("__")
    name = operator.name.rstrip("_") if in_place else operator.name
    if name not in READ:
        return None
    read = [position for position in range(min(READ[name], len(operator.dims))) if operator.dims[position]]
    width = CPP_ELEMENT_BYTES.get(operator.dtypes[0]) if in_place else _width_of_result(operator, read)
    try:
        written = operator.dims[0] if in_place else np.broadcast_shapes(*(operator.dims[at] for at in read))
    except ValueError:
        # Sizes that do not fit.
        return None
    if width is None:
        return None
    return sum_if_known(_sum_of(operator, read), prod(written) * (1 if name in TRUTH else width))


def _size(operator: Operator, position: int) -> int | None:
    """Bytes of one input; 0 for what is no tensor, None for a type that is not known."""
    size = _dense_size(operator, position)
    if not size or not operator.strides or len(operator.strides[position]) != len(operator.dims[position]):
        return size
    # Where neighbours of a dimension lie 0 elements apart, they are one element in memory.
    sides = zip(operator.dims[position], operator.strides[position], strict=True)
    return size // prod(length for length, stride in sides if not stride)


def _dense_size(operator: Operator, position: int) -> int | None:
    """Bytes of a tensor of an input's size in which nothing is repeated; 0 and None as of the input itself."""
    if position >= len(operator.dims) or not operator.dims[position]:
        return 0
    width = CPP_ELEMENT_BYTES.get(operator.dtypes[position])
    return None if width is None else prod(operator.dims[position]) * width


def _sum_of(operator: Operator, positions: Sequence[int]) -> int | None:
    return sum_if_known(*(_size(operator, position) for position in positions))


def sum_if_known(*figures: int | None) -> int | None:
    """None where one of them is not known."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) if len(known) == len(figures) else None


def _of_matmul(operator: Operator) -> int | None:
    """Both factors, what is added (broadcast or not, as recorded), and the result."""
    factors = flops.factors_of(operator)
    if factors is None:
        return None
    (batch, m, _), (_, _, n) = factors
    first = flops.MATMULS.get(operator.name, 0)
    width = CPP_ELEMENT_BYTES.get(operator.dtypes[first])
    # Of `linear` the bias stands behind, of the others the result may.
    read = range(first + 2) if operator.name in flops.MATMULS else range(len(operator.dims))
    return None if width is None else sum_if_known(_sum_of(operator, read), batch * m * n * width)


def _of_attention(operator: Operator) -> int | None:
    """Query, key and value, and a result like the query; backward reads that and two gradients, and writes three."""
    sizes = flops.attention_sizes(operator)
    if sizes is None:
        return None
    backward = operator.name.endswith("_backward")
    inputs = (1, 2, 3) if backward else (0, 1, 2)
    query, width = _dense_size(operator, inputs[0]), sizes[0][3]
    if query is None or not width:
        return None
    result = query // width * sizes[2][3]
    gradients = [_dense_size(operator, position) for position in inputs] if backward else []
    return sum_if_known(_sum_of(operator, inputs), *gradients, (2 if backward else 1) * result)


def _of_convolution(operator: Operator, output: flops.Shape | None) -> int | None:
    """Data, weights, what is added, and the result; backward reads three and writes the gradients it is asked for."""
    if operator.name == flops.BACKWARD:
        asked = flops.gradients_of(operator)
        written = [position for position, wanted in zip((1, 2), asked or (), strict=False) if wanted]
        gradients = [_dense_size(operator, position) for position in written]
        return sum_if_known(_sum_of(operator, (0, 1, 2)), *gradients) if asked else None
    found, width = flops.find_convolution(operator, output), CPP_ELEMENT_BYTES.get(operator.dtypes[0])
    if found is None or found.result is None or width is None:
        return None
    return sum_if_known(_sum_of(operator, range(len(operator.dims))), prod(found.result) * width)


def _width_of_result(operator: Operator, read: Sequence[int]) -> int | None:
    """Bytes of an element of the result: the widest floating type, else the widest."""
    # `where` chooses between its last two.
    types = {operator.dtypes[position] for position in (read[1:] if operator.name == "aten::where" else read)}
    if not types or any(each not in CPP_ELEMENT_BYTES for each in types):
        return None
    if {"c10::BFloat16", "c10::Half"} <= types:
        return max(4, *(CPP_ELEMENT_BYTES[each] for each in types if each in FLOATING))
    return max(CPP_ELEMENT_BYTES[each] for each in ([each for each in types if each in FLOATING] or types))
