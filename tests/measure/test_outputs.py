import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from tracekit.measure import outputs
from tracekit.measure.outputs import Output, compare_outputs, keep_output
from tracekit.model.numerics import TensorDifference
from tracekit.statements.noted import InOneOutputOnly, ShapesDiffer

NAN, INF = math.nan, math.inf


@dataclass
class Detections:
    logits: Any
    boxes: Any = None


def test_every_tensor_is_kept_under_its_place_and_outlives_a_change() -> None:
    one = torch.ones(2)
    returned = {"a": [one, (one, one)], "b": Detections(one, np.zeros(3, dtype=np.float32)), "c": None}
    kept = keep_output(returned)
    assert list(kept.tensors) == [".a[0]", ".a[1][0]", ".a[1][1]", ".b.logits", ".b.boxes"]
    one.zero_()
    assert kept.tensors[".a[0]"].tolist() == [1, 1]
    assert list(keep_output(one).tensors) == [""]
    assert list(keep_output(OrderedDict(z=one, a=one)).tensors) == [".z", ".a"]


def test_what_is_no_tensor_is_named_and_plain_values_are_not() -> None:
    found = keep_output([object(), "text", 3, None, torch.ones(1)])
    assert found.skipped == ("object",)
    assert list(found.tensors) == ["[4]"]


def test_outputs_of_transformers_and_diffusers_are_walked_by_their_fields() -> None:
    outputs = pytest.importorskip("transformers.modeling_outputs")
    found = keep_output(outputs.BaseModelOutput(last_hidden_state=torch.ones(1), hidden_states=(torch.ones(1),)))
    assert list(found.tensors) == [".last_hidden_state", ".hidden_states[0]"]
    outputs = pytest.importorskip("diffusers.models.modeling_outputs")
    assert list(keep_output(outputs.Transformer2DModelOutput(sample=torch.ones(1))).tensors) == [".sample"]


def only(one: Any, other: Any) -> TensorDifference:
    (found,) = compare_outputs(keep_output(one), keep_output(other), "eager", "cpu").tensors
    return found


def test_pieces_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = torch.randn(7, 11), torch.randn(7, 11)
    whole = only(one, other)
    monkeypatch.setattr(outputs, "PIECE", 10)
    in_pieces = only(one, other)
    for field in ("max_abs", "mean_abs", "relative", "cosine", "equal_share", "other_max"):
        assert getattr(in_pieces, field) == pytest.approx(getattr(whole, field), rel=1e-12)


@pytest.mark.parametrize(
    ("one", "other", "figures"),
    [
        # Each by its definition.
        (
            [1.0, 2.0, 2.0],
            [1.0, 2.0, 0.0],
            {
                "max_abs": 2.0,
                "mean_abs": pytest.approx(2 / 3),
                "other_max": 2.0,
                "nonfinite": 0,
                "mismatch": None,
                "relative": pytest.approx(2 / 5**0.5),
                "cosine": pytest.approx(5 / (3 * 5**0.5)),
                "equal_share": pytest.approx(2 / 3),
            },
        ),
        # NaN beside NaN is equal, and beside a number it is counted.
        ([NAN, NAN, INF, INF, 1.0], [NAN, 1.0, INF, -INF, 1.0], {"nonfinite": 2, "equal_share": 0.6, "max_abs": 0}),
        ([NAN], [1.0], {"max_abs": None, "relative": None, "cosine": None, "nonfinite": 1}),
        ([[1.0, 1.0]], [[1.0], [1.0]], {"mismatch": ShapesDiffer(shape=(1, 2), other_shape=(2, 1))}),
        # Tokens agree up to the first place where any row differs.
        (
            [[1, 2, 3, 4]] * 2,
            [[1, 2, 3, 4], [1, 9, 3, 4]],
            {"equal_share": 7 / 8, "first_divergence": 1, "relative": None},
        ),
        # Rows that stopped earlier lack what the others have.
        ([[1, 2]], [[1, 2, 3, 4]], {"equal_share": 0.5, "first_divergence": 2, "mismatch": None}),
        ([[1, 2]], [[1, 2]], {"equal_share": 1.0, "first_divergence": None}),
        ([], [], {"equal_share": None}),
        ([1 + 2j], [1 + 1j], {"max_abs": 1, "relative": pytest.approx(1 / math.sqrt(2))}),
    ],
)
def test_figures_are_of_finite_numbers_of_tokens_and_of_both_parts(
    one: Any, other: Any, figures: dict[str, Any]
) -> None:
    found = only(torch.tensor(one), torch.tensor(other))
    assert {name: getattr(found, name) for name in figures} == figures


def test_a_tensor_of_one_output_only_is_told() -> None:
    one, other = keep_output({"a": torch.ones(1)}), keep_output({"b": torch.ones(1)})
    problems = [each.mismatch for each in compare_outputs(one, other, "eager", "cpu").tensors]
    assert problems == [InOneOutputOnly()] * 2
    assert compare_outputs(Output({}, ()), Output({}, ()), "itself", "cpu").tensors == ()


def test_half_precision_is_measured_beside_full() -> None:
    found = only(torch.tensor([1.0, 3.0]).bfloat16(), torch.tensor([1.0, 3.01]))
    assert found.dtype == "bfloat16"
    assert found.max_abs == pytest.approx(0.01, rel=1e-4)
    other = torch.full((1000,), 1e8, dtype=torch.float64)
    assert only(other + 1, other).relative == pytest.approx(1e-8, rel=1e-6), "small beside large, lost in float32"
