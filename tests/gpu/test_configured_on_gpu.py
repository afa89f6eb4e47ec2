"""Models by their configuration on a real GPU: compiled with Inductor, and no more memory than was foretold."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("diffusers")

from tests.workloads.configurations import save_denoiser, save_transformers  # noqa: E402

from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import Request  # noqa: E402
from tracekit.workloads import registry  # noqa: E402

NAMES = (
    ("hf", "ViTForImageClassification"),
    ("hf", "LlamaForCausalLM"),
    ("hf", "T5ForConditionalGeneration"),
    ("hf", "WhisperForConditionalGeneration"),
    ("diffusers", "UNet2DConditionModel"),
    ("diffusers", "FluxTransformer2DModel"),
    ("diffusers", "SD3Transformer2DModel"),
)


@pytest.mark.parametrize(("prefix", "name"), NAMES)
def test_compiled_it_returns_what_eager_does_in_the_memory_foretold(prefix: str, name: str, tmp_path: Path) -> None:
    torch.compiler.reset()
    save = save_transformers if prefix == "hf" else save_denoiser
    # In float32, so that rounding cannot hide or feign a difference.
    request = Request(f"{prefix}:{save(name, tmp_path)}", dtype="float32")
    info = registry.find(request.workload)
    builder = registry.load_builder(info)
    foretold = registry.look_into(info, request).memory_gib["full"] * 2**30
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    workload = builder(request, "full", "cuda", Silent())
    eager = workload.call()
    assert torch.cuda.max_memory_allocated() - before < foretold
    workload.targets[0].module.compile()
    for one, other in zip(eager, workload.call(), strict=True):  # type: ignore[call-overload]
        difference = torch.linalg.vector_norm(one.float() - other.float())
        assert difference <= 0.005 * torch.linalg.vector_norm(one.float())
