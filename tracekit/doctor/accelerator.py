"""torch and its GPU, where there are any. Checks that need them ask here first."""

from __future__ import annotations

import warnings
from types import ModuleType


def find_torch() -> ModuleType | None:
    """The torch package, or None where it is missing or does not load (the torch check says why)."""
    try:
        import torch
    except (ImportError, OSError):
        return None
    return torch


def why_no_gpu() -> str | None:
    """Why a check that needs a GPU has nothing to look at; None where torch sees a GPU."""
    torch = find_torch()
    if torch is None:
        return "needs torch"
    # A driver too old or a broken one warns here; the GPU check tells of it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return None if torch.cuda.is_available() else "no GPU"
