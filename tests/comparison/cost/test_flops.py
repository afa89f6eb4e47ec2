"""Operations that are derived from a recording, beside those that torch counts on the same tensors."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracekit.analysis.sequence import as_operator
from tracekit.comparison.cost.flops import ARGUMENTS, find_convolution, find_layout, flops_of, is_counted, moved_last
from tracekit.comparison.cost.traffic import bytes_of
from tracekit.model.sequence import Activity, Operator

torch = pytest.importorskip("torch")


def drawn(*shape: int) -> Any:
    return torch.zeros(shape, requires_grad=True)


def attend(**options: Any) -> Any:
    """Attention made of products."""
    from torch.nn import attention, functional

    query, key, value = drawn(2, 4, 16, 8), drawn(2, 4, 32, 8), drawn(2, 4, 32, 8)
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        return functional.scaled_dot_product_attention(query, key, value, **options)


def modules() -> dict[str, Callable[[], Any]]:
    from torch import nn

    return {
        "mm": lambda: drawn(6, 8) @ drawn(8, 3),
        "addmm": lambda: torch.addmm(drawn(3), drawn(6, 8), drawn(8, 3)),
        "bmm": lambda: torch.bmm(drawn(2, 6, 8), drawn(2, 8, 3)),
        "baddbmm": lambda: torch.baddbmm(drawn(2, 6, 3), drawn(2, 6, 8), drawn(2, 8, 3)),
        "linear": lambda: nn.Linear(8, 5)(drawn(2, 7, 8)),
        "linear without a bias": lambda: nn.Linear(8, 5, bias=False)(drawn(2, 7, 8)),
        "with stride, padding and dilation": lambda: nn.Conv2d(3, 5, 3, (2, 1), (1, 2), 2)(drawn(2, 3, 16, 15)),
        "transposed": lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2)(drawn(2, 4, 8, 9)),
        "in three": lambda: nn.Conv3d(3, 6, (2, 4, 4), (2, 4, 4))(drawn(1, 3, 4, 16, 16)),
        "attention by products": attend,
        "attention by products, masked": lambda: attend(attn_mask=torch.zeros(16, 32)),
        "convolution, backward": lambda: nn.Conv2d(3, 5, 3)(drawn(2, 3, 16, 15)).sum().backward(),
        "product, backward": lambda: (drawn(6, 8) @ drawn(8, 3)).sum().backward(),
    }


@pytest.mark.parametrize("what", modules())
def test_the_sum_over_a_recording_is_what_torch_counts(what: str, tmp_path: Path) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    call = modules()[what]
    with FlopCounterMode(display=False) as counter:
        call()
    counted = [each for each in record(call, tmp_path) if is_counted(each[2].name)]
    # Those that hold no others that are counted.
    innermost = [
        operator
        for begin, end, operator in counted
        if not any(begin <= b and e <= end and inner is not operator for b, e, inner in counted)
    ]
    assert sum(map(flops_of, innermost)) == counter.get_total_flops() > 0


def record(call: Callable[[], Any], folder: Path) -> list[tuple[float, float, Operator]]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        call()
    profiler.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    found = []
    for event in (event for event in events if event.get("cat") == "cpu_op"):
        told = (json.dumps(event["args"].get(key)) for key in ("Input Dims", "Input type", "Concrete Inputs"))
        found.append((event["ts"], event["ts"] + event["dur"], as_operator(event["name"], *told)))
    return found


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("_scaled_dot_product_flash_attention", [(2, 4, 16, 8), (2, 4, 32, 8), (2, 4, 32, 8)]),
        ("_scaled_dot_product_efficient_attention", [(2, 4, 16, 8), (2, 4, 32, 8), (2, 4, 32, 8)]),
        ("_scaled_dot_product_cudnn_attention", [(2, 4, 16, 8), (2, 4, 32, 8), (2, 4, 32, 12)]),
        ("_flash_attention_forward", [(2, 16, 4, 8), (2, 32, 4, 8), (2, 32, 4, 8)]),
        ("_efficient_attention_forward", [(2, 16, 4, 8), (2, 32, 4, 8), (2, 32, 4, 8)]),
        ("_scaled_dot_product_flash_attention_backward", [(2, 4, 16, 8)] * 4),
        ("_scaled_dot_product_efficient_attention_backward", [(2, 4, 16, 8)] * 4),
        ("_scaled_dot_product_cudnn_attention_backward", [(2, 4, 16, 8)] * 4),
    ],
)
def test_operations_of_attention_are_those_that_torch_counts(name: str, shapes: list[tuple[int, ...]]) -> None:
    from torch.utils.flop_counter import sdpa_backward_flop_count, sdpa_flop_count

    formula = sdpa_backward_flop_count if name.endswith("_backward") else sdpa_flop_count
    by_length = name.startswith(("_flash", "_efficient"))
    heads_first = [(b, h, n, w) for b, n, h, w in shapes] if by_length else shapes
    operator = Operator(f"aten::{name}", tuple(shapes), ("float",) * len(shapes))
    assert flops_of(operator) == formula(*heads_first)


def recorded(name: str, arguments: list[Any]) -> Operator:
    """The operator as the profiler writes it."""
    tensors = [isinstance(each, torch.Tensor) for each in arguments]
    return Operator(
        f"aten::{name}",
        tuple(tuple(each.shape) if is_one else () for each, is_one in zip(arguments, tensors, strict=True)),
        tuple("float" if is_one else "ScalarList" for is_one in tensors),
        tuple("" if is_one or each is None else str(each) for each, is_one in zip(arguments, tensors, strict=True)),
    )


def meta(*shape: int) -> Any:
    return torch.empty(shape, device="meta")


PLAIN = [meta(2, 8, 17, 16), meta(6, 4, 3, 5), None, [2, 1], [1, 2], [1, 2], False, [0, 0], 2]
TRANSPOSED = [meta(2, 8, 9, 16), meta(8, 3, 3, 5), None, [2, 1], [1, 2], [1, 2], True, [1, 0], 2]
IN_ONE_DIMENSION = [meta(2, 80, 300), meta(64, 80, 3), None, [2], [1], [1], False, [0], 1]
IN_THREE = [meta(1, 3, 4, 28, 28), meta(32, 3, 2, 14, 14), None, [2, 14, 14], [0, 0, 0], [1, 1, 1], False, [0] * 3, 1]
#: A stride written once is that of every dimension.
WRITTEN_ONCE = [meta(1, 3, 8, 8), meta(4, 3, 3, 3), None, [2], [1], [1], False, [0], 1]


@pytest.mark.parametrize("arguments", [PLAIN, TRANSPOSED, IN_ONE_DIMENSION, IN_THREE, WRITTEN_ONCE])
def test_result_operations_and_bytes_are_those_of_torch(arguments: list[Any]) -> None:
    from torch.utils.flop_counter import flop_registry

    result = torch.ops.aten.convolution(*arguments)
    operator = recorded("convolution", arguments)
    found = find_convolution(operator)
    assert found.result == tuple(result.shape)
    counted = flop_registry[torch.ops.aten.convolution](*arguments, out_val=result)
    assert flops_of(operator) == counted
    assert bytes_of(operator) == 4 * (arguments[0].numel() + arguments[1].numel() + result.numel())
    # With the size of the result the rest need not be recorded, but for which way it goes.
    assert flops_of(Operator(operator.name, operator.dims, operator.dtypes, ("",) * 6 + operator.values[6:7]),
                    tuple(result.shape)) == counted  # fmt: skip


@pytest.mark.parametrize("arguments", [[*PLAIN[:-1], 1], [*TRANSPOSED[:-1], 1], IN_ONE_DIMENSION])
@pytest.mark.parametrize("mask", [[True, True, False], [False, True, True], [True, False, False]])
def test_operations_of_backward_are_those_of_torch(arguments: list[Any], mask: list[bool]) -> None:
    from torch.utils.flop_counter import flop_registry

    data, weight, _, *rest = arguments
    weight = meta(weight.shape[0], 8, *weight.shape[2:]) if data.shape[1] == 8 and not rest[3] else weight
    gradient = torch.ops.aten.convolution(data, weight, None, *rest)
    result = torch.ops.aten.convolution_backward(gradient, data, weight, [weight.shape[0]], *rest, mask)
    operator = recorded("convolution_backward", [gradient, data, weight, [weight.shape[0]], *rest, mask])
    counted = flop_registry[torch.ops.aten.convolution_backward](
        gradient, data, weight, None, *rest, mask, out_val=result
    )
    assert flops_of(operator) == counted
    written = sum(each.numel() for each in result[:2] if each is not None)
    assert bytes_of(operator) == 4 * (gradient.numel() + data.numel() + weight.numel() + written)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_stand_where_torch_declares_them(name: str) -> None:
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
    declared = [each.name for each in getattr(packet, packet.overloads()[0])._schema.arguments]
    assert [declared[at] for at in ARGUMENTS[name].values()] == list(ARGUMENTS[name])


@pytest.mark.parametrize(
    "values",
    [(), ("", "", "", "[2, 1]"), ("", "", "", "[0, 1]", *("[1, 1]",) * 2, "False", "[0, 0]", "1"),
     ("", "", "", "[2, 1, 1]", *("[1, 1]",) * 2, "False", "[0, 0]", "1"),
     ("", "", "", "same", *("[1, 1]",) * 2, "False", "[0, 0]", "1"),
     ("", "", "", "[1, 1]", *("[1, 1]",) * 2, "maybe", "[0, 0]", "1")],
)  # fmt: skip
def test_what_was_not_recorded_or_does_not_fit_has_no_result(values: tuple[str, ...]) -> None:
    operator = Operator("aten::convolution", ((1, 3, 8, 8), (4, 3, 3, 3)), ("float", "float"), values)
    assert (flops_of(operator), bytes_of(operator)) == (None, None)


Sizes = tuple[int, ...]


def convolution(data: Sizes, strides: Sizes, name: str = "aten::cudnn_convolution") -> Operator:
    weight = (8, data[1], *(1 for _ in data[2:]))
    return Operator(name, (data, weight), ("float", "float"), strides=(strides, (data[1], *(1 for _ in weight[1:]))))


@pytest.mark.parametrize(
    ("data", "strides", "layout"),
    [
        ((16, 32, 257, 259), (32 * 257 * 259, 257 * 259, 259, 1), "channels first"),
        ((16, 32, 257, 259), (32 * 257 * 259, 1, 259 * 32, 32), "channels last"),
        # Rows with room behind them.
        ((2, 3, 4, 5), (3 * 4 * 8, 4 * 8, 8, 1), "channels first"),
        ((2, 3, 4, 5), (4 * 8 * 3, 1, 8 * 3, 3), "channels last"),
        # One dimension, and three.
        ((2, 3, 50), (150, 50, 1), "channels first"),
        ((2, 3, 50), (150, 1, 3), "channels last"),
        ((2, 3, 4, 5, 6), (360, 1, 90, 18, 3), "channels last"),
        # Both at once: one place, one channel.
        ((2, 3, 1, 1), (3, 1, 1, 1), None),
        ((2, 1, 4, 5), (20, 20, 5, 1), None),
        # Neither: channels between rows and columns.
        ((2, 3, 4, 5), (60, 5, 15, 1), None),
        # One value for all channels, or all rows: they lie nowhere.
        ((2, 3, 4, 5), (20, 0, 5, 1), None),
        ((2, 3, 4, 5), (60, 20, 0, 1), None),
        # A row of one place, whose stride says nothing.
        ((2, 3, 1, 5), (15, 1, 15, 3), "channels last"),
        ((2, 3, 1, 5), (15, 5, 5, 1), "channels first"),
    ],
)
def test_strides_say_where_the_channels_lie(data: Sizes, strides: Sizes, layout: str | None) -> None:
    assert find_layout(convolution(data, strides)) == layout


def test_where_strides_were_not_recorded_or_nothing_is_convolved_there_is_no_layout() -> None:
    known = convolution((2, 3, 4, 5), (60, 1, 15, 3))
    without = Operator(known.name, known.dims, known.dtypes)
    short, product = convolution((2, 3, 4, 5), (60, 1)), convolution((2, 3, 4, 5), (60, 1, 15, 3), name="aten::mm")
    assert [find_layout(each) for each in (without, short, product)] == [None, None, None]


FIRST, LAST = convolution((2, 3, 4, 5), (60, 20, 5, 1)), convolution((2, 3, 4, 5), (60, 1, 15, 3))


@pytest.mark.parametrize(
    ("a", "b", "moved"),
    [
        ([FIRST], [LAST], True),
        ([LAST], [LAST], False),
        ([FIRST], [FIRST], False),
        ([LAST], [FIRST], False),
        # Some of them only.
        ([FIRST, FIRST], [FIRST, LAST], False),
        ([FIRST, LAST], [LAST, LAST], False),
        ([FIRST], [], False),
    ],
)
def test_channels_moved_where_all_were_first_and_all_are_last(a, b, moved) -> None:
    assert moved_last(*([Activity("k", "convolution", 1.0, each) for each in side] for side in (a, b))) is moved
