"""Keeping other libraries quiet."""

from __future__ import annotations

import os


def hush_libraries() -> None:
    """Libraries' own chatter and progress bars stay off the terminal, unless the user has set them otherwise. Heard by
    those that are imported after it."""
    for name, value in {
        "TRANSFORMERS_VERBOSITY": "error",
        "DIFFUSERS_VERBOSITY": "error",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }.items():
        os.environ.setdefault(name, value)
