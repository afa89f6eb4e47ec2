"""`hf:` for tiny models of every kind whose inputs can be made, from folders that hold nothing but a configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.workloads.configurations import save_transformers, transformers_config  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.option import OWN_WEIGHTS  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import BuiltWorkload, Request, WorkloadInfo  # noqa: E402
from tracekit.workloads import registry  # noqa: E402

#: What each takes at batch 2.
INPUTS = {
    "ViTForImageClassification": "pixel_values 2x3x32x32",
    "BertForMaskedLM": "input_ids 2x40, attention_mask 2x40",
    "LlamaForCausalLM": "input_ids 2x40, attention_mask 2x40",
    "GPT2LMHeadModel": "input_ids 2x40, attention_mask 2x40",
    "T5ForConditionalGeneration": "input_ids 2x128, attention_mask 2x128, decoder_input_ids 2x64",
    "BartForSequenceClassification": "input_ids 2x40, attention_mask 2x40, decoder_input_ids 2x40",
    "WhisperForConditionalGeneration": "input_features 2x8x100, decoder_input_ids 2x16",
    "DetrForObjectDetection": "pixel_values 2x3x800x1066",
    "SegformerForSemanticSegmentation": "pixel_values 2x3x224x224",
    "CLIPModel": "input_ids 2x40, attention_mask 2x40, pixel_values 2x3x32x32",
    "Wav2Vec2ForCTC": "input_values 2x80000",
    "ASTForAudioClassification": "input_values 2x64x16",
    "VideoMAEForVideoClassification": "pixel_values 2x4x3x32x32",
}


def look_into(request: Request) -> WorkloadInfo:
    info = registry.find(request.workload)
    registry.load_builder(info)
    return registry.look_into(info, request)


def build(request: Request, size: str = "full") -> BuiltWorkload:
    return registry.load_builder(registry.find(request.workload))(request, size, "cpu", Silent())


def rewrite(folder: Path, **changes: Any) -> None:
    said = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**said, **changes}))


@pytest.mark.parametrize("name", INPUTS)
def test_any_of_these_is_understood_from_its_configuration_and_runs(name: str, tmp_path: Path) -> None:
    request = Request(f"hf:{save_transformers(name, tmp_path)}", batch_size=2)
    info = look_into(request)
    assert info.title.startswith(name)
    assert info.inputs == INPUTS[name]
    assert info.memory_gib["full"] >= 0.5
    workload = build(request)
    first, again = workload.call(), workload.call()
    assert isinstance(first, tuple) and isinstance(again, tuple)
    assert type(workload.targets[0].module).__name__ == name
    assert workload.components[0].parameters == info.parameters
    assert all(torch.equal(one, other) and torch.isfinite(one).all() for one, other in zip(first, again, strict=True))
    assert len(first) and all(each.shape[0] == 2 for each in first)
    assert info.inputs in workload.notes[0]


def test_the_class_is_found_for_a_configuration_that_names_none(tmp_path: Path) -> None:
    for name in ("LlamaForCausalLM", "ViTForImageClassification"):
        folder = save_transformers(name, tmp_path / name)
        rewrite(folder, architectures=None)
        assert look_into(Request(f"hf:{folder}")).title.startswith(name)


def test_a_configuration_file_may_be_named_itself(tmp_path: Path) -> None:
    folder = save_transformers("BertForMaskedLM", tmp_path)
    assert look_into(Request(f"hf:{folder}/config.json")).parameters == look_into(Request(f"hf:{folder}")).parameters


def test_lengths_and_heights_are_as_asked(tmp_path: Path) -> None:
    text = build(Request(f"hf:{save_transformers('BertForMaskedLM', tmp_path / 'bert')}", seq_length=7))
    assert text.settings.seq_length == 7
    assert [each.shape for each in text.call()] == [(1, 7, 200)]  # type: ignore[attr-defined]
    images = build(
        Request(f"hf:{save_transformers('SegformerForSemanticSegmentation', tmp_path / 'seg')}", height=64, width=96)
    )
    assert (images.settings.height, images.settings.width, images.settings.seq_length) == (64, 96, None)
    assert images.call()[0].shape == (1, 2, 16, 24)  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "asked", "message"),
    [
        ("BertForMaskedLM", {"seq_length": 41}, "BertForMaskedLM has 40 positions: --seq-length 41 is too long"),
        ("BertForMaskedLM", {"height": 32}, "looks at no images: leave --height and --width out"),
        ("ViTForImageClassification", {"seq_length": 5}, "reads no text: leave --seq-length out"),
        ("LayoutLMv3ForSequenceClassification", {}, r"cannot be made from its configuration: .*my_model.py:build"),
        ("ViTForImageClassification", {"height": 40}, r"cannot be made .* \(40\*32\) doesn't match.*my_model.py:build"),
    ],
)
def test_sizes_that_the_model_has_not_are_one_line(
    name: str, asked: dict[str, int], message: str, tmp_path: Path
) -> None:
    request = Request(f"hf:{save_transformers(name, tmp_path)}", **asked)  # type: ignore[arg-type]
    with pytest.raises(TracekitError, match=message) as caught:
        look_into(request)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("preprocessor", "pixels"),
    [
        ({"size": {"height": 64, "width": 96}}, "64x96"),
        ({"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": {"height": 64, "width": 64}}, "64x64"),
        ({"size": {"shortest_edge": 96, "longest_edge": 1333}}, "96x128"),
        ({"size": {"shortest_edge": 96, "longest_edge": 100}}, "96x100"),
        ({"size": 64}, "64x64"),
        ({}, "224x224"),
    ],
)
def test_images_are_as_large_as_the_repositorys_own_preprocessor_makes_them(
    preprocessor: dict[str, Any], pixels: str, tmp_path: Path
) -> None:
    folder = save_transformers("SegformerForSemanticSegmentation", tmp_path)
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    assert look_into(Request(f"hf:{folder}")).inputs == f"pixel_values 1x3x{pixels}"


def test_special_tokens_are_not_drawn_but_where_they_belong(tmp_path: Path) -> None:
    workload = build(Request(f"hf:{save_transformers('BartForSequenceClassification', tmp_path)}", batch_size=50))
    seen: dict[str, torch.Tensor] = {}
    model = workload.targets[0].module
    model.register_forward_pre_hook(lambda _module, _args, given: seen.update(given), with_kwargs=True)
    workload.call()
    assert (seen["input_ids"][:, -1] == 2).all()
    assert not torch.isin(seen["input_ids"][:, :-1], torch.tensor([0, 1, 2, 3])).any()
    assert (seen["decoder_input_ids"][:, 0] == 3).all()


def test_the_small_size_has_two_layers_of_each_stack_and_says_so(tmp_path: Path) -> None:
    request = Request(f"hf:{save_transformers('WhisperForConditionalGeneration', tmp_path)}")
    info = look_into(request)
    assert list(info.sizes) == ["full", "small"]
    small = build(request, "small")
    config = small.targets[0].module.config
    assert (config.encoder_layers, config.decoder_layers, config.d_model) == (2, 2, 32)
    assert small.components[0].parameters < (info.parameters or 0)
    assert any("cut to 2 layers" in note for note in small.notes)
    assert info.memory_gib["small"] < info.memory_gib["full"]


def test_where_nothing_would_be_left_out_there_is_no_smaller_size(tmp_path: Path) -> None:
    bert = save_transformers("BertForMaskedLM", tmp_path / "bert")
    rewrite(bert, num_hidden_layers=2)
    config = transformers.SwinConfig(
        image_size=32, patch_size=2, embed_dim=16, depths=[1, 1, 1], num_heads=[1, 1, 1], window_size=4
    )
    config.architectures = ["SwinForImageClassification"]
    config.save_pretrained(tmp_path / "swin")
    for folder in (bert, tmp_path / "swin"):
        assert list(look_into(Request(f"hf:{folder}")).sizes) == ["full"]
        with pytest.raises(TracekitError, match="has no size small: pass --size auto, full"):
            look_into(Request(f"hf:{folder}", size="small"))
    with pytest.raises(TracekitError, match="has no size small"):
        build(Request(f"hf:{bert}"), "small")


def test_memory_is_the_weights_in_bfloat16_a_share_for_a_call_and_an_allowance(tmp_path: Path) -> None:
    info = look_into(Request(f"hf:{save_transformers('BertForMaskedLM', tmp_path)}"))
    need = (info.memory_gib["full"] - 0.5) * 2**30
    assert 1.2 * 2 * (info.parameters or 0) <= need < 1.3 * 2 * (info.parameters or 0)


def test_a_model_too_large_is_refused_before_it_is_built(tmp_path: Path) -> None:
    from tracekit.workloads.sizes import choose_size

    folder = save_transformers("LlamaForCausalLM", tmp_path)
    rewrite(
        folder, hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64, head_dim=128
    )
    info = look_into(Request(f"hf:{folder}"))
    assert info.parameters is not None and info.parameters > 60e9
    with pytest.raises(TracekitError, match=r"size full needs about 1\d\d GiB of memory and 80\.0 GiB are free"):
        choose_size(info, Request(info.name, size="full"), "cuda", 80 * 2**30)
    assert choose_size(info, Request(info.name), "cuda", 80 * 2**30)[0] == "small"


def test_real_weights_of_a_folder_are_loaded(tmp_path: Path) -> None:
    config = transformers_config("ViTForImageClassification")
    saved = transformers.ViTForImageClassification(config)
    saved.save_pretrained(tmp_path)
    for asked in (OWN_WEIGHTS, str(tmp_path)):
        workload = build(Request(f"hf:{tmp_path}", pretrained=asked))
        assert workload.settings.pretrained == str(tmp_path)
        assert torch.equal(workload.targets[0].module.classifier.weight, saved.classifier.weight)
        assert not any("random" in note for note in workload.notes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["MyOwnModel"]}, "MyOwnModel, which transformers .* has not.*my_model.py:build"),
        ({"model_type": "no-such-type", "architectures": None}, "makes nothing of the configuration"),
        ({"num_attention_heads": 5}, "BertForMaskedLM cannot be built from its configuration: .*multiple"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_one_line_with_the_way_out(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = save_transformers("BertForMaskedLM", tmp_path)
    rewrite(folder, **changes)
    with pytest.raises(TracekitError, match=message) as caught:
        look_into(Request(f"hf:{folder}"))
    assert "\n" not in str(caught.value)


def test_a_package_that_a_model_wants_is_named(tmp_path: Path) -> None:
    try:
        import timm  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("timm is here")
    config = transformers.DetrConfig()
    config.architectures = ["DetrForObjectDetection"]
    config.save_pretrained(tmp_path)
    with pytest.raises(TracekitError, match=r"a package is not installed: .*pip install timm") as caught:
        look_into(Request(f"hf:{tmp_path}"))
    assert "\n" not in str(caught.value)


def test_a_model_of_diffusers_is_sent_there(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "FluxPipeline"}')
    with pytest.raises(TracekitError, match=f"not of transformers: diffusers:{tmp_path}"):
        look_into(Request(f"hf:{tmp_path}"))


def test_a_model_is_run_without_a_cache_and_without_quantised_weights(tmp_path: Path) -> None:
    folder = save_transformers("LlamaForCausalLM", tmp_path)
    rewrite(folder, quantization_config={"quant_method": "gptq", "bits": 4})
    workload = build(Request(f"hf:{folder}"))
    assert workload.targets[0].module.config.use_cache is False
    assert any("quantised" in note for note in workload.notes)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LlamaForCausalLM", "WhisperForConditionalGeneration", "CLIPModel"])
def test_compiled_it_returns_what_eager_does(name: str, tmp_path: Path) -> None:
    """What Dynamo makes of a reader, of two stacks, and of two towers; Inductor's C++ compiler would take minutes."""
    torch.compiler.reset()
    workload = build(Request(f"hf:{save_transformers(name, tmp_path)}", batch_size=2))
    eager = workload.call()
    workload.targets[0].module.compile(backend="eager")
    for one, other in zip(eager, workload.call(), strict=True):  # type: ignore[call-overload]
        assert torch.allclose(one, other, atol=1e-5)
