"""Keeping other people's chatter off the terminal without losing what it says."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

#: What torch's libkineto prints to standard error at the start and end of every recording (torch 2.13).
NOISE = b"USDT:"


@contextmanager
def profiler_noise_left_out() -> Iterator[None]:
    """Lines the profiler's native code writes about itself are dropped; every other line on standard error is passed on
    when the block ends."""
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            held.seek(0)
            kept = b"".join(line for line in held if not line.startswith(NOISE))
            while kept:
                kept = kept[os.write(terminal, kept) :]
            os.close(terminal)


@contextmanager
def warnings_collected(found: list[str]) -> Iterator[None]:
    """Python warnings go into `found`, each once and by its first line, instead of the terminal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
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
