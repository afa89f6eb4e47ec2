"""What a run folder is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath


def folder_name(workload: str) -> str:
    """The workload's name as one that every file system takes: `my_model-build` for `src/my_model.py:build`,
    `hf-google-vit-base` for `hf:google/vit-base`."""
    where, colon, function = workload.rpartition(":")
    if colon and where.endswith(".py"):
        workload = f"{PurePath(where).stem}-{function}"
    # A file's name may have 255 bytes; of a long one the end says most.
    plain = re.sub(r"\W*[^\w.-]\W*", "-", workload, flags=re.ASCII).strip("-.")
    return plain[-100:].lstrip("-.") or "own"


def short_names(places: Sequence[str]) -> tuple[str, ...]:
    """Each folder by its own name, and by as many of the folders that it lies in as it takes to tell it from the
    others: `before/vit` and `after/vit`."""
    parts = [Path(place).resolve().parts for place in places]
    for kept in range(1, max(map(len, parts), default=0) + 1):
        names = tuple(str(PurePath(*each[-kept:])) for each in parts)
        if len(set(names)) == len(names):
            return names
    return tuple(places)
