"""Every workload that is one forward: the real models at tiny size, and published architectures without weights."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("diffusers")

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.run import Component  # noqa: E402
from tracekit.model.workload import BuiltWorkload, Request  # noqa: E402
from tracekit.workloads import registry, transformers_forward  # noqa: E402
from tracekit.workloads.inputs import draw_images  # noqa: E402
from tracekit.workloads.one_forward import Family, drawn_sizes  # noqa: E402
from tracekit.workloads.one_forward_table import ROWS  # noqa: E402
from tracekit.workloads.sizes import check_request  # noqa: E402

#: Parameters of the published checkpoints: BatchNorm counted where it is trained, buffers left out.
PARAMETERS = {
    "vit": 86_567_656,
    "beit": 102_557_713,
    "convnext": 197_767_336,
    "resnet": 25_557_032,
    "segformer": 3_752_694,
    "mask2former": 47_436_800,
    "maskformer": 101_831_439,
    "deeplabv3-mobilenet": 2_525_717,
    "owlvit": 153_231_879,
    "detr": 41_524_768,
    "detr-resnet-101": 60_464_672,
    "conditional-detr": 43_418_401,
    "sdxl": 2_567_463_684,
    "bert": 109_514_298,
    "whisper": 241_734_912,
    "mlp": 33_583_104,
}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def family_of(name: str) -> Family:
    for package in ROWS[name].needs:
        pytest.importorskip(package)
    family: Family = importlib.import_module(registry.find(name).module).FAMILY
    return family


def build(name: str, size: str = "tiny", **asked: Any) -> BuiltWorkload:
    family_of(name)
    return registry.load_builder(registry.find(name))(Request(name, **asked), size, "cpu", Silent())


@cache
def pair(name: str) -> BuiltWorkload:
    """A batch of two, built once for all that is asked of it."""
    return build(name, batch_size=2)


def tensors(workload: BuiltWorkload) -> tuple[torch.Tensor, ...]:
    found = workload.call()
    return (found,) if isinstance(found, torch.Tensor) else found  # type: ignore[return-value]


def test_every_row_of_the_table_is_tested_here() -> None:
    assert ROWS.keys() == PARAMETERS.keys()


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_tiny_one_runs_eager_the_same_every_time(name: str) -> None:
    workload = pair(name)
    first, again = tensors(workload), tensors(workload)
    assert len(first) == len(ROWS[name].outputs)
    assert isinstance(workload.call(), torch.Tensor) == ROWS[name].bare
    for one, other in zip(first, again, strict=True):
        assert one.dtype == torch.float32
        assert one.shape[0] == (4 if name == "sdxl" else 2)
        assert torch.isfinite(one).all()
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", PARAMETERS)
def test_what_is_drawn_for_one_of_a_batch_reaches_its_output(name: str) -> None:
    (output, *_) = tensors(pair(name))
    assert not torch.allclose(output[0], output[1], rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_tiny_one_runs_in_half_precision(name: str) -> None:
    found = tensors(build(name, dtype="bfloat16"))
    # OWL-ViT itself ends in float32.
    assert found[-1].dtype == torch.bfloat16
    assert all(torch.isfinite(each).all() for each in found)


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS.items())
def test_the_published_size_has_the_published_parameter_count(name: str, parameters: int) -> None:
    with torch.device("meta"):
        model = family_of(name).make(ROWS[name], "full")
    assert sum(p.numel() for p in model.parameters()) == parameters


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_whole_model_is_compiled_and_counted_and_the_call_noted(name: str) -> None:
    workload = pair(name)
    (target,) = workload.targets
    parameters = sum(p.numel() for p in target.module.parameters())
    assert workload.components == (Component("model", parameters, compiled=True),)
    assert workload.modules == (("model", target.module),)
    call, weights = workload.notes
    assert ", 2 of them, made here" in call
    assert "random" in weights


@pytest.mark.parametrize("name", ["vit", "mlp"])
def test_equal_seeds_give_equal_outputs_and_others_do_not(name: str) -> None:
    (one,), (again,), (other,) = (tensors(build(name, seed=seed)) for seed in (3, 3, 4))
    assert torch.equal(one, again)
    assert not torch.allclose(one, other)


@pytest.mark.parametrize(
    ("name", "asked", "message"),
    [
        ("vit", {"height": 224}, "vit has no --height: leave it out"),
        ("vit", {"width": 224, "steps": 2}, "vit has no --width and no --steps: leave them out"),
        ("vit", {"size": "small"}, "vit has no size 'small': pass --size auto, full, tiny"),
        ("mlp", {"prompt": "a", "pretrained": "a/b"}, "mlp has no --prompt and no --pretrained: leave them out"),
    ],
)
def test_what_a_workload_has_not_is_refused(name: str, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(TracekitError) as caught:
        check_request(registry.find(name), Request(name, **asked))
    assert str(caught.value) == message


def test_weights_from_a_folder_are_loaded_with_their_image_size(tmp_path: Path) -> None:
    model = family_of("vit").make(ROWS["vit"], "tiny").eval()
    model.save_pretrained(tmp_path)
    workload = build("vit", "full", pretrained=str(tmp_path), dtype="bfloat16")
    loaded = workload.targets[0].module
    assert {p.dtype for p in loaded.parameters()} == {torch.bfloat16}
    assert torch.equal(loaded.classifier.weight, model.classifier.weight.bfloat16())
    assert tensors(workload)[0].shape == (1, 1000)
    assert len(workload.notes) == 1
    assert "images of 64x64" in workload.notes[0]


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    transformers.BertConfig().save_pretrained(tmp_path)
    with pytest.raises(TracekitError, match="a model of type bert, which is no resnet"):
        build("resnet", "full", pretrained=str(tmp_path))


def test_a_package_that_a_model_alone_needs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(TracekitError, match="mask2former needs the package scipy, which is not installed: pip"):
        registry.load_builder(registry.find("mask2former"))


def test_a_transformers_that_masks_in_float32_takes_no_other_type(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy")
    from transformers.models.maskformer.modeling_maskformer_swin import MaskFormerSwinLayer

    def masker(self: Any, input_resolution: Any) -> None: ...

    monkeypatch.setattr(MaskFormerSwinLayer, "get_attn_mask", masker)
    with pytest.raises(TracekitError, match="runs MaskFormer in float32 alone"):
        build("maskformer", dtype="bfloat16")
    assert pair("maskformer").settings.dtype == "float32"
    # Windows are shifted at tiny size too.
    layers = pair("maskformer").targets[0].module.modules()
    assert any(each.shift_size > 0 for each in layers if isinstance(each, MaskFormerSwinLayer))


def test_images_fill_the_range_of_the_published_preprocessor() -> None:
    images = draw_images(2, 224, 224, seed=0)
    assert images.shape == (2, 3, 224, 224)
    assert (images.min(), images.max()) == (-1, 1)
    assert not torch.equal(images[0], images[1])
    assert torch.equal(images, draw_images(2, 224, 224, seed=0))


def test_attention_is_the_one_that_transformers_takes_by_default() -> None:
    assert pair("vit").targets[0].module.config._attn_implementation == "sdpa"


def test_every_block_of_the_mlp_has_a_name() -> None:
    ((name, model),) = pair("mlp").modules
    assert (name, [type(block).__name__ for block in model.children()]) == ("model", ["Block", "Block"])


def test_whisper_hears_a_rising_tone() -> None:
    row = ROWS["whisper"]
    heard = family_of("whisper").draw(row, None, drawn_sizes(row, "tiny", None), 2, 0)
    loudest = heard["input_features"].argmax(dim=1)
    assert heard["input_features"].shape == (2, 80, 100)
    assert (loudest[:, 80] > loudest[:, 20]).all()
    assert heard["decoder_input_ids"][:, 0].tolist() == [transformers_forward.START] * 2
