"""Where Hugging Face keeps what it downloads, and whether it may download gated models."""

from __future__ import annotations

import os
from pathlib import Path

from tracekit.doctor.check import Check, ok, problem, skipped, warning
from tracekit.doctor.folders import described, is_writable

CACHE = "hugging face cache"
TOKEN = "hugging face token"


def check_cache() -> Check:
    try:
        from huggingface_hub.constants import HF_HUB_CACHE
    except ImportError:
        return skipped(CACHE, "huggingface_hub is not installed")
    folder = Path(HF_HUB_CACHE)
    if not is_writable(folder):
        return problem(CACHE, f"{folder} cannot be written to", "export HF_HOME=A-FOLDER-OF-YOURS")
    return ok(CACHE, described(folder))


def check_token() -> Check:
    """Whether there is one; what it is stays unsaid."""
    try:
        from huggingface_hub import get_token
    except ImportError:
        return skipped(TOKEN, "huggingface_hub is not installed")
    if os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
        return warning(TOKEN, "HF_HUB_OFFLINE is set: --pretrained loads only what is here", "unset HF_HUB_OFFLINE")
    if get_token() is None:
        return warning(TOKEN, "none: --pretrained cannot load gated models; random weights need none", "hf auth login")
    return ok(TOKEN, "there is one")
