"""`diffusers:` for a tiny denoiser of every known class, from folders that hold nothing but configurations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")

from tests.workloads.configurations import denoiser, save_denoiser  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import BuiltWorkload, Request, WorkloadInfo  # noqa: E402
from tracekit.workloads import registry  # noqa: E402
from tracekit.workloads.diffusers_model import KNOWN  # noqa: E402

#: What each takes for two images.
INPUTS = {
    "UNet2DConditionModel": (
        "sample 4x4x8x8, timestep scalar, encoder_hidden_states 4x77x16, text_embeds 4x16, time_ids 4x6"
    ),
    "UNet2DModel": "sample 2x3x8x8, timestep scalar",
    "FluxTransformer2DModel": (
        "hidden_states 2x16x16, encoder_hidden_states 2x512x32, pooled_projections 2x16, timestep 2, img_ids 16x3,"
        " txt_ids 512x3, guidance 2"
    ),
    "SD3Transformer2DModel": (
        "hidden_states 4x4x8x8, encoder_hidden_states 4x333x32, pooled_projections 4x16, timestep 4"
    ),
    "PixArtTransformer2DModel": "hidden_states 4x4x8x8, encoder_hidden_states 4x120x24, timestep 4",
    "SanaTransformer2DModel": "hidden_states 4x4x8x8, encoder_hidden_states 4x300x24, timestep 4",
    "AuraFlowTransformer2DModel": "hidden_states 4x4x8x8, encoder_hidden_states 4x256x32, timestep 4",
    "DiTTransformer2DModel": "hidden_states 4x4x8x8, timestep 4, class_labels 4",
    "WanTransformer3DModel": "hidden_states 2x4x21x8x8, timestep 2, encoder_hidden_states 2x512x32",
}
#: Those whose configuration does not say how large an image is.
UNSIZED = {"FluxTransformer2DModel": 64, "WanTransformer3DModel": 64}


def look_into(request: Request) -> WorkloadInfo:
    info = registry.find(request.workload)
    registry.load_builder(info)
    return registry.look_into(info, request)


def build(request: Request) -> BuiltWorkload:
    return registry.load_builder(registry.find(request.workload))(request, "full", "cpu", Silent())


def pipeline(folder: Path, part: str = "transformer", name: str = "SD3Transformer2DModel", **vae: Any) -> Path:
    """A pipeline's folder with the configuration of its denoiser, and of its VAE."""
    save_denoiser(name, folder / part)
    (folder / "model_index.json").write_text(
        json.dumps({"_class_name": "SomePipeline", part: ["diffusers", name], "vae": ["diffusers", "AutoencoderKL"]})
    )
    if vae:
        (folder / "vae").mkdir()
        (folder / "vae" / "config.json").write_text(json.dumps(vae))
    return folder


def test_every_known_class_is_tested_here() -> None:
    assert INPUTS.keys() == KNOWN.keys()


@pytest.mark.parametrize("name", INPUTS)
def test_a_step_of_any_known_class_is_understood_from_its_configuration_and_runs(name: str, tmp_path: Path) -> None:
    pixels = UNSIZED.get(name)
    request = Request(f"diffusers:{save_denoiser(name, tmp_path)}", batch_size=2, height=pixels, width=pixels)
    info = look_into(request)
    assert info.title.startswith(name)
    assert info.inputs == INPUTS[name]
    assert info.parameters == sum(p.numel() for p in denoiser(name).parameters())
    workload = build(request)
    (first,), (again,) = workload.call(), workload.call()  # type: ignore[misc]
    assert torch.equal(first, again) and torch.isfinite(first).all()
    assert not torch.equal(first[0], first[1])
    assert any("twice in a step" in note for note in workload.notes) == KNOWN[name].guided


def test_of_a_pipeline_the_denoiser_runs_and_its_vae_says_how_large_a_latent_is(tmp_path: Path) -> None:
    folder = pipeline(tmp_path, block_out_channels=[8, 8, 8])
    workload = build(Request(f"diffusers:{folder}"))
    assert type(workload.targets[0].module).__name__ == "SD3Transformer2DModel"
    assert (workload.settings.height, workload.settings.seq_length) == (32, 333)
    taller = build(Request(f"diffusers:{folder}", height=48, seq_length=9))
    assert taller.call()[0].shape == (2, 4, 12, 8)  # type: ignore[index]
    info = look_into(Request(f"diffusers:{pipeline(tmp_path / 'other', 'unet', 'UNet2DConditionModel')}"))
    assert info.title.startswith("UNet2DConditionModel")


def test_real_weights_are_those_of_the_pipelines_part(tmp_path: Path) -> None:
    folder = pipeline(tmp_path, name="DiTTransformer2DModel")
    saved = denoiser("DiTTransformer2DModel").to_empty(device="cpu")
    for number, each in enumerate(saved.parameters()):
        torch.nn.init.constant_(each, number / 100)
    saved.save_pretrained(folder / "transformer")
    model = build(Request(f"diffusers:{folder}", pretrained="its own")).targets[0].module
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), saved.parameters(), strict=True))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"height": 40}, "in multiples of 16 pixels: --height 40 is none"),
        ({"seq_length": 9}, "reads no prompt: leave --seq-length out"),
    ],
)
def test_sizes_that_the_model_has_not_are_one_line(asked: dict[str, int], message: str, tmp_path: Path) -> None:
    folder = save_denoiser("DiTTransformer2DModel", tmp_path)
    with pytest.raises(TracekitError, match=message):
        look_into(Request(f"diffusers:{folder}", **asked))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ('{"_class_name": "AutoencoderKL"}', "nobody taught .* what a AutoencoderKL takes: known are UNet2DConditionM"),
        ('{"_class_name": "NoSuchModel"}', "diffusers .* has no NoSuchModel"),
        ('{"model_type": "bert"}', "is no model of diffusers .*: one of transformers is hf:"),
        ("{", "config.json of .* is no JSON"),
        ("[]", "config.json of .* is no configuration"),
        ('{"_class_name": "DiTTransformer2DModel", "norm_type": "none"}', "DiTTransformer2DModel cannot be built"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_one_line(config: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(TracekitError, match=message) as caught:
        look_into(Request(f"diffusers:{tmp_path}"))
    assert "\n" not in str(caught.value)


def test_a_pipeline_without_a_denoiser_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "Cascade", "decoder": ["diffusers", "X"]}')
    with pytest.raises(TracekitError, match="has no transformer and no unet of diffusers: profile it as your own"):
        look_into(Request(f"diffusers:{tmp_path}"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["UNet2DModel", "SD3Transformer2DModel"])
def test_compiled_it_returns_what_eager_does(name: str, tmp_path: Path) -> None:
    torch.compiler.reset()
    workload = build(Request(f"diffusers:{save_denoiser(name, tmp_path)}"))
    (eager,) = workload.call()  # type: ignore[misc]
    # aot_eager itself fails on the UNets' GroupNorm where it is not contiguous; Inductor takes it (torch 2.13).
    workload.targets[0].module.compile(backend="eager")
    (compiled,) = workload.call()  # type: ignore[misc]
    assert torch.allclose(eager, compiled, atol=1e-5)
