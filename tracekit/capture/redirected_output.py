"""Keeping other people's chatter off the terminal without losing what it says."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def output_kept(path: Path) -> Iterator[None]:
    """Whatever this process and its children print, from Python or native code, goes into the file `path`.

    Inductor's autotuning prints thousands of lines, the profiler prints about itself; people look at progress, and
    programs read standard output. A file without a line is removed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    before = [(number, os.dup(number)) for number in (1, 2)]
    with path.open("ab") as file:
        for number, _ in before:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, saved in before:
            os.dup2(saved, number)
            os.close(saved)
        if path.exists() and not path.stat().st_size:
            path.unlink()


@contextmanager
def warnings_collected(found: list[str]) -> Iterator[None]:
    """Python warnings go into `found`, each once and by its first line, instead of the terminal."""
    with warnings.catch_warnings(record=True) as caught:
        # Each place once, as Python does: what a model warns of in every call would cost every call.
        warnings.simplefilter("default")
        # Said of every recording by torch.profiler, and of no interest to one that is only exported.
        warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
        # For the authors of the libraries, not for the reader of a report.
        for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        try:
            yield
        finally:
            for warning in caught:
                line = str(warning.message).strip().partition("\n")[0]
                if line not in found:
                    found.append(line)
