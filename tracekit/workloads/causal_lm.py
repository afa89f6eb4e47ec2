"""A causal language model reading a prompt in one forward, or writing one token after it, as google/gemma-2b's
configuration file has it. Over ranks its heads and MLPs are split, by transformers' own plan for it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
import transformers
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

#: Arguments of the configuration that differ between the sizes, and the length of the prompt; the rest is as published.
FIGURES = "num_hidden_layers hidden_size num_attention_heads head_dim intermediate_size vocab_size".split()
ARCHITECTURES = {
    "full": (18, 2048, 8, 256, 16384, 256_000),
    "small": (4, 2048, 8, 256, 16384, 256_000),
    "tiny": (2, 64, 2, 32, 128, 1000),
}
PROMPT_TOKENS = {"full": 512, "small": 512, "tiny": 32}
#: Of an attention with one head of keys and values, which all heads share: every rank has it whole.
SHARED = ("k_proj", "v_proj")


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The model and its prompts on `device`; over ranks each one's part. Raises TracekitError for `regional` where
    weights name no layers, and for heads that cannot be split."""
    parallel = parallel_here(CAUSAL_LM, request, device)
    ranks = dist.get_world_size() if parallel else None
    generation = _generation(request)
    settings = replace(fill_in(CAUSAL_LM, request, size, device), parallel=parallel, generation=generation)
    model = _model(request, size, device, getattr(torch, settings.dtype), ranks, progress)
    tokens = PROMPT_TOKENS[size]

    def call_at(other: Request) -> Callable[[], object]:
        # The same on every device.
        generator = torch.Generator().manual_seed(settings.seed)
        shape = (other.batch_size, tokens)
        prompts = torch.randint(model.config.vocab_size, shape, generator=generator).to(model.device)
        if generation:
            inputs = {"input_ids": prompts, "attention_mask": torch.ones_like(prompts)}
            # Of keys and values; a single one is every rank's.
            key_heads = max(1, model.config.num_key_value_heads // (ranks or 1))
            return make_call(model, inputs, generation, settings.mode, key_heads)

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


def _model(request: Request, size: str, device: str, dtype: torch.dtype, ranks: int | None, progress: Progress) -> Any:
    """The model, or the part of one of so many ranks."""
    if request.pretrained:
        progress.detail(f"loading {request.pretrained}")
        part = _part_of(load_pretrained(AutoConfig, request.pretrained, None), ranks) if ranks else {}
        model = load_pretrained(AutoModelForCausalLM, request.pretrained, dtype, **part)
        model = model if ranks else model.to(device)
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
        if ranks:
            # Every rank has drawn the same weights.
            part = _part_of(model.config, ranks)
            model = type(model).from_pretrained(None, state_dict=model.state_dict(), dtype=dtype, **part)
    if ranks and model.config.num_key_value_heads == 1:
        for module in model.modules():
            if hasattr(module, "num_key_value_groups"):
                module.num_key_value_groups //= ranks
    model.requires_grad_(False).eval()
    # Random weights may well say that a text has ended.
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = None, 0
    return model


def _part_of(config: Any, ranks: int) -> dict[str, Any]:
    """What `from_pretrained` takes to load this rank's part of the model alone. Raises TracekitError for heads that
    cannot be split, and for a transformers that has no such arguments."""
    check_heads(config, ranks)
    if config.num_key_value_heads == 1:
        plan = config.base_model_tp_plan or {}
        # What no rule names is whole on every rank.
        config.base_model_tp_plan = {name: how for name, how in plan.items() if not name.endswith(SHARED)}
    try:
        from transformers.distributed import DistributedConfig

        return {"config": config, "distributed_config": DistributedConfig(tp_size=ranks, tp_plan="auto")}
    except (ImportError, TypeError):
        raise TracekitError(
            f"transformers {transformers.__version__} cannot split a model so: pip install -c constraints.txt"
            " '.[profile]' in tracekit's checkout"
        ) from None


def check_heads(config: Any, ranks: int) -> None:
    """Raises TracekitError where the heads cannot be split evenly."""
    heads, shared = config.num_attention_heads, config.num_key_value_heads
    if heads % ranks or (shared > 1 and shared % ranks):
        them = f"{heads} heads" + (f" with {shared} of keys and values" if shared != heads else "")
        raise TracekitError(f"--parallel tp splits {them}: pass an --nproc that divides them")


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
