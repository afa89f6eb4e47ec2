from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from tracekit.capture import outputs
from tracekit.capture.outputs import (
    Output,
    compare_outputs,
    keep_output,
)
from tracekit.model.note import Noted
from tracekit.model.numerics import TensorDifference


@dataclass
class Detections:
    logits: Any
    boxes: Any = None


def test_every_tensor_is_kept_under_its_place() -> None:
    one = torch.ones(2)
    returned = {"a": [one, (one, one)], "b": Detections(one, np.zeros(3, dtype=np.float32)), "c": None}
    assert list(keep_output(returned).tensors) == [".a[0]", ".a[1][0]", ".a[1][1]", ".b.logits", ".b.boxes"]


def test_a_lone_tensor_has_an_empty_path() -> None:
    assert list(keep_output(torch.ones(2)).tensors) == [""]


def test_what_is_kept_outlives_a_change_of_what_was_returned() -> None:
    returned = torch.ones(2)
    kept = keep_output(returned)
    returned.zero_()
    assert kept.tensors[""].tolist() == [1, 1]


def test_what_is_no_tensor_is_named_and_plain_values_are_not() -> None:
    found = keep_output([object(), "text", 3, None, torch.ones(1)])
    assert found.skipped == ("object",)
    assert list(found.tensors) == ["[4]"]


def test_outputs_of_transformers_are_walked_by_their_fields() -> None:
    outputs = pytest.importorskip("transformers.modeling_outputs")
    found = keep_output(outputs.BaseModelOutput(last_hidden_state=torch.ones(1), hidden_states=(torch.ones(1),)))
    assert list(found.tensors) == [".last_hidden_state", ".hidden_states[0]"]


def test_outputs_of_diffusers_are_walked_by_their_fields() -> None:
    outputs = pytest.importorskip("diffusers.models.modeling_outputs")
    assert list(keep_output(outputs.Transformer2DModelOutput(sample=torch.ones(1))).tensors) == [".sample"]


def test_mappings_keep_their_order() -> None:
    returned = OrderedDict(z=torch.ones(1), a=torch.ones(1))
    assert list(keep_output(returned).tensors) == [".z", ".a"]


def only(one: Any, other: Any) -> TensorDifference:
    (found,) = compare_outputs(keep_output(one), keep_output(other), "eager", "cpu").tensors
    return found


def test_errors_are_those_of_the_definitions() -> None:
    found = only(torch.tensor([1.0, 2.0, 2.0]), torch.tensor([1.0, 2.0, 0.0]))
    assert (found.max_abs, found.mean_abs, found.other_max) == (2.0, pytest.approx(2 / 3), 2.0)
    assert found.relative == pytest.approx(2 / math.sqrt(5))
    assert found.cosine == pytest.approx(5 / (3 * math.sqrt(5)))
    assert found.equal_share == pytest.approx(2 / 3)
    assert (found.nonfinite, found.mismatch) == (0, None)


def test_pieces_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = torch.randn(7, 11), torch.randn(7, 11)
    whole = only(one, other)
    monkeypatch.setattr(outputs, "PIECE", 10)
    in_pieces = only(one, other)
    for field in ("max_abs", "mean_abs", "relative", "cosine", "equal_share", "other_max"):
        assert getattr(in_pieces, field) == pytest.approx(getattr(whole, field), rel=1e-12)


def test_small_differences_of_large_numbers_are_not_lost_to_float32() -> None:
    other = torch.full((1000,), 1e8, dtype=torch.float64)
    found = only(other + 1, other)
    assert found.relative == pytest.approx(1e-8, rel=1e-6)


def test_nan_beside_nan_is_equal_and_beside_a_number_is_counted() -> None:
    nan, inf = math.nan, math.inf
    found = only(torch.tensor([nan, nan, inf, inf, 1.0]), torch.tensor([nan, 1.0, inf, -inf, 1.0]))
    assert found.nonfinite == 2
    assert found.equal_share == pytest.approx(3 / 5)
    assert found.max_abs == 0


def test_where_nothing_is_finite_there_is_no_error() -> None:
    found = only(torch.tensor([math.nan]), torch.tensor([1.0]))
    assert (found.max_abs, found.relative, found.cosine, found.nonfinite) == (None, None, None, 1)


def test_other_shapes_are_told_and_not_compared() -> None:
    found = only(torch.ones(2, 3), torch.ones(3, 2))
    assert found.mismatch == Noted("shapes_differ", {"shape": (2, 3), "other_shape": (3, 2)})
    assert found.max_abs is None


def test_a_tensor_of_one_output_alone_is_told() -> None:
    one, other = keep_output({"a": torch.ones(1)}), keep_output({"b": torch.ones(1)})
    problems = [each.mismatch for each in compare_outputs(one, other, "eager", "cpu").tensors]
    assert problems == [Noted("in_one_output_only")] * 2


def test_tokens_agree_up_to_the_first_place_where_any_row_differs() -> None:
    one, other = torch.tensor([[1, 2, 3, 4], [1, 2, 3, 4]]), torch.tensor([[1, 2, 3, 4], [1, 9, 3, 4]])
    found = only(one, other)
    assert found.counts
    assert (found.equal_share, found.first_divergence, found.relative) == (7 / 8, 1, None)


def test_rows_that_stopped_earlier_lack_what_the_others_have() -> None:
    found = only(torch.tensor([[1, 2]]), torch.tensor([[1, 2, 3, 4]]))
    assert (found.equal_share, found.first_divergence, found.mismatch) == (0.5, 2, None)


def test_equal_tokens_do_not_diverge() -> None:
    found = only(torch.tensor([[1, 2]]), torch.tensor([[1, 2]]))
    assert (found.equal_share, found.first_divergence) == (1.0, None)


def test_half_precision_is_measured_beside_full() -> None:
    found = only(torch.tensor([1.0, 3.0]).bfloat16(), torch.tensor([1.0, 3.01]))
    assert found.dtype == "bfloat16"
    assert found.max_abs == pytest.approx(0.01, rel=1e-4)


def test_empty_tensors_have_no_figures() -> None:
    assert only(torch.ones(0), torch.ones(0)).equal_share is None


def test_complex_numbers_are_measured_by_both_parts() -> None:
    found = only(torch.tensor([1 + 2j]), torch.tensor([1 + 1j]))
    assert found.max_abs == 1
    assert found.relative == pytest.approx(1 / math.sqrt(2))


def test_nothing_beside_nothing_is_no_tensor() -> None:
    assert compare_outputs(Output({}, ()), Output({}, ()), "itself", "cpu").tensors == ()
