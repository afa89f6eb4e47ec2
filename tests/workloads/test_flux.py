"""The real FluxPipeline at tiny size, and the published architectures without their weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import BuiltWorkload, Request  # noqa: E402
from tracekit.workloads import flux, registry  # noqa: E402

SCHNELL = flux.VARIANTS["flux-schnell"]


def build(**asked: object) -> BuiltWorkload:
    return flux.build(Request("flux", **asked), "tiny", "cpu", Silent())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def tiny() -> BuiltWorkload:
    return build()


def test_one_call_goes_from_prompt_to_image(tiny: BuiltWorkload) -> None:
    image = tiny.call()
    assert isinstance(image, torch.Tensor)
    assert image.shape == (1, 3, 128, 128)
    assert torch.isfinite(image).all()


def test_equal_calls_give_equal_images(tiny: BuiltWorkload) -> None:
    assert torch.equal(tiny.call(), tiny.call())  # type: ignore[arg-type]


def test_the_prompt_reaches_the_image() -> None:
    cat, dog = build(prompt="a cat").call(), build(prompt="a dog").call()
    assert not torch.equal(cat, dog)  # type: ignore[arg-type]


def test_batch_and_image_size_are_those_asked_for() -> None:
    image = build(batch_size=2, height=64, width=96, steps=1).call()
    assert image.shape == (2, 3, 64, 96)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("scope", "components"),
    [
        ("transformer", ["transformer"]),
        ("vae", ["vae"]),
        ("text-encoders", ["text_encoder", "text_encoder_2"]),
        ("all", ["transformer", "vae", "text_encoder", "text_encoder_2"]),
        (
            "regional",
            [
                "transformer.transformer_blocks.0",
                "transformer.single_transformer_blocks.0",
                "transformer.single_transformer_blocks.1",
            ],
        ),
    ],
)
def test_each_scope_names_what_it_compiles(scope: str, components: list[str]) -> None:
    assert [target.component for target in build(scope=scope).targets] == components


def test_the_published_size_has_the_published_parameter_counts() -> None:
    with torch.device("meta"):
        sizes = {
            "transformer": flux._transformer(flux.PUBLISHED, guided=True),
            "t5": flux._t5(flux.PUBLISHED),
            "clip": flux._clip(flux.PUBLISHED),
            "vae": flux._vae(flux.PUBLISHED),
        }
    counts = {name: sum(p.numel() for p in module.parameters()) for name, module in sizes.items()}
    # FLUX.1-dev's own safetensors: 11.90 B, 4.76 B, 123.06 M and 83.82 M parameters.
    assert counts == {"transformer": 11_901_408_320, "t5": 4_762_310_656, "clip": 123_060_480, "vae": 83_819_683}


def test_weights_from_a_folder_are_loaded_with_their_tokenizers(tmp_path: Path, tiny: BuiltWorkload) -> None:
    pipeline = flux._random_pipeline(flux.VARIANTS["flux"], flux.TINY, torch.float32, "cpu", 3, Silent())
    pipeline.save_pretrained(tmp_path)
    loaded = flux.build(
        Request("flux", pretrained=str(tmp_path), height=64, width=64, steps=1), "full", "cpu", Silent()
    )
    weights, expected = loaded.targets[0].module.state_dict(), pipeline.transformer.state_dict()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert loaded.call().shape == (1, 3, 64, 64)  # type: ignore[attr-defined]


def test_random_weights_are_the_same_for_the_same_seed() -> None:
    first, again, other = (build(seed=seed).targets[0].module.state_dict() for seed in (1, 1, 2))
    name = "x_embedder.weight"
    assert torch.equal(first[name], again[name])
    assert not torch.equal(first[name], other[name])


@pytest.fixture(scope="module")
def schnell() -> Any:
    return flux._random_pipeline(SCHNELL, flux.TINY, torch.float32, "cpu", 0, Silent())


def test_schnell_is_named_as_it_was_asked_for() -> None:
    workload = flux.build(Request("flux-schnell"), "tiny", "cpu", Silent())
    assert workload.call().shape == (1, 3, 128, 128)  # type: ignore[attr-defined]
    assert workload.settings.workload == workload.info.name == "flux-schnell"
    assert [target.component for target in workload.targets] == ["transformer"]


def test_schnell_has_no_guidance_and_noise_levels_that_are_not_shifted(schnell: Any) -> None:
    assert not schnell.transformer.config.guidance_embeds
    assert not any("guidance" in name for name, _ in schnell.transformer.named_modules())
    assert (schnell.scheduler.config.shift, schnell.scheduler.config.use_dynamic_shifting) == (
        1.0,
        False,
    )
    seen: list[dict[str, Any]] = []
    call = flux._make_call(
        SCHNELL,
        lambda **asked: seen.append(asked) or (None,),  # type: ignore[arg-type, return-value, func-returns-value]
        flux._settings(SCHNELL, Request("flux-schnell"), "full", "cpu"),
        SCHNELL.architectures["full"].text_tokens,
    )
    call()
    asked = ("guidance_scale", "num_inference_steps", "max_sequence_length", "height", "width")
    assert tuple(seen[0][name] for name in asked) == (0.0, 4, 256, 512, 512)


def test_the_published_schnell_has_the_published_parameter_count() -> None:
    with torch.device("meta"):
        transformer = flux._transformer(SCHNELL.architectures["full"], guided=False)
    # FLUX.1-schnell's own safetensors: 11.89 B.
    assert sum(p.numel() for p in transformer.parameters()) == 11_891_178_560


def test_weights_of_the_other_model_are_met_with_its_name(tmp_path: Path, schnell: Any) -> None:
    schnell.save_pretrained(tmp_path)
    request = Request("flux", pretrained=str(tmp_path))
    with pytest.raises(TracekitError, match=r"is called as flux-schnell is: tracekit profile flux-schnell --pre"):
        flux.build(request, "full", "cpu", Silent())
    loaded = flux.build(
        Request("flux-schnell", pretrained=str(tmp_path), height=64, width=64, steps=1), "full", "cpu", Silent()
    )
    assert loaded.call().shape == (1, 3, 64, 64)  # type: ignore[attr-defined]


def test_schnell_is_found_by_its_name() -> None:
    assert registry.find("flux-schnell").checkpoints == {"full": "black-forest-labs/FLUX.1-schnell"}
    with pytest.raises(TracekitError, match="flux-schnell"):
        registry.find("schnell")
