"""A causal language model whose heads and MLPs are split over ranks, by transformers' own plan for it."""

from typing import Any

import torch
import transformers

from tracekit.errors import TracekitError

#: Of an attention with one head of keys and values, which all heads share: every rank has it whole.
SHARED = ("k_proj", "v_proj")


def check_heads(config: Any, ranks: int) -> None:
    """Raises TracekitError where the heads cannot be split evenly."""
    heads, shared = config.num_attention_heads, config.num_key_value_heads
    if heads % ranks or (shared > 1 and shared % ranks):
        them = f"{heads} heads" + (f" with {shared} of keys and values" if shared != heads else "")
        raise TracekitError(f"--parallel tp splits {them}: pass an --nproc that divides them")


def key_heads_of(config: Any, ranks: int) -> int:
    """How many heads of keys and values each rank has."""
    shared: int = config.num_key_value_heads
    return shared if shared == 1 else shared // ranks


def arguments_for(config: Any, ranks: int) -> dict[str, Any]:
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


def split(model: Any, dtype: torch.dtype, ranks: int) -> Any:
    """This rank's part of a model that every rank has whole, with the same weights."""
    more = arguments_for(model.config, ranks)
    return with_own_heads(
        type(model).from_pretrained(None, state_dict=model.state_dict(), dtype=dtype, **more),
        ranks,
    )


def with_own_heads(model: Any, ranks: int) -> Any:
    """The part, whose attention knows how many of its heads share one of keys and values."""
    if model.config.num_key_value_heads == 1:
        for module in model.modules():
            if hasattr(module, "num_key_value_groups"):
                module.num_key_value_groups //= ranks
    return model
