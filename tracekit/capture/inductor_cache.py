"""What Inductor's cache on disk held before a form was first called. The only file that asks Inductor where it lies.

`torch._inductor.runtime.cache_dir_utils.cache_dir` is private to torch; its name was the same from 2.9 to 2.15.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tracekit.errors import TracekitError


def cache_is_empty() -> bool | None:
    """Whether the folder holds no file at all; None where this torch does not say which folder it is.

    Results of autotuning and Triton's kernels lie there too, which no counter of cached graphs knows of.
    """
    try:
        from torch._inductor.runtime.cache_dir_utils import cache_dir
    except ImportError:
        return None
    return not any(path.is_file() for path in Path(cache_dir()).rglob("*"))


def check_cache() -> None:
    """Raises TracekitError where the folder that the user has chosen for Inductor's cache cannot be written to: torch
    makes it as soon as parts of it are loaded, also for a form that is not compiled."""
    variable = "TORCHINDUCTOR_CACHE_DIR"
    folder = os.environ.get(variable)
    if not folder:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TracekitError(
            f"Inductor cannot keep what it compiles in {folder} ({error.strerror}): set {variable} to a folder that "
            "can be written to"
        ) from None
