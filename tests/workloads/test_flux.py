"""The real FluxPipeline at tiny size, and the published architectures without their weights."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.workloads.builds import build, built, nowhere  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import Request  # noqa: E402
from tracekit.workloads.building import count_parameters  # noqa: E402

BLOCKS = "transformer.transformer_blocks"
SMALL_IMAGE = {"height": 64, "width": 64, "steps": 1}


@pytest.fixture(autouse=True, scope="module")
def flux() -> Any:
    """The module under test, which imports diffusers: no worker that has none of these tests does."""
    pytest.importorskip("diffusers")
    from tracekit.workloads import flux

    return flux


@pytest.mark.parametrize("name", ["flux", "flux-schnell"])
def test_one_call_goes_from_prompt_to_image_the_same_every_time(name: str) -> None:
    first, again = built(name).call(), built(name).call()
    assert first.shape == (1, 3, 128, 128)
    assert torch.isfinite(first).all()
    assert torch.equal(first, again)
    assert built(name).settings.workload == name


def test_prompt_seed_batch_and_size_reach_the_image() -> None:
    asked: list[dict[str, Any]] = [{}, {"prompt": "a dog"}, {"seed": 1}]
    workloads = [built("flux", **each, **SMALL_IMAGE) for each in asked]
    plain, dog, other = (each.call() for each in workloads)
    again = workloads[0].call_at(Request("flux", batch_size=2, height=64, width=96, steps=1))()
    assert (plain.shape, again.shape) == ((1, 3, 64, 64), (2, 3, 64, 96))
    assert not torch.equal(plain, dog)
    assert not torch.equal(plain, other)
    weights = [each.targets[0].module.x_embedder.weight for each in workloads]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize(
    ("scope", "components"),
    [
        ("transformer", "transformer"),
        ("vae", "vae"),
        ("text-encoders", "text_encoder text_encoder_2"),
        ("all", "transformer vae text_encoder text_encoder_2"),
        ("regional", f"{BLOCKS}.0 transformer.single_transformer_blocks.0 transformer.single_transformer_blocks.1"),
    ],
)
def test_each_scope_names_what_it_compiles(scope: str, components: str) -> None:
    targets = nowhere("flux", "tiny").targets_of(scope)
    assert [target.component for target in targets] == components.split()


def test_the_published_sizes_have_the_published_parameter_counts() -> None:
    counts = {name: count_parameters(module) for name, module in nowhere("flux").modules}
    # FLUX.1-dev's own safetensors: 123.06 M, 4.76 B, 83.82 M and 11.90 B parameters; schnell's transformer has 11.89 B.
    published = {"text_encoder": 123_060_480, "text_encoder_2": 4_762_310_656, "vae": 83_819_683}
    assert counts == {**published, "transformer": 11_901_408_320}
    counts = {name: count_parameters(module) for name, module in nowhere("flux-schnell").modules}
    assert counts == {**published, "transformer": 11_891_178_560}


@pytest.fixture(scope="module")
def saved(flux: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A pipeline of schnell, and the folder that it was saved to."""
    schnell = flux.VARIANTS["flux-schnell"]
    pipeline = flux._random_pipeline(schnell, flux.TINY, torch.float32, "cpu", 3, Silent())
    folder = tmp_path_factory.mktemp("schnell")
    pipeline.save_pretrained(folder)
    return pipeline, folder


def test_weights_from_a_folder_are_loaded_with_their_tokenizers_and_called_as_schnell_is(
    flux: Any, saved: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, folder = saved
    loaded = build("flux-schnell", "full", pretrained=str(folder))
    weights, expected = loaded.targets[0].module.state_dict(), pipeline.transformer.state_dict()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert loaded.call_at(Request("flux-schnell", **SMALL_IMAGE))().shape == (1, 3, 64, 64)
    seen: dict[str, Any] = {}
    monkeypatch.setattr(flux.FluxPipeline, "__call__", lambda _self, **asked: seen.update(asked) or (None,))
    loaded.call()
    asked = ("guidance_scale", "num_inference_steps", "max_sequence_length", "height", "width")
    assert tuple(seen[name] for name in asked) == (0.0, 4, 256, 512, 512)


def test_weights_of_the_other_model_are_met_with_its_name(saved: tuple[Any, Path]) -> None:
    with pytest.raises(TracekitError, match="tracekit profile flux-schnell --pretrained"):
        build("flux", "full", pretrained=str(saved[1]))


def test_schnell_has_no_guidance_and_noise_levels_that_are_not_shifted(saved: tuple[Any, Path]) -> None:
    pipeline = saved[0]
    assert not pipeline.transformer.config.guidance_embeds
    assert (pipeline.scheduler.config.shift, pipeline.scheduler.config.use_dynamic_shifting) == (1.0, False)
