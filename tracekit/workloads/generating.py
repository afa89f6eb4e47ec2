"""Writing text with a model, whole or one phase of it: the calls that are measured.

Phases are called with the very arguments that `generate` passes to the model, caught on their way.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from transformers import Cache, DynamicCache, LogitsProcessor, LogitsProcessorList, StaticCache

from tracekit.model.option import CUDA_GRAPH_MODES
from tracekit.model.run import Generation
from tracekit.torch_internals import copy_into

#: Of `generate`: the prompts, and one token more.
STEPS_CAUGHT = 2


class _NextToken(LogitsProcessor):
    """Says after every token that CUDA graphs may reuse the memory of the one before; changes no logits."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        torch.compiler.cudagraph_mark_step_begin()
        return scores


def _restorer(cache: Cache) -> Callable[[], None]:
    """Puts back what the cache holds now, by reference: tokens that came later are forgotten, not erased."""
    tensors = [(layer, layer.keys, layer.values) for layer in cache.layers]
    # A static layer counts its tokens in a tensor of its own since transformers 5; before, it was told where to write
    # with every call. A dynamic layer makes new tensors with every token.
    counters = [getattr(layer, "cumulative_length", None) for layer in cache.layers]
    lengths = [each for each in counters if isinstance(each, torch.Tensor)]
    then = [each.clone() for each in lengths]

    def restore() -> None:
        for layer, keys, values in tensors:
            layer.keys, layer.values = keys, values
        if lengths:
            copy_into(lengths, then)

    return restore


def make_call(
    model: Any, inputs: Mapping[str, Any], generation: Generation, mode: str, key_heads: int | None = None
) -> Callable[[], object]:
    """One call of the phase. It gives the tokens, prompts included, or the logits of each last position. `key_heads` is
    how many heads of keys and values a rank of several has."""
    cache = _static_cache(model, inputs, generation, key_heads) if generation.cache == "static" else None
    if generation.max_new_tokens is not None:
        tokens = generation.max_new_tokens
        # Growing caches are made of what the graphs gave back: their memory must stay theirs until the call ends.
        marked = mode in CUDA_GRAPH_MODES and cache is not None
        options = {"logits_processor": LogitsProcessorList([_NextToken()])} if marked else {}
        return lambda: _written(model, inputs, tokens, cache, **options)
    # The arguments of each forward of one `generate`, and what puts back what the cache held before it.
    steps: list[tuple[dict[str, Any], Callable[[], None]]] = []

    def catch(_module: nn.Module, _args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        steps.append((dict(kwargs), _restorer(kwargs["past_key_values"])))

    hook = model.register_forward_pre_hook(catch, with_kwargs=True)
    try:
        _written(model, inputs, STEPS_CAUGHT, cache)
    finally:
        hook.remove()
    prefill = generation.phase == "prefill"
    arguments, restore = steps[0 if prefill else 1]

    def call() -> object:
        if prefill and cache is None:
            arguments["past_key_values"] = DynamicCache(config=model.config.get_text_config())
        else:
            restore()
        with torch.no_grad():
            return model(**arguments).logits[:, -1]

    if not prefill:
        # The capture wrote one token beyond the prompts.
        restore()
    return call


def _static_cache(model: Any, inputs: Mapping[str, Any], generation: Generation, key_heads: int | None) -> StaticCache:
    """Room for all tokens, made beforehand: memory that a compiled prefill made would be its own, which CUDA graphs
    cannot keep."""
    config = model.config.get_text_config()
    count, tokens = inputs["input_ids"].shape
    new = generation.max_new_tokens or STEPS_CAUGHT
    cache = StaticCache(config=config, max_cache_len=tokens + new)
    cache.early_initialization(
        batch_size=count,
        num_heads=key_heads or config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        dtype=model.dtype,
        device=model.device,
    )
    return cache


def _written(model: Any, inputs: Mapping[str, Any], tokens: int, cache: Cache | None, **options: Any) -> torch.Tensor:
    if cache is not None:
        cache.reset()
        options["past_key_values"] = cache
    with torch.no_grad():
        # transformers would compile the eager form too, where the cache allows it.
        found: torch.Tensor = model.generate(
            **inputs, max_new_tokens=tokens, do_sample=False, disable_compile=True, **options
        )
    return found
