"""Where Inductor keeps what it compiled. A full one makes compilation look shorter than it is the first time."""

from __future__ import annotations

import getpass
import os
import re
import tempfile
from pathlib import Path

from tracekit.doctor.accelerator import find_torch
from tracekit.doctor.check import Check, ok, problem, skipped
from tracekit.doctor.folders import described, is_writable

NAME = "inductor cache"


def check_inductor_cache() -> Check:
    if find_torch() is None:
        return skipped(NAME, "needs torch")
    folder = _folder()
    if not is_writable(folder):
        return problem(NAME, f"{folder} cannot be written to", "export TORCHINDUCTOR_CACHE_DIR=A-FOLDER-OF-YOURS")
    return ok(NAME, described(folder))


def _folder() -> Path:
    """As Inductor finds it; its own function would make the folder."""
    chosen = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    try:
        user = getpass.getuser()
    except (KeyError, ModuleNotFoundError, OSError):
        user = f"uid_{os.getuid()}"
    return Path(tempfile.gettempdir()) / ("torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user))
