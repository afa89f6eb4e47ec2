"""`hf:`: the class that a configuration means, what is made for it, its smaller size."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.workloads.builds import build, look_into  # noqa: E402
from tests.workloads.configurations import save, transformers_config  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.option import OWN_WEIGHTS  # noqa: E402
from tracekit.model.workload import Request  # noqa: E402
from tracekit.workloads.sizes import choose_size  # noqa: E402


def saved(name: str, folder: Path, **changes: Any) -> str:
    """A tiny model's configuration with these changes."""
    workload, file = save(name, folder), folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return workload


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "ViTForImageClassification"])
def test_a_configuration_may_name_no_class_and_be_named_itself(name: str, tmp_path: Path) -> None:
    folder = saved(name, tmp_path, architectures=None)
    assert look_into(folder).title.startswith(name)
    assert look_into(f"{folder}/config.json").parameters == look_into(folder).parameters


def test_lengths_and_heights_are_as_asked(tmp_path: Path) -> None:
    text = build(save("BertForMaskedLM", tmp_path / "bert"), seq_length=7)
    assert text.settings.seq_length == 7
    assert [each.shape for each in text.call()] == [(1, 7, 200)]
    images = build(save("SegformerForSemanticSegmentation", tmp_path / "seg"), height=64, width=96)
    assert (images.settings.height, images.settings.width, images.settings.seq_length) == (64, 96, None)
    assert images.call()[0].shape == (1, 2, 16, 24)


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
    name = save("SegformerForSemanticSegmentation", tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    assert look_into(name).inputs == f"pixel_values 1x3x{pixels}"


def test_special_tokens_are_not_drawn_but_where_they_belong(tmp_path: Path) -> None:
    workload = build(save("BartForSequenceClassification", tmp_path), batch_size=50)
    seen: dict[str, torch.Tensor] = {}
    model = workload.targets[0].module
    model.register_forward_pre_hook(lambda _module, _args, given: seen.update(given), with_kwargs=True)
    workload.call()
    assert (seen["input_ids"][:, -1] == 2).all()
    assert not torch.isin(seen["input_ids"][:, :-1], torch.tensor([0, 1, 2, 3])).any()
    assert (seen["decoder_input_ids"][:, 0] == 3).all()


def test_the_small_size_has_two_layers_of_each_stack_and_says_so(tmp_path: Path) -> None:
    name = save("WhisperForConditionalGeneration", tmp_path)
    info = look_into(name)
    assert list(info.sizes) == ["full", "small"]
    small = build(name, "small")
    config = small.targets[0].module.config
    assert (config.encoder_layers, config.decoder_layers, config.d_model) == (2, 2, 32)
    assert small.components[0].parameters < (info.parameters or 0)
    assert any("cut to 2 layers" in note for note in small.notes)
    assert info.memory_gib["small"] < info.memory_gib["full"]
    # The weights in bfloat16, a share for a call and an allowance.
    need = (info.memory_gib["full"] - 0.5) * 2**30
    assert 1.2 * 2 * (info.parameters or 0) <= need < 1.3 * 2 * (info.parameters or 0)


def test_where_nothing_would_be_left_out_there_is_no_smaller_size(tmp_path: Path) -> None:
    bert = saved("BertForMaskedLM", tmp_path / "bert", num_hidden_layers=2)
    config = transformers.SwinConfig(
        image_size=32, patch_size=2, embed_dim=16, depths=[1, 1, 1], num_heads=[1, 1, 1], window_size=4
    )
    config.architectures = ["SwinForImageClassification"]
    config.save_pretrained(tmp_path / "swin")
    for name in (bert, f"hf:{tmp_path}/swin"):
        assert list(look_into(name).sizes) == ["full"]
        with pytest.raises(TracekitError, match="has no size small: pass --size auto, full"):
            look_into(name, size="small")
    with pytest.raises(TracekitError, match="has no size small"):
        build(bert, "small")


def test_a_model_too_large_is_refused_before_it_is_built(tmp_path: Path) -> None:
    large = {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80}
    info = look_into(saved("LlamaForCausalLM", tmp_path, **large, num_attention_heads=64, head_dim=128))
    assert info.parameters is not None and info.parameters > 60e9
    with pytest.raises(TracekitError, match=r"size full needs about 1\d\d GiB of memory and 80\.0 GiB are free"):
        choose_size(info, Request(info.name, size="full"), "cuda", 80 * 2**30)
    assert choose_size(info, Request(info.name), "cuda", 80 * 2**30)[0] == "small"


def test_real_weights_of_a_folder_are_loaded(tmp_path: Path) -> None:
    model = transformers.ViTForImageClassification(transformers_config("ViTForImageClassification"))
    model.save_pretrained(tmp_path)
    for asked in (OWN_WEIGHTS, str(tmp_path)):
        workload = build(f"hf:{tmp_path}", pretrained=asked)
        assert workload.settings.pretrained == str(tmp_path)
        assert torch.equal(workload.targets[0].module.classifier.weight, model.classifier.weight)
        assert not any("random" in note for note in workload.notes)


def test_a_package_that_a_model_wants_is_named(tmp_path: Path) -> None:
    if importlib.util.find_spec("timm"):
        pytest.skip("timm is here")
    config = transformers.DetrConfig()
    config.architectures = ["DetrForObjectDetection"]
    config.save_pretrained(tmp_path)
    with pytest.raises(TracekitError, match=r"a package is not installed: .*pip install timm") as caught:
        look_into(f"hf:{tmp_path}")
    assert "\n" not in str(caught.value)


def test_a_model_of_diffusers_is_sent_there(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "FluxPipeline"}')
    with pytest.raises(TracekitError, match=f"diffusers:{tmp_path}"):
        look_into(f"hf:{tmp_path}")


def test_a_model_is_run_without_a_cache_and_without_quantised_weights(tmp_path: Path) -> None:
    quantised = {"quant_method": "gptq", "bits": 4}
    workload = build(saved("LlamaForCausalLM", tmp_path, quantization_config=quantised))
    assert workload.targets[0].module.config.use_cache is False
    assert any("quantised" in note for note in workload.notes)
