"""Tiny models of transformers and diffusers, from folders that hold nothing but a configuration."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("diffusers")

from tests.workloads.builds import build, look_into  # noqa: E402
from tests.workloads.configurations import DENOISERS, save  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.workloads.diffusers_model import KNOWN  # noqa: E402

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
#: Of those whose configuration does not say how large an image is.
PIXELS = {name: {"height": 64, "width": 64} for name in ("FluxTransformer2DModel", "WanTransformer3DModel")}


def test_every_known_denoiser_is_tested_here() -> None:
    assert INPUTS.keys() >= KNOWN.keys() == DENOISERS.keys()


@pytest.mark.parametrize("name", INPUTS)
def test_any_of_these_is_understood_from_its_configuration_and_runs(name: str, tmp_path: Path) -> None:
    workload, asked = save(name, tmp_path), {"batch_size": 2, **PIXELS.get(name, {})}
    info = look_into(workload, **asked)
    assert info.title.startswith(name)
    assert info.inputs == INPUTS[name]
    assert info.memory_gib["full"] >= 0.5
    made = build(workload, **asked)
    first, again = made.call(), made.call()
    assert type(made.targets[0].module).__name__ == name
    assert made.components[0].parameters == info.parameters
    assert all(torch.equal(one, other) and torch.isfinite(one).all() for one, other in zip(first, again, strict=True))
    guided = name in KNOWN and KNOWN[name].guided
    assert len(first) and all(each.shape[0] == (4 if guided else 2) for each in first)
    assert info.inputs in made.notes[0]
    assert any("Guidance" in note for note in made.notes) == guided
    if name in KNOWN:
        assert not torch.equal(first[0][0], first[0][1])


BERT = {"model_type": "bert", "architectures": ["BertForMaskedLM"]}
REFUSED: list[tuple[str, Any, str]] = [
    ("hf", {**BERT, "architectures": ["MyOwnModel"]}, "MyOwnModel.*transformers.*my_model.py:build"),
    ("hf", {"model_type": "no-such-type"}, "no-such-type"),
    ("hf", {**BERT, "num_attention_heads": 5}, "BertForMaskedLM cannot be built from its configuration: .*multiple"),
    ("diffusers", {"_class_name": "AutoencoderKL"}, "AutoencoderKL.* UNet2D"),
    ("diffusers", {"_class_name": "NoSuchModel"}, "diffusers .* has no NoSuchModel"),
    ("diffusers", BERT, "_class_name.* hf:"),
    ("diffusers", "{", "config.json of .* JSON"),
    ("diffusers", [], "config.json of .* configuration"),
    ("diffusers", {"_class_name": "DiTTransformer2DModel", "norm_type": "none"}, "DiT.*Model cannot be built"),
]


@pytest.mark.parametrize(("prefix", "config", "message"), REFUSED)
def test_a_configuration_that_cannot_be_used_is_one_line(
    prefix: str, config: Any, message: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    with pytest.raises(TracekitError, match=message) as caught:
        look_into(f"{prefix}:{tmp_path}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "asked", "message"),
    [
        ("BertForMaskedLM", {"seq_length": 41}, "BertForMaskedLM has 40 positions: --seq-length 41 is too long"),
        ("BertForMaskedLM", {"height": 32}, "leave --height and --width out"),
        ("ViTForImageClassification", {"seq_length": 5}, "leave --seq-length out"),
        ("LayoutLMv3ForSequenceClassification", {}, "my_model.py:build"),
        ("ViTForImageClassification", {"height": 40}, r"\(40\*32\) doesn't match.*my_model.py:build"),
        ("DiTTransformer2DModel", {"height": 40}, "^--height 40.*16 pixels"),
        ("DiTTransformer2DModel", {"seq_length": 9}, "leave --seq-length out"),
    ],
)
def test_sizes_that_the_model_has_not_are_one_line(
    name: str, asked: dict[str, int], message: str, tmp_path: Path
) -> None:
    with pytest.raises(TracekitError, match=message) as caught:
        look_into(save(name, tmp_path), **asked)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LlamaForCausalLM", "SD3Transformer2DModel"])
def test_compiled_it_returns_what_eager_does(name: str, tmp_path: Path) -> None:
    """What Dynamo makes of a reader and of a denoiser; Inductor's C++ compiler would take minutes. What it makes of two
    stacks is told in `tests/cli/test_profile.py`, of the list's Whisper."""
    torch.compiler.reset()
    source, config = save(name, tmp_path), tmp_path / "config.json"
    # One layer says it as well.
    shallow = {**json.loads(config.read_text()), "num_hidden_layers": 1, "num_layers": 1}
    config.write_text(json.dumps(shallow))
    workload = build(source, batch_size=2)
    eager = workload.call()
    workload.targets[0].module.compile(backend="eager")
    for one, other in zip(eager, workload.call(), strict=True):
        assert torch.allclose(one, other, atol=1e-5)
