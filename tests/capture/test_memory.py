"""Memory of a GPU that is pretended; a real one's is in tests/gpu."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tracekit.capture import gpu_state  # noqa: E402
from tracekit.capture.forms import Form  # noqa: E402
from tracekit.capture.gpu_state import graph_pool_bytes, measure_steady, warm_up_watched  # noqa: E402
from tracekit.model.gpu import FormMemory, MemoryUse  # noqa: E402


class Allocator:
    """Counts as torch's does: peaks since they were last reset."""

    def __init__(self) -> None:
        self.allocated = self.reserved = self.peak = self.reserved_peak = 0
        self.pools: list[dict[str, Any]] = []

    def take(self, held: int, cached: int) -> None:
        self.peak = max(self.peak, self.allocated + held)
        self.reserved = max(self.reserved, self.allocated + held) + cached
        self.reserved_peak = max(self.reserved_peak, self.reserved)

    def empty(self) -> None:
        self.reserved = self.allocated

    def reset(self) -> None:
        self.peak, self.reserved_peak = self.allocated, self.reserved


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> Allocator:
    found = Allocator()
    monkeypatch.setattr(gpu_state, "synchronize", lambda _device: None)
    for name, function in {
        "empty_cache": found.empty,
        "reset_peak_memory_stats": found.reset,
        "memory_allocated": lambda: found.allocated,
        "max_memory_allocated": lambda: found.peak,
        "max_memory_reserved": lambda: found.reserved_peak,
        "memory_snapshot": lambda: found.pools,
    }.items():
        monkeypatch.setattr(torch.cuda, name, function)
    return found


def test_a_warm_up_s_peak_counts_compilation_and_leaves_out_what_was_cached_before(allocator: Allocator) -> None:
    allocator.allocated, allocator.reserved = 100, 5000
    with warm_up_watched("cuda") as watch:
        allocator.take(held=300, cached=50)
        allocator.take(held=20, cached=0)
    assert watch.found == FormMemory(100, MemoryUse(400, 450), None, 0, 0)


def test_steady_calls_have_a_peak_of_their_own(allocator: Allocator) -> None:
    allocator.allocated = 100
    with warm_up_watched("cuda") as watch:
        allocator.take(held=300, cached=50)
    form = Form("eager", "cuda", lambda: allocator.take(held=30, cached=0))
    found = measure_steady(form, watch.found)
    assert found is not None
    assert found.steady == MemoryUse(130, 130)
    assert found.warmup == MemoryUse(400, 450)


def test_a_form_s_graph_pools_are_what_its_warm_up_added(allocator: Allocator) -> None:
    allocator.pools = [{"total_size": 1000, "segment_pool_id": (0, 0)}, {"total_size": 7, "segment_pool_id": (0, 1)}]
    with warm_up_watched("cuda") as watch:
        allocator.pools.append({"total_size": 40, "segment_pool_id": (0, 2)})
    assert watch.found is not None
    assert (watch.found.graph_pool_bytes, watch.found.others_pool_bytes) == (40, 7)


def test_a_torch_that_does_not_tell_pools_is_not_taken_for_one_without(allocator: Allocator) -> None:
    allocator.pools = [{"total_size": 1000}]
    assert graph_pool_bytes() is None
    with warm_up_watched("cuda") as watch:
        pass
    assert watch.found is not None
    assert watch.found.graph_pool_bytes is None


def test_a_cpu_is_asked_nothing() -> None:
    with warm_up_watched("cpu") as watch:
        pass
    assert watch.found is None
    assert measure_steady(Form("eager", "cpu", lambda: 1 / 0), None) is None
