"""Operations that are derived from a recording, beside those that torch counts on the same tensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracekit.analysis.sequence import as_operator
from tracekit.comparison.cost.flops import flops_of, is_counted
from tracekit.model.sequence import Operator

torch = pytest.importorskip("torch")


def drawn(*shape: int) -> Any:
    return torch.zeros(shape, requires_grad=True)


def attend(**options: Any) -> Callable[[], Any]:
    from torch.nn import functional

    heads, grouped = 4, options.pop("grouped", 4)
    query, key, value = drawn(2, heads, 16, 8), drawn(2, grouped, 32, 8), drawn(2, grouped, 32, 8)
    return lambda: functional.scaled_dot_product_attention(query, key, value, **options)


def modules() -> dict[str, Callable[[], Any]]:
    from torch import nn

    return {
        "mm": lambda: drawn(6, 8) @ drawn(8, 3),
        "addmm": lambda: torch.addmm(drawn(3), drawn(6, 8), drawn(8, 3)),
        "bmm": lambda: torch.bmm(drawn(2, 6, 8), drawn(2, 8, 3)),
        "baddbmm": lambda: torch.baddbmm(drawn(2, 6, 3), drawn(2, 6, 8), drawn(2, 8, 3)),
        "linear": lambda: nn.Linear(8, 5)(drawn(2, 7, 8)),
        "linear without a bias": lambda: nn.Linear(8, 5, bias=False)(drawn(2, 7, 8)),
        "convolution": lambda: nn.Conv2d(3, 5, 3)(drawn(2, 3, 16, 15)),
        "with stride, padding and dilation": lambda: nn.Conv2d(3, 5, 3, (2, 1), (1, 2), 2)(drawn(2, 3, 16, 15)),
        "in groups": lambda: nn.Conv2d(8, 6, 3, groups=2)(drawn(2, 8, 16, 15)),
        "of each channel": lambda: nn.Conv2d(8, 8, 3, groups=8)(drawn(2, 8, 16, 15)),
        "transposed": lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2)(drawn(2, 4, 8, 9)),
        "in one dimension": lambda: nn.Conv1d(4, 6, 3, 2)(drawn(2, 4, 33)),
        "in three": lambda: nn.Conv3d(3, 6, (2, 4, 4), (2, 4, 4))(drawn(1, 3, 4, 16, 16)),
        "attention by products": lambda: _by_products(attend()),
        "attention by products, masked": lambda: _by_products(attend(attn_mask=torch.zeros(16, 32))),
        "convolution, backward": lambda: nn.Conv2d(3, 5, 3)(drawn(2, 3, 16, 15)).sum().backward(),
        "product, backward": lambda: (drawn(6, 8) @ drawn(8, 3)).sum().backward(),
    }


def _by_products(attention: Callable[[], Any]) -> Any:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        return attention()


@pytest.mark.parametrize("what", modules())
def test_the_sum_over_a_recording_is_what_torch_counts(what: str, tmp_path: Path) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    call = modules()[what]
    with FlopCounterMode(display=False) as counter:
        call()
    assert sum(map(_counted, _innermost(record(call, tmp_path)))) == counter.get_total_flops() > 0


def _counted(operator: Operator) -> int:
    flops = flops_of(operator)
    assert flops is not None, operator
    return flops


def record(call: Callable[[], Any], folder: Path) -> list[tuple[float, float, Operator]]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        call()
    profiler.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    return [(each["ts"], each["ts"] + each["dur"], Operator(each["name"], *_of(each["args"]))) for each in operators]


def _of(arguments: dict[str, Any]) -> tuple[Any, ...]:
    dims, types, values = (json.dumps(arguments.get(key)) for key in ("Input Dims", "Input type", "Concrete Inputs"))
    found = as_operator("x", dims, types, values)
    return found.dims, found.dtypes, found.values


def _innermost(events: list[tuple[float, float, Operator]]) -> list[Operator]:
    """Operators that are counted and hold no others that are."""
    counted = [each for each in events if is_counted(each[2].name)]
    return [
        operator
        for begin, end, operator in counted
        if not any(begin <= b and e <= end and inner is not operator for b, e, inner in counted)
    ]


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
