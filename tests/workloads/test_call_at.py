"""Calls of the same model at other sizes than those it was built for."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from tracekit.model.progress import Silent
from tracekit.model.workload import Request
from tracekit.workloads.registry import find, load_builder


def shape_at(name: str, other: Request, **asked: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of what a call returns, and of one at another request."""
    pytest.importorskip("transformers" if name != "mlp" else "torch")
    built = load_builder(find(name))(Request(name, **asked), "tiny", "cpu", Silent())
    assert built.call_at is not None
    one, two = built.call(), built.call_at(other)()
    return tuple(one.shape), tuple(two.shape)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["mlp", "vit", "causal-lm"])
def test_a_batch_of_another_size_goes_through_the_same_model(name: str) -> None:
    one, two = shape_at(name, Request(name, batch_size=1), batch_size=3)
    assert (one[0], two[0]) == (3, 1)
    assert one[1:] == two[1:]


@pytest.mark.slow
def test_flux_makes_images_of_another_size_with_the_same_weights() -> None:
    pytest.importorskip("diffusers")
    other = Request("flux", height=64, width=96, steps=1, batch_size=2)
    assert shape_at("flux", other, steps=1) == ((1, 3, 128, 128), (2, 3, 64, 96))
