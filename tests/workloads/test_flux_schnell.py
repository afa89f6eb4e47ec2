"""FLUX.1-schnell at tiny size, and what differs from FLUX.1-dev."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import Request  # noqa: E402
from tracekit.workloads import flux, flux_schnell, registry  # noqa: E402


@pytest.fixture(scope="module")
def pipeline() -> Any:
    return flux._random_pipeline(flux_schnell.SCHNELL, flux.TINY, torch.float32, "cpu", 0, Silent())


def test_one_call_goes_from_prompt_to_image() -> None:
    workload = flux_schnell.build(Request("flux-schnell"), "tiny", "cpu", Silent())
    assert workload.call().shape == (1, 3, 128, 128)  # type: ignore[attr-defined]
    assert workload.settings.workload == workload.info.name == "flux-schnell"
    assert [target.component for target in workload.targets] == ["transformer"]


def test_it_has_no_guidance_and_noise_levels_that_are_not_shifted(pipeline: Any) -> None:
    assert not pipeline.transformer.config.guidance_embeds
    assert not any("guidance" in name for name, _ in pipeline.transformer.named_modules())
    assert (pipeline.scheduler.config.shift, pipeline.scheduler.config.use_dynamic_shifting) == (1.0, False)
    seen: list[dict[str, Any]] = []
    call = flux._make_call(
        flux_schnell.SCHNELL,
        lambda **asked: seen.append(asked) or (None,),  # type: ignore[arg-type, return-value, func-returns-value]
        flux._settings(flux_schnell.SCHNELL, Request("flux-schnell"), "full", "cpu"),
        flux_schnell.ARCHITECTURES["full"].text_tokens,
    )
    call()
    asked = ("guidance_scale", "num_inference_steps", "max_sequence_length", "height", "width")
    assert tuple(seen[0][name] for name in asked) == (0.0, 4, 256, 512, 512)


def test_the_published_size_has_the_published_parameter_count() -> None:
    with torch.device("meta"):
        transformer = flux._transformer(flux_schnell.ARCHITECTURES["full"], guided=False)
    # FLUX.1-schnell's own safetensors: 11.89 B.
    assert sum(p.numel() for p in transformer.parameters()) == 11_891_178_560


def test_weights_of_the_other_model_are_met_with_its_name(tmp_path: Path, pipeline: Any) -> None:
    pipeline.save_pretrained(tmp_path)
    request = Request("flux", pretrained=str(tmp_path))
    with pytest.raises(TracekitError, match=r"is called as flux-schnell is: tracekit profile flux-schnell --pre"):
        flux.build(request, "full", "cpu", Silent())
    loaded = flux_schnell.build(
        Request("flux-schnell", pretrained=str(tmp_path), height=64, width=64, steps=1), "full", "cpu", Silent()
    )
    assert loaded.call().shape == (1, 3, 64, 64)  # type: ignore[attr-defined]


def test_it_is_found_by_its_name() -> None:
    assert registry.find("flux-schnell").checkpoints == {"full": "black-forest-labs/FLUX.1-schnell"}
    with pytest.raises(TracekitError, match="flux-schnell"):
        registry.find("schnell")
