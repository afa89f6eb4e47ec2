"""`diffusers:` for folders of pipelines."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from tests.workloads.builds import build, look_into  # noqa: E402
from tests.workloads.configurations import denoiser, save  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402


def pipeline(folder: Path, part: str = "transformer", name: str = "SD3Transformer2DModel", **vae: Any) -> str:
    """A pipeline with the configuration of its denoiser, and of its VAE."""
    save(name, folder / part)
    (folder / "model_index.json").write_text(
        json.dumps({"_class_name": "SomePipeline", part: ["diffusers", name], "vae": ["diffusers", "AutoencoderKL"]})
    )
    if vae:
        (folder / "vae").mkdir()
        (folder / "vae" / "config.json").write_text(json.dumps(vae))
    return f"diffusers:{folder}"


def test_of_a_pipeline_the_denoiser_runs_and_its_vae_says_how_large_a_latent_is(tmp_path: Path) -> None:
    name = pipeline(tmp_path, block_out_channels=[8, 8, 8])
    workload = build(name)
    assert type(workload.targets[0].module).__name__ == "SD3Transformer2DModel"
    assert (workload.settings.height, workload.settings.seq_length) == (32, 333)
    assert build(name, height=48, seq_length=9).call()[0].shape == (2, 4, 12, 8)
    info = look_into(pipeline(tmp_path / "other", "unet", "UNet2DConditionModel"))
    assert info.title.startswith("UNet2DConditionModel")


def test_real_weights_are_those_of_the_pipelines_part(tmp_path: Path) -> None:
    name = pipeline(tmp_path, name="DiTTransformer2DModel")
    saved = denoiser("DiTTransformer2DModel").to_empty(device="cpu")
    for number, each in enumerate(saved.parameters()):
        torch.nn.init.constant_(each, number / 100)
    saved.save_pretrained(tmp_path / "transformer")
    model = build(name, pretrained="its own").targets[0].module
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), saved.parameters(), strict=True))


def test_a_pipeline_without_a_denoiser_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "Cascade", "unet": 1, "decoder": ["diffusers", "X"]}')
    with pytest.raises(TracekitError, match=r"no transformer and no unet .*my_model\.py:build"):
        look_into(f"diffusers:{tmp_path}")
