"""A causal language model reading a prompt in one forward, or writing one token after it, as google/gemma-2b's
configuration file has it."""

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from msgspec.structs import replace
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, GemmaConfig, GemmaForCausalLM

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import Component, Generation
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request
from tracekit.workloads.building import count_parameters, fill_in, load_pretrained, parallel_here, random_weights
from tracekit.workloads.generating import make_call
from tracekit.workloads.registry import CAUSAL_LM
from tracekit.workloads.tensor_parallel import arguments_for, key_heads_of, split, with_own_heads

#: Arguments of the configuration that differ between the sizes, and the length of the prompt; the rest is as published.
FIGURES = "num_hidden_layers hidden_size num_attention_heads head_dim intermediate_size vocab_size".split()
ARCHITECTURES = {
    "full": (18, 2048, 8, 256, 16384, 256_000),
    "small": (4, 2048, 8, 256, 16384, 256_000),
    "tiny": (2, 64, 2, 32, 128, 1000),
}
PROMPT_TOKENS = {"full": 512, "small": 512, "tiny": 32}


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The model and its prompts on `device`; over ranks each one's part. Raises TracekitError for `regional` where
    weights name no layers, and for heads that cannot be split."""
    parallel = parallel_here(CAUSAL_LM, request, device)
    ranks = dist.get_world_size() if parallel else 1
    generation = _generation(request)
    settings = replace(fill_in(CAUSAL_LM, request, size, device), parallel=parallel, generation=generation)
    dtype: torch.dtype = getattr(torch, settings.dtype)
    if request.pretrained:
        progress.detail(f"loading {request.pretrained}")
        more = arguments_for(load_pretrained(AutoConfig, request.pretrained, None), ranks) if parallel else {}
        model = load_pretrained(AutoModelForCausalLM, request.pretrained, dtype, **more)
        model = with_own_heads(model, ranks) if parallel else model.to(device)
    else:
        with random_weights(dtype, device, request.seed):
            model = GemmaForCausalLM(
                GemmaConfig(
                    **dict(zip(FIGURES, ARCHITECTURES[size], strict=True)),
                    num_key_value_heads=1,
                    # The published file says "gelu", for which transformers has always run the tanh form.
                    hidden_act="gelu_pytorch_tanh",
                    max_position_embeddings=8192,
                    rms_norm_eps=1e-6,
                    tie_word_embeddings=True,
                )
            )
        if parallel:
            model = split(model, dtype, ranks)
    model.requires_grad_(False).eval()
    # Random weights may well say that a text has ended.
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = None, 0
    tokens = PROMPT_TOKENS[size]

    def call_at(other: Request) -> Callable[[], object]:
        # The same on every device.
        generator = torch.Generator().manual_seed(settings.seed)
        shape = (other.batch_size, tokens)
        prompts = torch.randint(model.config.vocab_size, shape, generator=generator).to(model.device)

        if generation:
            inputs = {"input_ids": prompts, "attention_mask": torch.ones_like(prompts)}
            return make_call(model, inputs, generation, settings.mode, key_heads_of(model.config, ranks))

        def call() -> object:
            with torch.no_grad():
                # A cache is for the tokens after the prompt, and there are none.
                return model(input_ids=prompts, use_cache=False).logits

        return call

    # Those that transformers itself never splits between devices.
    repeated = model._no_split_modules or ()
    layers = {name: layer for name, layer in model.named_modules() if type(layer).__name__ in repeated}
    whole, in_layers = count_parameters(model), count_parameters(*layers.values())
    prompts = f"prompts of {tokens} random token ids, batch size {settings.batch_size}"
    what = f"forward over {prompts}, without a cache, up to the logits of every position"
    if generation:
        what = f"token after each of {prompts}, which the {generation.cache} cache holds, up to its logits"
    note = f"One call is one {what}. Inputs are on the device before the call."
    if parallel:
        note += f" Heads and MLPs are split over {ranks} ranks by transformers' tensor parallel plan."
    random = "Random weights: the logits are meaningless, kernels and shapes are the model's."
    return BuiltWorkload(
        info=CAUSAL_LM,
        settings=settings,
        call=call_at(request),
        call_at=call_at,
        targets=_targets(model, layers, settings.pretrained, settings.scope),
        components=(
            Component("decoder layers", in_layers, compiled=True),
            Component("embeddings, last norm and head", whole - in_layers, compiled=settings.scope == "model"),
        ),
        notes=(note,) if settings.pretrained else (note, random),
        modules=(("model", model),),
        targets_of=partial(_targets, model, layers, settings.pretrained),
    )


def _generation(request: Request) -> Generation | None:
    """None for a prompt that is read whole, after which nothing is written."""
    if request.phase == "generate":
        raise TracekitError("causal-lm has no phase generate: pass --phase prefill or decode")
    if request.phase != "decode":
        if request.cache:
            raise TracekitError("--cache has no effect on prefill: leave it out, or pass --phase decode")
        return None
    return Generation("decode", None, request.cache or "static")


def _targets(
    model: nn.Module, layers: dict[str, nn.Module], pretrained: str | None, scope: str
) -> tuple[CompileTarget, ...]:
    if scope == "model":
        return (CompileTarget("model", model),)
    if not layers:
        raise TracekitError(f"{pretrained} lists no repeated layers: pass --scope model")
    return tuple(CompileTarget(f"model.{name}", layer) for name, layer in layers.items())
