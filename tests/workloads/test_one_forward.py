"""Every workload that is one forward: the real models at tiny size."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.workloads.builds import build, built  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.run import Component  # noqa: E402
from tracekit.model.workload import Request  # noqa: E402
from tracekit.workloads.building import count_parameters  # noqa: E402
from tracekit.workloads.inputs import draw_images  # noqa: E402
from tracekit.workloads.one_forward import drawn_sizes  # noqa: E402
from tracekit.workloads.one_forward_table import ROWS  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def libraries() -> None:
    """They are imported for no other tests: that takes seconds."""
    pytest.importorskip("transformers")
    pytest.importorskip("diffusers")


def tensors(workload: Any) -> tuple[torch.Tensor, ...]:
    found = workload.call()
    return (found,) if isinstance(found, torch.Tensor) else found


@pytest.mark.parametrize("name", ROWS)
def test_a_tiny_one_runs_eager_the_same_every_time_and_shows_each_input(name: str) -> None:
    workload = built(name, batch_size=2)
    first, again = tensors(workload), tensors(workload)
    assert len(first) == len(ROWS[name].outputs)
    assert isinstance(workload.call(), torch.Tensor) == ROWS[name].bare
    for one, other in zip(first, again, strict=True):
        assert one.dtype == torch.float32
        assert one.shape[0] == (4 if name == "sdxl" else 2)
        assert torch.isfinite(one).all()
        assert torch.equal(one, other)
    assert not torch.allclose(first[0][0], first[0][1], rtol=1e-6, atol=0)
    (target,) = workload.targets
    assert workload.components == (Component("model", count_parameters(target.module), compiled=True),)
    assert workload.modules == (("model", target.module),)


@pytest.mark.parametrize("name", ROWS)
def test_a_tiny_one_runs_in_half_precision(name: str) -> None:
    try:
        found = tensors(build(name, dtype="bfloat16"))
    except TracekitError as error:
        if "only in float32" not in str(error):
            raise
        pytest.skip(str(error))
    # OWL-ViT itself ends in float32.
    assert found[-1].dtype == torch.bfloat16
    assert all(torch.isfinite(each).all() for each in found)


@pytest.mark.parametrize("name", ["mlp", "vit", "causal-lm"])
def test_seeds_tell_the_outputs_and_a_batch_of_another_size_goes_through_the_same_model(name: str) -> None:
    first, again, other = (build(name, seed=seed).call() for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)
    workload = built(name, batch_size=2)
    one, two = workload.call(), workload.call_at(Request(name, batch_size=3))()
    assert (one.shape[0], two.shape[0]) == (2, 3)
    assert one.shape[1:] == two.shape[1:]


def test_weights_from_a_folder_are_loaded_with_their_image_size(tmp_path: Path) -> None:
    model = built("vit").targets[0].module
    assert model.config._attn_implementation == "sdpa", "the one that transformers takes by default"
    model.save_pretrained(tmp_path)
    workload = build("vit", "full", pretrained=str(tmp_path), dtype="bfloat16")
    loaded = workload.targets[0].module
    assert {p.dtype for p in loaded.parameters()} == {torch.bfloat16}
    assert torch.equal(loaded.classifier.weight, model.classifier.weight.bfloat16())
    assert tensors(workload)[0].shape == (1, 1000)
    assert len(workload.notes) == 1
    assert "64x64" in workload.notes[0]


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    from transformers import BertConfig

    BertConfig().save_pretrained(tmp_path)
    with pytest.raises(TracekitError, match=r"type bert, .*resnet"):
        build("resnet", "full", pretrained=str(tmp_path))


def test_a_transformers_that_masks_in_float32_takes_no_other_type(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy")
    from transformers.models.maskformer.modeling_maskformer_swin import MaskFormerSwinLayer

    def masker(self: Any, input_resolution: Any) -> None: ...

    monkeypatch.setattr(MaskFormerSwinLayer, "get_attn_mask", masker)
    with pytest.raises(TracekitError, match=r"MaskFormer .*leave --dtype out"):
        build("maskformer", dtype="bfloat16")
    assert built("maskformer", batch_size=2).settings.dtype == "float32"
    # Windows are shifted at tiny size too.
    layers = built("maskformer", batch_size=2).targets[0].module.modules()
    assert any(each.shift_size > 0 for each in layers if isinstance(each, MaskFormerSwinLayer))


def test_images_fill_the_range_of_the_published_preprocessor() -> None:
    images = draw_images(2, 224, 224, seed=0)
    assert images.shape == (2, 3, 224, 224)
    assert (images.min(), images.max()) == (-1, 1)
    assert not torch.equal(images[0], images[1])
    assert torch.equal(images, draw_images(2, 224, 224, seed=0))


def test_whisper_is_given_rising_tones() -> None:
    from tracekit.workloads import transformers_forward

    row = ROWS["whisper"]
    found = transformers_forward.draw(row, None, drawn_sizes(row, "tiny", None), 2, 0)
    loudest = found["input_features"].argmax(dim=1)
    assert found["input_features"].shape == (2, 80, 100)
    assert (loudest[:, 80] > loudest[:, 20]).all()
    assert found["decoder_input_ids"][:, 0].tolist() == [transformers_forward.START] * 2
