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
    """Raises TracekitError where Inductor could not write what it compiles."""
    try:
        from torch._inductor.runtime.cache_dir_utils import cache_dir
    except ImportError:
        return
    # It makes the folder.
    variable = "TORCHINDUCTOR_CACHE_DIR"
    try:
        folder = cache_dir()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        place = os.environ.get(variable) or error.filename
        raise TracekitError(
            f"Inductor cannot keep what it compiles in {place} ({error.strerror}): set {variable} to a folder that "
            "can be written to"
        ) from None
