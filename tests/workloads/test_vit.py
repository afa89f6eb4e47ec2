"""The real ViTForImageClassification at tiny size, and the published architecture without its weights."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.run import Component  # noqa: E402
from tracekit.model.workload import BuiltWorkload, Request  # noqa: E402
from tracekit.workloads import vit  # noqa: E402
from tracekit.workloads.pictures import draw_images  # noqa: E402
from tracekit.workloads.sizes import check_request  # noqa: E402
from tracekit.workloads.vit_info import VIT  # noqa: E402


def build(size: str = "tiny", **asked: object) -> BuiltWorkload:
    return vit.build(Request("vit", **asked), size, "cpu", Silent())  # type: ignore[arg-type]


def logits(workload: BuiltWorkload) -> torch.Tensor:
    found = workload.call()
    assert isinstance(found, torch.Tensor)
    return found


def test_one_call_gives_the_logits_of_each_image() -> None:
    found = logits(build(batch_size=3))
    assert found.shape == (3, 1000)
    assert found.dtype == torch.float32
    assert torch.isfinite(found).all()


def test_the_images_reach_the_logits() -> None:
    first, second = logits(build(batch_size=2))
    assert not torch.allclose(first, second)


def test_equal_seeds_give_equal_logits_and_others_do_not() -> None:
    assert torch.equal(logits(build(seed=3)), logits(build(seed=3)))
    assert not torch.allclose(logits(build(seed=3)), logits(build(seed=4)))


def test_images_fill_the_range_of_the_published_preprocessor() -> None:
    images = draw_images(2, 224, 224, seed=0)
    assert images.shape == (2, 3, 224, 224)
    assert (images.min(), images.max()) == (-1, 1)
    assert not torch.equal(images[0], images[1])
    assert torch.equal(images, draw_images(2, 224, 224, seed=0))


def test_the_published_size_has_the_published_parameter_count() -> None:
    with torch.device("meta"):
        model = vit._model(vit.PUBLISHED)
    # google/vit-base-patch16-224's safetensors: 86.57 M.
    assert sum(p.numel() for p in model.parameters()) == 86_567_656


def test_attention_is_the_one_that_transformers_takes_by_default() -> None:
    assert vit._model(vit.TINY).config._attn_implementation == "sdpa"


def test_the_whole_model_is_compiled_and_counted() -> None:
    workload = build()
    (target,) = workload.targets
    assert target.component == "model"
    parameters = sum(p.numel() for p in target.module.parameters())
    assert workload.components == (Component("model", parameters, compiled=True),)
    assert workload.modules == (("model", target.module),)


def test_what_a_call_does_is_noted() -> None:
    call, weights = build(batch_size=2).notes
    assert "images of 64x64, 2 of them" in call
    assert "random" in weights


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"height": 224}, "vit has no --height: leave it out"),
        ({"width": 224, "steps": 2}, "vit has no --width and no --steps: leave them out"),
        ({"prompt": "a cat"}, "vit has no --prompt: leave it out"),
        ({"size": "small"}, "vit has no size 'small': pass --size auto, full, tiny"),
    ],
)
def test_what_a_vit_has_not_is_refused(asked: dict[str, object], message: str) -> None:
    with pytest.raises(TracekitError) as caught:
        check_request(VIT, Request("vit", **asked))  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_weights_from_a_folder_are_loaded_with_their_image_size(tmp_path: Path) -> None:
    model = vit._model(vit.TINY).eval()
    model.save_pretrained(tmp_path)
    workload = build("full", pretrained=str(tmp_path), dtype="bfloat16")
    loaded = workload.targets[0].module
    assert {p.dtype for p in loaded.parameters()} == {torch.bfloat16}
    assert torch.equal(loaded.classifier.weight, model.classifier.weight.bfloat16())
    assert logits(workload).shape == (1, 1000)
    assert workload.notes == (build().notes[0],)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    config = transformers.BeitConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=1, intermediate_size=32, image_size=32
    )
    transformers.BeitForImageClassification(config).save_pretrained(tmp_path)
    with pytest.raises(TracekitError, match="holds a BeitForImageClassification, which is no ViT"):
        build("full", pretrained=str(tmp_path))
