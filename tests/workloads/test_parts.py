"""Blocks that repeat, in small models and in the published ones."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("diffusers")

from tests.workloads.builds import nowhere  # noqa: E402
from torch import nn  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.workloads import scopes  # noqa: E402
from tracekit.workloads.parts import (  # noqa: E402
    repeated_blocks,
)


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 4)


def blocks(model: nn.Module) -> list[str]:
    return [*repeated_blocks([("model", model)])]


def test_alike_blocks_of_a_list_repeat() -> None:
    model = nn.ModuleDict({"first": nn.Linear(4, 4), "blocks": nn.ModuleList(Block(4) for _ in range(3))})
    assert blocks(model) == ["model.blocks.0", "model.blocks.1", "model.blocks.2"]


def test_blocks_of_which_no_two_are_alike_do_not() -> None:
    assert blocks(nn.ModuleList([Block(4), Block(8)])) == []


def test_blocks_of_different_classes_do_not() -> None:
    assert blocks(nn.ModuleList([nn.Sequential(nn.Linear(4, 4)), Block(4)])) == []


def test_single_layers_do_not() -> None:
    assert blocks(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))) == []


def test_the_outermost_alike_blocks_count() -> None:
    def outer() -> nn.Module:
        return nn.Sequential(Block(4), Block(4))

    assert blocks(nn.ModuleList([outer(), outer()])) == ["model.0", "model.1"]
    assert blocks(nn.ModuleList([outer(), nn.Sequential(Block(8), Block(8))])) == [
        "model.0.0",
        "model.0.1",
        "model.1.0",
        "model.1.1",
    ]


def test_what_diffusers_calls_repeated_goes_first() -> None:
    model = nn.ModuleDict({"a": nn.ModuleList([Block(4), Block(4)]), "b": nn.Bilinear(1, 1, 1)})
    model._repeated_blocks = ["Bilinear"]
    assert blocks(model) == ["model.b"]
    named = scopes.compile_targets(nowhere("sdxl"), "regional")
    assert all(".transformer_blocks." in target.component for target in named)


def test_a_model_without_is_refused_with_its_parts() -> None:
    with pytest.raises(TracekitError, match="convnext at size tiny has no blocks that repeat") as caught:
        scopes.compile_targets(nowhere("convnext", "tiny"), "regional")
    assert "%" in caught.value.below[0]
