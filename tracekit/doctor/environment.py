"""What surrounds a run: Python, the switches of torch.compile, and the folders that others fill."""

from __future__ import annotations

import getpass
import os
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path

from tracekit.doctor.check import Check, ok, problem, skipped, warning
from tracekit.doctor.torch_build import find_torch

OLDEST_PYTHON = (3, 11)
#: The newest that has been tried.
NEWEST_PYTHON = (3, 14)
SWITCHES = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")
GIB = 1 << 30


def check_python_version() -> Check:
    name, version = "python", platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        return problem(
            name, f"{version} is too old", "make a new environment with Python 3.12: python3.12 -m venv .venv"
        )
    if sys.version_info[:2] > NEWEST_PYTHON:
        return warning(name, f"{version} is newer than any tried", "if torch misbehaves: python3.12 -m venv .venv")
    return ok(name, f"{version} at {sys.executable}")


def check_compile_switches() -> Check:
    """Whether the environment turns torch.compile off."""
    name, off = "torch.compile", [switch for switch in SWITCHES if os.environ.get(switch, "0") == "1"]
    if off:
        return problem(name, f"{' and '.join(off)} set: the compiled form would run eager", f"unset {' '.join(off)}")
    return ok(name, "not turned off by the environment")


def check_hugging_face_cache() -> Check:
    name = "hugging face cache"
    try:
        from huggingface_hub.constants import HF_HUB_CACHE
    except ImportError:
        return skipped(name, "huggingface_hub is not installed")
    return _check_folder(name, Path(HF_HUB_CACHE), "HF_HOME")


def check_hugging_face_token() -> Check:
    """Whether there is one for gated models; what it is stays unsaid."""
    name = "hugging face token"
    try:
        from huggingface_hub import get_token
    except ImportError:
        return skipped(name, "huggingface_hub is not installed")
    if os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
        return warning(name, "HF_HUB_OFFLINE is set: --pretrained loads only what is here", "unset HF_HUB_OFFLINE")
    if get_token() is None:
        return warning(name, "none: --pretrained cannot load gated models; random weights need none", "hf auth login")
    return ok(name, "there is one")


def check_inductor_cache() -> Check:
    """Where Inductor keeps what it compiled. A full one makes compilation look shorter than it is the first time."""
    name = "inductor cache"
    if find_torch() is None:
        return skipped(name, "needs torch")
    # As Inductor finds it; its own function would make the folder.
    if chosen := os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        return _check_folder(name, Path(chosen).absolute(), "TORCHINDUCTOR_CACHE_DIR")
    try:
        user = getpass.getuser()
    except (KeyError, ModuleNotFoundError, OSError):
        user = f"uid_{os.getuid()}"
    folder = Path(tempfile.gettempdir()) / ("torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user))
    return _check_folder(name, folder, "TORCHINDUCTOR_CACHE_DIR")


def _check_folder(name: str, folder: Path, variable: str) -> Check:
    """Whether the folder can be written to or be made, how much it holds and how much still fits."""
    existing = next(each for each in (folder, *folder.parents) if each.is_dir())
    if not os.access(existing, os.W_OK | os.X_OK):
        return problem(name, f"{folder} cannot be written to", f"export {variable}=A-FOLDER-OF-YOURS")
    held = f"{bytes_held(folder) / GIB:.1f} GiB" if folder.is_dir() else "not made yet"
    return ok(name, f"{folder}: {held}, {shutil.disk_usage(existing).free / GIB:.0f} GiB free on its disk")


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
