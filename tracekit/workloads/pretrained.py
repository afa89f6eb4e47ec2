"""Real weights through `from_pretrained`, with its many errors in one line each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import GatedRepoError, OfflineModeIsEnabled, RepositoryNotFoundError

from tracekit.errors import TracekitError

REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def load_pretrained(kind: Any, source: str, dtype: torch.dtype | None) -> Any:
    """`kind.from_pretrained(source)`, a repository's name or a local folder. `dtype` is None for what has none.

    Raises TracekitError when it cannot be had.
    """
    if not Path(source).is_dir() and not REPOSITORY.fullmatch(source):
        raise TracekitError(f"--pretrained {source} is neither a folder here nor a repository's name (owner/model)")
    try:
        return kind.from_pretrained(source, **({"torch_dtype": dtype} if dtype else {}))
    except OSError as error:
        # huggingface_hub reports everything that is not there as some OSError, often one wrapped in another.
        raise TracekitError(_advice(source, error)) from None
    except ValueError as error:
        # Said of a configuration that is some other model's.
        reason = str(error).strip().splitlines()[0].rstrip(".: ")
        raise TracekitError(f"{source} holds no model for {kind.__name__}: {reason}") from None


def _advice(source: str, error: BaseException) -> str:
    if _was_caused_by(error, GatedRepoError):
        return (
            f"{source} is gated: accept its licence on its Hugging Face page, then `hf auth login`"
            " (or leave --pretrained out: random weights run the same kernels)"
        )
    if _was_caused_by(error, RepositoryNotFoundError):
        return f"{source} is no repository that you can read: check the name, or `hf auth login`"
    if _was_caused_by(error, OfflineModeIsEnabled):
        return f"{source} is not in the cache and HF_HUB_OFFLINE is set: unset it, or pass a folder"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    reason = lines[0].partition(" (")[0].rstrip(".")
    return f"cannot load {source}: {reason}; check the network or pass a folder, or leave --pretrained out"


def _was_caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False
