"""The real GemmaForCausalLM at tiny size, and the published architecture without its weights."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.workloads.builds import build, built, nowhere  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.workloads.building import count_parameters  # noqa: E402


def test_one_call_gives_the_logits_of_every_position_of_each_prompt() -> None:
    found = built("causal-lm", batch_size=2).call()
    assert found.shape == (2, 32, 1000) and torch.isfinite(found).all()
    assert not torch.allclose(found[0], found[1])


@pytest.mark.parametrize("cache", [None, "dynamic"])
def test_decoding_gives_the_logits_after_one_token_more(cache: str | None) -> None:
    workload = built("causal-lm", phase="decode", cache=cache)
    prompts = torch.randint(1000, (1, 32), generator=torch.Generator().manual_seed(0))
    model = workload.modules[0][1]
    first = model(prompts).logits[:, -1].argmax(-1)
    expected = model(torch.cat([prompts, first[:, None]], dim=1)).logits[:, -1]
    assert all(torch.allclose(workload.call(), expected, atol=1e-5) for _ in range(2))
    assert workload.settings.generation.cache == (cache or "static")


@pytest.mark.parametrize(
    ("asked", "message"),
    [({"phase": "generate"}, "--phase prefill or decode"), ({"cache": "static"}, "pass --phase decode")],
)
def test_what_a_prompt_that_is_read_has_not_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(TracekitError, match=message):
        build("causal-lm", **asked)


def test_small_differs_from_the_published_size_in_its_layers_alone() -> None:
    whole, small = (nowhere("causal-lm", size).modules[0][1] for size in ("full", "small"))
    shapes = {name: p.shape for name, p in whole.named_parameters()}
    assert {name: p.shape for name, p in small.named_parameters()}.items() < shapes.items()
    assert len(small.model.layers) == 4


def test_parts_add_up_to_the_model_and_say_what_is_compiled() -> None:
    whole, regional = built("causal-lm"), built("causal-lm", scope="regional")
    assert [target.component for target in whole.targets] == ["model"]
    assert [target.component for target in regional.targets] == ["model.model.layers.0", "model.model.layers.1"]
    assert sum(part.parameters for part in regional.components) == count_parameters(whole.targets[0].module)
    assert [part.compiled for part in whole.components] == [True, True]
    assert [part.compiled for part in regional.components] == [True, False]
    assert regional.components[0].parameters == count_parameters(*(target.module for target in regional.targets))


def test_weights_from_a_folder_are_loaded_with_their_own_vocabulary(tmp_path: Path) -> None:
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, vocab_size=77
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    workload = build("causal-lm", "full", pretrained=str(tmp_path), scope="regional", dtype="bfloat16")
    found = workload.call()
    assert found.shape == (1, 512, 77)
    assert found.dtype == torch.bfloat16
    assert [target.component for target in workload.targets] == ["model.model.layers.0"]


def test_a_folder_without_a_language_model_is_refused_in_one_line(tmp_path: Path) -> None:
    transformers.ViTConfig(num_hidden_layers=1).save_pretrained(tmp_path)
    with pytest.raises(TracekitError, match="holds no model") as caught:
        build("causal-lm", "full", pretrained=str(tmp_path))
    assert "\n" not in str(caught.value)
