"""What a run folder is called."""

from __future__ import annotations

import re
from pathlib import PurePath


def folder_name(workload: str) -> str:
    """The workload's name as one that every file system takes: `my_model-build` for `src/my_model.py:build`,
    `hf-google-vit-base` for `hf:google/vit-base`."""
    where, colon, function = workload.rpartition(":")
    if colon and where.endswith(".py"):
        workload = f"{PurePath(where).stem}-{function}"
    # A file's name may have 255 bytes; of a long one the end says most.
    plain = re.sub(r"\W*[^\w.-]\W*", "-", workload, flags=re.ASCII).strip("-.")
    return plain[-100:].lstrip("-.") or "own"
