"""What a larger batch needs on a GPU, beside what is estimated before anything is built."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import Request  # noqa: E402
from tracekit.workloads import registry  # noqa: E402
from tracekit.workloads.growth import growth_gib  # noqa: E402


def peak_gib(name: str, batch_size: int) -> float:
    info = registry.find(name)
    workload = registry.load_builder(info)(Request(name, batch_size=batch_size), "full", "cuda", Silent())
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    workload.call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**30


@pytest.mark.parametrize(("name", "batch_size"), [("vit", 257), ("bert", 257), ("causal-lm", 17)])
def test_what_further_inputs_need_is_within_a_factor_of_two_of_the_estimate(name: str, batch_size: int) -> None:
    estimate = growth_gib(registry.find(name), Request(name, batch_size=batch_size), "full")
    assert estimate is not None
    measured = peak_gib(name, batch_size) - peak_gib(name, 1)
    assert measured / 2 < estimate < 2 * measured
