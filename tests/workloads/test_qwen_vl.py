"""The real Qwen2_5_VLForConditionalGeneration at tiny size, and the published architectures without their weights."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.run import Generation  # noqa: E402
from tracekit.model.workload import BuiltWorkload, Request  # noqa: E402
from tracekit.workloads import generating, qwen_vl, qwen_vl_processor  # noqa: E402
from tracekit.workloads.inputs import draw_pictures  # noqa: E402
from tracekit.workloads.listed import QWEN_VL  # noqa: E402
from tracekit.workloads.registry import find  # noqa: E402
from tracekit.workloads.sizes import check_request  # noqa: E402


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def build(size: str = "tiny", **asked: object) -> BuiltWorkload:
    return qwen_vl.build(Request("qwen2.5-vl", **asked), size, "cpu", Silent())  # type: ignore[arg-type]


def tensor(workload: BuiltWorkload) -> torch.Tensor:
    found = workload.call()
    assert isinstance(found, torch.Tensor)
    return found


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    architecture = qwen_vl.replace(qwen_vl.TINY, tied=False)
    model = qwen_vl._model(architecture).requires_grad_(False).eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = qwen_vl.FIRST_SPECIAL
    return model


@pytest.fixture(scope="module")
def inputs() -> Any:
    processor = qwen_vl_processor.build_processor(fast=False)
    return qwen_vl_processor.process(
        processor, ["What is it?", "And this one here?"], draw_pictures(2, 56, 84, 0)
    ).inputs


def logits(model: Any, inputs: Any, phase: Any, cache: Any) -> torch.Tensor:
    found = generating.make_call(model, inputs, Generation(phase, None, cache, False), "default")()
    assert isinstance(found, torch.Tensor)
    return found


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_a_call_writes_as_many_tokens_as_asked_after_each_prompt(cache: str) -> None:
    workload = build(batch_size=2, max_new_tokens=3, cache=cache)
    found = tensor(workload)
    prompts = int(workload.notes[0].split("Prompts are ")[1].split()[0])
    assert found.shape == (2, prompts + 3)
    assert torch.equal(found, tensor(workload))


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_phases_give_the_logits_that_generate_chooses_by(model: Any, inputs: Any, cache: str) -> None:
    whole = model.generate(
        **inputs, max_new_tokens=2, do_sample=False, output_logits=True, return_dict_in_generate=True
    )
    assert not torch.allclose(whole.logits[0], whole.logits[1], atol=1e-3)
    for phase, expected in zip(("prefill", "decode"), whole.logits, strict=True):
        assert torch.allclose(logits(model, inputs, phase, cache), expected, atol=1e-5)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_every_call_of_a_phase_does_the_same_again(model: Any, inputs: Any, phase: Any, cache: Any) -> None:
    call = generating.make_call(model, inputs, Generation(phase, None, cache, False), "default")
    first = call()
    assert isinstance(first, torch.Tensor)
    assert all(torch.equal(first, again) for again in (call(), call()) if isinstance(again, torch.Tensor))


def test_marking_each_token_for_cuda_graphs_changes_no_token(model: Any, inputs: Any) -> None:
    generation = Generation("generate", 3, "static", False)
    plain, marked = (generating.make_call(model, inputs, generation, m)() for m in ("default", "reduce-overhead"))
    assert isinstance(plain, torch.Tensor) and isinstance(marked, torch.Tensor)
    assert torch.equal(plain, marked)


def test_the_picture_reaches_the_answer(model: Any, inputs: Any) -> None:
    other = dict(inputs, pixel_values=-inputs["pixel_values"])
    assert not torch.allclose(logits(model, inputs, "prefill", "dynamic"), logits(model, other, "prefill", "dynamic"))


def test_images_become_a_token_for_28_by_28_pixels_and_prompts_are_padded_on_the_left(inputs: Any) -> None:
    image_pad = qwen_vl_processor.FIRST_SPECIAL + qwen_vl_processor.SPECIAL.index("<|image_pad|>")
    assert image_pad == 151_655
    assert (inputs["input_ids"] == image_pad).sum(dim=1).tolist() == [6, 6]
    assert inputs["image_grid_thw"].tolist() == [[1, 4, 6]] * 2
    assert inputs["attention_mask"][0, 0] == 0
    assert inputs["attention_mask"][1].all()


@pytest.mark.parametrize(("size", "parameters"), [("3b", 3_754_622_976), ("7b", 8_292_166_656)])
def test_published_sizes_have_the_published_parameter_counts(size: str, parameters: int) -> None:
    with torch.device("meta"):
        model = qwen_vl._model(qwen_vl.ARCHITECTURES[size])
    # The sums of the tensors in the checkpoints' safetensors, input and output embeddings of the 3B being one.
    assert sum(p.numel() for p in model.parameters()) == parameters


def test_every_size_says_its_image_and_token_numbers() -> None:
    for size, each in qwen_vl.ARCHITECTURES.items():
        assert f"{each.pixels}x{each.pixels}, {each.new_tokens} new tokens" in QWEN_VL.sizes[size]


@pytest.mark.parametrize(
    ("asked", "components"),
    [
        ({"scope": "model"}, ["model"]),
        ({"scope": "language"}, ["model.model.language_model"]),
        ({"scope": "visual"}, ["model.model.visual"]),
        (
            {"scope": "regional"},
            [f"model.model.{part}.{n}" for part in ("visual.blocks", "language_model.layers") for n in (0, 1)],
        ),
        ({"scope": "regional", "phase": "decode"}, [f"model.model.language_model.layers.{n}" for n in (0, 1)]),
    ],
)
def test_each_scope_names_what_it_compiles(asked: dict[str, object], components: list[str]) -> None:
    assert [target.component for target in build(**asked).targets] == components


def test_parts_add_up_to_the_model() -> None:
    workload = build()
    assert sum(part.parameters for part in workload.components) == sum(
        p.numel() for p in workload.modules[0][1].parameters()
    )


def test_compiling_the_vision_tower_of_a_decoding_step_is_refused() -> None:
    with pytest.raises(TracekitError, match="decoding looks at no image"):
        build(phase="decode", scope="visual")


def test_a_number_of_tokens_is_refused_where_none_are_written() -> None:
    with pytest.raises(TracekitError, match="says nothing of prefill alone"):
        build(phase="prefill", max_new_tokens=3)


def test_the_fast_processor_needs_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qwen_vl_processor, "is_torchvision_available", lambda: False)
    assert qwen_vl_processor.choose_fast(None) is False
    with pytest.raises(TracekitError, match="leave --use-fast out"):
        qwen_vl_processor.choose_fast(True)


def test_the_time_of_the_processor_is_noted() -> None:
    assert "The slow processor (PIL) took " in build(use_fast=False).notes[1]


def test_options_of_generation_are_refused_elsewhere() -> None:
    with pytest.raises(TracekitError, match="vit has no --max-new-tokens and no --use-fast: leave them out"):
        check_request(find("vit"), Request("vit", max_new_tokens=3, use_fast=False))


def test_an_image_of_no_whole_tokens_is_refused() -> None:
    with pytest.raises(TracekitError, match="multiples of 28 pixels: --height 100"):
        check_request(QWEN_VL, Request("qwen2.5-vl", height=100))
