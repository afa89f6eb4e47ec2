"""What larger calls need beyond the memory that the list states."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tracekit.model.workload import Request
from tracekit.workloads import registry
from tracekit.workloads.growth import growth_gib


def growth(name: str, size: str = "full", **asked: int) -> float | None:
    return growth_gib(registry.find(name), Request(name, **asked), size)  # type: ignore[arg-type]


def test_a_call_as_the_list_has_it_grows_by_nothing_and_builds_nothing() -> None:
    assert growth("a.b:c") is None
    assert growth_gib(replace(registry.find("vit"), module="nowhere"), Request("vit"), "full") is None
    assert growth("vit") == 0


def test_each_further_image_needs_as_much_again() -> None:
    ten, hundred = growth("vit", batch_size=10), growth("vit", batch_size=100)
    assert ten is not None and hundred is not None
    assert hundred == pytest.approx(11 * ten)
    # Hidden states of 197 tokens, 3072 wide, and one image: a few MiB each.
    assert 0.1 < hundred < 2


def test_what_runs_in_float32_alone_is_played_through_in_it_and_counted_as_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tracekit.workloads import transformers_forward

    monkeypatch.setattr(transformers_forward, "masks_in_any_type", lambda: False)
    listed = growth("maskformer", "tiny", batch_size=4)
    assert listed is not None and listed > 0
    wide = replace(registry.find("vit"), dtype="float32")
    monkeypatch.setattr("tracekit.workloads.growth.all_workloads", lambda: (wide,))
    found = growth_gib(wide, Request("vit", batch_size=4), "tiny")
    monkeypatch.undo()
    assert found == pytest.approx(growth("vit", "tiny", batch_size=4))


def test_what_cannot_be_rehearsed_grows_with_the_pixels() -> None:
    pytest.importorskip("diffusers")
    per_image = 1.9 * 512 * 512 / 1e6
    assert growth("flux", batch_size=5) == pytest.approx(4 * per_image)
    assert growth("flux", height=1024, width=1024) == pytest.approx(3 * per_image)
    assert growth("flux-schnell", height=1024, batch_size=2) == pytest.approx(3 * per_image)
    smaller = growth("flux", height=256)
    assert smaller is not None and smaller < 0
