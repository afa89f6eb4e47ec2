from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tracekit.capture.outputs import keep_output  # noqa: E402


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
