"""The real GemmaForCausalLM at tiny size, and the published architecture without its weights."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import BuiltWorkload, Request  # noqa: E402
from tracekit.workloads import causal_lm  # noqa: E402
from tracekit.workloads.listed import CAUSAL_LM  # noqa: E402
from tracekit.workloads.sizes import check_request  # noqa: E402


def build(size: str = "tiny", **asked: object) -> BuiltWorkload:
    return causal_lm.build(Request("causal-lm", **asked), size, "cpu", Silent())  # type: ignore[arg-type]


def logits(workload: BuiltWorkload) -> torch.Tensor:
    found = workload.call()
    assert isinstance(found, torch.Tensor)
    return found


def test_one_call_gives_the_logits_of_every_position() -> None:
    found = logits(build(batch_size=3))
    assert found.shape == (3, 32, 1000)
    assert torch.isfinite(found).all()


def test_each_prompt_has_its_own_logits() -> None:
    first, second = logits(build(batch_size=2))
    assert not torch.allclose(first, second)


def test_equal_seeds_give_equal_logits_and_others_do_not() -> None:
    assert torch.equal(logits(build(seed=3)), logits(build(seed=3)))
    assert not torch.allclose(logits(build(seed=3)), logits(build(seed=4)))


def test_a_later_token_leaves_the_logits_before_it_alone() -> None:
    model = build().targets[0].module
    prompt = causal_lm.make_prompts(1, 8, 1000, seed=0)
    changed = prompt.clone()
    changed[0, -1] = (changed[0, -1] + 1) % 1000
    before, after = (causal_lm._make_call(model, each)() for each in (prompt, changed))
    assert isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor)
    assert torch.allclose(before[:, :-1], after[:, :-1])
    assert not torch.allclose(before[:, -1], after[:, -1])


def test_the_published_size_has_the_published_parameter_count() -> None:
    with torch.device("meta"):
        model = causal_lm._model(causal_lm.PUBLISHED)
    # google/gemma-2b's safetensors: 2.51 B, input and output embeddings being one.
    assert sum(p.numel() for p in model.parameters()) == 2_506_172_416


def test_small_differs_from_the_published_size_in_its_layers_alone() -> None:
    with torch.device("meta"):
        whole, small = (causal_lm._model(each) for each in (causal_lm.PUBLISHED, causal_lm.SMALL))
    shapes = {name: p.shape for name, p in whole.named_parameters()}
    assert {name: p.shape for name, p in small.named_parameters()}.items() < shapes.items()
    assert len(small.model.layers) == 4


@pytest.mark.parametrize(
    ("scope", "components"),
    [("model", ["model"]), ("regional", ["model.model.layers.0", "model.model.layers.1"])],
)
def test_each_scope_names_what_it_compiles(scope: str, components: list[str]) -> None:
    assert [target.component for target in build(scope=scope).targets] == components


def test_parts_add_up_to_the_model_and_say_what_is_compiled() -> None:
    whole, regional = build(scope="model"), build(scope="regional")
    parameters = sum(p.numel() for p in whole.targets[0].module.parameters())
    assert sum(part.parameters for part in regional.components) == parameters
    assert [part.compiled for part in whole.components] == [True, True]
    assert [(part.name, part.compiled) for part in regional.components] == [
        ("decoder layers", True),
        ("embeddings, last norm and head", False),
    ]
    layers = sum(p.numel() for target in regional.targets for p in target.module.parameters())
    assert regional.components[0].parameters == layers


def test_the_length_of_the_prompt_is_noted() -> None:
    assert "prompts of 32 tokens, 2 of them" in build(batch_size=2).notes[0]
    assert all(f"prompt of {a.prompt_tokens}" in CAUSAL_LM.sizes[size] for size, a in causal_lm.ARCHITECTURES.items())


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"prompt": "Once upon a time"}, "causal-lm has no --prompt: leave it out"),
        ({"height": 512, "steps": 2}, "causal-lm has no --height and no --steps: leave them out"),
    ],
)
def test_what_a_language_model_has_not_is_refused(asked: dict[str, object], message: str) -> None:
    with pytest.raises(TracekitError) as caught:
        check_request(CAUSAL_LM, Request("causal-lm", **asked))  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_weights_from_a_folder_are_loaded_with_their_own_vocabulary(tmp_path: Path) -> None:
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, vocab_size=77
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    workload = build("full", pretrained=str(tmp_path), scope="regional", dtype="bfloat16")
    found = logits(workload)
    assert found.shape == (1, 512, 77)
    assert found.dtype == torch.bfloat16
    assert [target.component for target in workload.targets] == ["model.model.layers.0"]


def test_a_folder_without_a_language_model_is_refused_in_one_line(tmp_path: Path) -> None:
    transformers.ViTConfig(num_hidden_layers=1).save_pretrained(tmp_path)
    with pytest.raises(TracekitError) as caught:
        build("full", pretrained=str(tmp_path))
    assert "holds no model" in str(caught.value)
    assert "\n" not in str(caught.value)
