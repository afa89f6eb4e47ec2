"""Every workload that is one forward: the real models at tiny size, and published architectures without weights."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("diffusers")

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import BuiltWorkload, Request  # noqa: E402
from tracekit.workloads import registry, resnet, whisper  # noqa: E402
from tracekit.workloads.one_forward import OneForward  # noqa: E402

#: Parameters of the published checkpoints: BatchNorm counted where it is trained, buffers left out.
PARAMETERS = {
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
}
OTHERS = {"flux", "flux-schnell", "qwen2.5-vl", "causal-lm", "vit", "mlp"}
WANTS_SCIPY = {"mask2former", "maskformer"}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def module_of(name: str) -> Any:
    if name in WANTS_SCIPY:
        pytest.importorskip("scipy")
    return importlib.import_module(registry.find(name).module)


def spec_of(name: str) -> OneForward:
    return next(each for each in vars(module_of(name)).values() if isinstance(each, OneForward))


def build(name: str, **asked: Any) -> BuiltWorkload:
    workload: BuiltWorkload = module_of(name).build(Request(name, **asked), "tiny", "cpu", Silent())
    return workload


def tensors(workload: BuiltWorkload) -> tuple[torch.Tensor, ...]:
    found = workload.call()
    assert isinstance(found, tuple)
    return found


def test_every_workload_of_one_forward_is_tested_here() -> None:
    assert {info.name for info in registry.all_workloads()} == PARAMETERS.keys() | OTHERS


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_tiny_one_runs_eager_the_same_every_time(name: str) -> None:
    workload = build(name, batch_size=2)
    first, again = tensors(workload), tensors(workload)
    assert len(first) == len(spec_of(name).outputs)
    for one, other in zip(first, again, strict=True):
        assert one.dtype == torch.float32
        assert one.shape[0] == (4 if name == "sdxl" else 2)
        assert torch.isfinite(one).all()
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", PARAMETERS)
def test_what_is_drawn_for_one_of_a_batch_reaches_its_output(name: str) -> None:
    (output, *_) = tensors(build(name, batch_size=2))
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
        model = spec_of(name).make("full")
    assert sum(p.numel() for p in model.parameters()) == parameters


@pytest.mark.parametrize("name", PARAMETERS)
def test_inputs_and_weights_are_noted(name: str) -> None:
    call, weights = build(name, batch_size=2).notes
    assert ", 2 of them, made here" in call
    assert "random" in weights


def test_weights_from_a_folder_are_loaded(tmp_path: Path) -> None:
    model = resnet._model("tiny")
    model.save_pretrained(tmp_path)
    request = Request("resnet", pretrained=str(tmp_path), dtype="bfloat16")
    workload = resnet.build(request, "full", "cpu", Silent())
    assert torch.equal(workload.targets[0].module.classifier[1].weight, model.classifier[1].weight.bfloat16())
    assert tensors(workload)[0].shape == (1, 1000)
    assert len(workload.notes) == 1


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    transformers.BertConfig().save_pretrained(tmp_path)
    with pytest.raises(TracekitError, match="a model of type bert, which is no resnet"):
        resnet.build(Request("resnet", pretrained=str(tmp_path)), "full", "cpu", Silent())


def test_whisper_hears_a_rising_tone() -> None:
    heard = whisper.make_sounds("tiny", 2, seed=0)
    loudest = heard["input_features"].argmax(dim=1)
    assert heard["input_features"].shape == (2, 80, 100)
    assert (loudest[:, 80] > loudest[:, 20]).all()
    assert heard["decoder_input_ids"][:, 0].tolist() == [whisper.START] * 2
