"""Real weights through `from_pretrained`, with its many errors in one line each."""

from __future__ import annotations

from typing import Any

import torch
from huggingface_hub.errors import GatedRepoError, HFValidationError, OfflineModeIsEnabled, RepositoryNotFoundError

from tracekit.errors import TracekitError


def load_pretrained(kind: Any, source: str, dtype: torch.dtype) -> Any:
    """`kind.from_pretrained(source)`, a repository's name or a local folder.

    Raises TracekitError when it cannot be had.
    """
    try:
        return kind.from_pretrained(source, torch_dtype=dtype)
    except GatedRepoError:
        raise TracekitError(
            f"{source} is gated: accept its licence on its Hugging Face page, then `hf auth login`"
            " (or leave --pretrained out: random weights run the same kernels)"
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise TracekitError(
            f"{source} is neither a folder nor a repository you can read; check the name, or `hf auth login`"
        ) from None
    except OfflineModeIsEnabled:
        raise TracekitError(
            f"{source} is not in the cache and HF_HUB_OFFLINE is set; unset it, or pass a folder"
        ) from None
    except OSError as error:
        # huggingface_hub reports no network as several kinds of OSError.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise TracekitError(
            f"cannot load {source} ({reason}); check the network or pass a folder, or leave --pretrained out"
        ) from None
