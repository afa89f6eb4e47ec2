"""Folders that others fill: how full they are, and whether they can be written to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

GIB = 1 << 30


def nearest_existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(each for each in (folder, *folder.parents) if each.is_dir())


def is_writable(folder: Path) -> bool:
    """Whether the folder can be written to, or be made."""
    return os.access(nearest_existing(folder), os.W_OK | os.X_OK)


def described(folder: Path) -> str:
    """Where it is, how much it holds and how much still fits."""
    free = shutil.disk_usage(nearest_existing(folder)).free
    held = f"{bytes_held(folder) / GIB:.1f} GiB" if folder.is_dir() else "not made yet"
    return f"{folder}: {held}, {free / GIB:.0f} GiB free on its disk"


def bytes_held(folder: Path) -> int:
    """The files' sizes added up; a link counts as itself, not as what it points at."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).lstat().st_size
            except FileNotFoundError:
                # Caches are tidied by others while they are read.
                continue
    return total
