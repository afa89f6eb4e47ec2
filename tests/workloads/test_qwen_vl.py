"""The real Qwen2_5_VLForConditionalGeneration at tiny size, and the published architectures without their weights."""

from typing import Any

import pytest
from msgspec.structs import replace

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.workloads.builds import build, built, nowhere  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.run import Generation  # noqa: E402
from tracekit.workloads import generating, qwen_vl  # noqa: E402
from tracekit.workloads.building import count_parameters  # noqa: E402
from tracekit.workloads.inputs import draw_pictures  # noqa: E402

VISUAL_BLOCKS = [f"model.model.visual.blocks.{n}" for n in (0, 1)]
LAYERS = [f"model.model.language_model.layers.{n}" for n in (0, 1)]


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    architecture = replace(qwen_vl.ARCHITECTURES["tiny"], tied=False)
    model = qwen_vl._model(architecture).requires_grad_(False).eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = qwen_vl.FIRST_SPECIAL
    return model


@pytest.fixture(scope="module")
def inputs() -> Any:
    processor = qwen_vl.build_processor(fast=False)
    prompts = ["What is it?", "And this one here?"]
    return qwen_vl.process(processor, prompts, draw_pictures(2, 56, 84, 0))[0]


def phase_call(model: Any, inputs: Any, phase: Any, cache: Any) -> Any:
    return generating.make_call(model, inputs, Generation(phase, None, cache, False), "default")


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_a_call_writes_as_many_tokens_as_asked_after_each_prompt(cache: str) -> None:
    workload = built("qwen2.5-vl", batch_size=2, max_new_tokens=3, cache=cache)
    found = workload.call()
    prompts = built("qwen2.5-vl", batch_size=2, max_new_tokens=1, cache=cache).call().shape[1] - 1
    assert found.shape == (2, prompts + 3)
    assert torch.equal(found, workload.call())
    assert f" {prompts} tokens" in workload.notes[0]


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_phases_give_the_logits_that_generate_chooses_by_in_every_call(model: Any, inputs: Any, cache: str) -> None:
    whole = model.generate(
        **inputs, max_new_tokens=2, do_sample=False, output_logits=True, return_dict_in_generate=True
    )
    assert not torch.allclose(whole.logits[0], whole.logits[1], atol=1e-3)
    for phase, expected in zip(("prefill", "decode"), whole.logits, strict=True):
        call = phase_call(model, inputs, phase, cache)
        first = call()
        assert torch.allclose(first, expected, atol=1e-5)
        assert all(torch.equal(first, again) for again in (call(), call()))


def test_pictures_reach_the_answer_and_marking_each_token_for_cuda_graphs_changes_none(model: Any, inputs: Any) -> None:
    generation = Generation("generate", 3, "static", False)
    plain, marked = (generating.make_call(model, inputs, generation, m)() for m in ("default", "reduce-overhead"))
    assert torch.equal(plain, marked)
    other = dict(inputs, pixel_values=-inputs["pixel_values"])
    plain, turned = (phase_call(model, each, "prefill", "dynamic")() for each in (inputs, other))
    assert not torch.allclose(plain, turned)


def test_images_become_a_token_for_28_by_28_pixels_and_prompts_are_padded_on_the_left(inputs: Any) -> None:
    image_pad = qwen_vl.FIRST_SPECIAL + qwen_vl.SPECIAL.index("<|image_pad|>")
    assert image_pad == 151_655
    assert (inputs["input_ids"] == image_pad).sum(dim=1).tolist() == [6, 6]
    assert inputs["image_grid_thw"].tolist() == [[1, 4, 6]] * 2
    assert inputs["attention_mask"][0, 0] == 0 and inputs["attention_mask"][1].all()


@pytest.mark.parametrize(
    ("asked", "components"),
    [
        ({"scope": "model"}, ["model"]),
        ({"scope": "language"}, ["model.model.language_model"]),
        ({"scope": "visual"}, ["model.model.visual"]),
        ({"scope": "regional"}, [*VISUAL_BLOCKS, *LAYERS]),
        ({"scope": "regional", "phase": "decode"}, LAYERS),
    ],
)
def test_each_scope_names_what_it_compiles(asked: dict[str, object], components: list[str]) -> None:
    assert [target.component for target in built("qwen2.5-vl", **asked).targets] == components


def test_parts_add_up_to_the_model_and_the_processor_is_timed() -> None:
    workload = built("qwen2.5-vl", use_fast=False)
    assert sum(part.parameters for part in workload.components) == count_parameters(workload.modules[0][1])
    # The sum of the tensors in the smaller checkpoint's safetensors, input and output embeddings being one.
    assert count_parameters(nowhere("qwen2.5-vl", "3b").modules[0][1]) == 3_754_622_976
    assert "slow processor (PIL)" in workload.notes[1]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"phase": "decode", "scope": "visual"}, "another --scope"),
        ({"phase": "prefill", "max_new_tokens": 3}, "--max-new-tokens .* prefill"),
    ],
)
def test_what_a_phase_has_not_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(TracekitError, match=message):
        build("qwen2.5-vl", **asked)


def test_the_fast_processor_needs_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qwen_vl, "is_torchvision_available", lambda: False)
    assert qwen_vl.choose_fast(None) is False
    with pytest.raises(TracekitError, match="leave --use-fast out"):
        qwen_vl.choose_fast(True)
