"""A causal language model reading a prompt: one forward, nothing generated.

Architecture figures are those of the published configuration file of google/gemma-2b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import nn
from transformers import AutoModelForCausalLM, GemmaConfig, GemmaForCausalLM

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import Component, Settings
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request
from tracekit.workloads.listed import CAUSAL_LM
from tracekit.workloads.settings import fill_in
from tracekit.workloads.weights import load_pretrained, random_weights


@dataclass(frozen=True, slots=True)
class Architecture:
    """What differs between the sizes; the rest is as published."""

    layers: int
    width: int
    heads: int
    head_width: int
    feed_forward: int
    vocabulary: int
    prompt_tokens: int


PUBLISHED = Architecture(
    layers=18, width=2048, heads=8, head_width=256, feed_forward=16384, vocabulary=256_000, prompt_tokens=512
)
SMALL = replace(PUBLISHED, layers=4)
TINY = Architecture(layers=2, width=64, heads=2, head_width=32, feed_forward=128, vocabulary=1000, prompt_tokens=32)

ARCHITECTURES = {"full": PUBLISHED, "small": SMALL, "tiny": TINY}


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The model and its prompts on `device`, ready to be called. `size` is already chosen; `request.scope` checked.

    Raises TracekitError for pretrained weights that cannot be had, and for those of a model without repeated layers
    where these are to be compiled.
    """
    settings = fill_in(CAUSAL_LM, request, size, device)
    dtype: torch.dtype = getattr(torch, settings.dtype)
    architecture = ARCHITECTURES[size]
    if request.pretrained:
        progress.detail(f"loading {request.pretrained}")
        model = load_pretrained(AutoModelForCausalLM, request.pretrained, dtype).to(device)
    else:
        with random_weights(dtype, device, request.seed):
            model = _model(architecture)
    model.requires_grad_(False).eval()
    tokens, vocabulary = architecture.prompt_tokens, model.config.vocab_size

    def call_at(other: Request) -> Callable[[], object]:
        return _make_call(model, make_prompts(other.batch_size, tokens, vocabulary, settings.seed).to(device))

    # Those that transformers itself never splits between devices.
    repeated = model._no_split_modules or ()
    layers = {name: layer for name, layer in model.named_modules() if type(layer).__name__ in repeated}
    return BuiltWorkload(
        info=CAUSAL_LM,
        settings=settings,
        call=call_at(request),
        call_at=call_at,
        targets=_targets(model, layers, settings.pretrained, settings.scope),
        components=_components(model, layers, settings.scope),
        notes=_notes(settings, architecture.prompt_tokens),
        modules=(("model", model),),
        targets_of=partial(_targets, model, layers, settings.pretrained),
    )


def _model(architecture: Architecture) -> GemmaForCausalLM:
    return GemmaForCausalLM(
        GemmaConfig(
            num_hidden_layers=architecture.layers,
            hidden_size=architecture.width,
            num_attention_heads=architecture.heads,
            num_key_value_heads=1,
            head_dim=architecture.head_width,
            intermediate_size=architecture.feed_forward,
            vocab_size=architecture.vocabulary,
            # The published file says "gelu", for which transformers has always run the tanh form.
            hidden_act="gelu_pytorch_tanh",
            max_position_embeddings=8192,
            rms_norm_eps=1e-6,
            tie_word_embeddings=True,
        )
    )


def make_prompts(count: int, tokens: int, vocabulary: int, seed: int) -> torch.Tensor:
    """Token ids drawn by the seed, the same on every device."""
    return torch.randint(vocabulary, (count, tokens), generator=torch.Generator().manual_seed(seed))


def _make_call(model: nn.Module, prompts: torch.Tensor) -> Callable[[], object]:
    def call() -> object:
        with torch.no_grad():
            # A cache is for the tokens after the prompt, and there are none.
            return model(input_ids=prompts, use_cache=False).logits

    return call


def _targets(
    model: nn.Module, layers: dict[str, nn.Module], pretrained: str | None, scope: str
) -> tuple[CompileTarget, ...]:
    if scope == "model":
        return (CompileTarget("model", model),)
    if not layers:
        raise TracekitError(f"{pretrained} does not say which layers repeat: pass --scope model")
    return tuple(CompileTarget(f"model.{name}", layer) for name, layer in layers.items())


def _components(model: nn.Module, layers: dict[str, nn.Module], scope: str) -> tuple[Component, ...]:
    whole = sum(p.numel() for p in model.parameters())
    repeated = sum(p.numel() for layer in layers.values() for p in layer.parameters())
    return (
        Component("decoder layers", repeated, compiled=True),
        Component("embeddings, last norm and head", whole - repeated, compiled=scope == "model"),
    )


def _notes(settings: Settings, tokens: int) -> tuple[str, ...]:
    call = (
        f"One call reads prompts of {tokens} tokens, {settings.batch_size} of them, in one forward without a cache:"
        " from token ids drawn by the seed, already on the device, to the logits of every position there."
    )
    if settings.pretrained:
        return (call,)
    return (call, "Weights are random: the logits mean nothing, the work is the model's own.")
