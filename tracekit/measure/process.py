"""What a run needs of its process: other people's chatter kept off the terminal, and room on Python's stack."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import TypeVar

from tracekit.files import log_bounded

T = TypeVar("T")

#: What the large frame asks for, in values of 8 bytes: it takes 512 KiB of the chunk of 1 MiB that CPython makes for
#: it, and leaves the rest, for which a thousand frames of 60 values are too few. What nobody touches takes no memory.
SLOTS = 2**16


@contextmanager
def output_kept(path: Path) -> Iterator[None]:
    """Whatever this process and its children print, from Python or native code, goes into the file `path`. Inductor's
    autotuning prints thousands of lines, the profiler prints about itself; people look at progress, and programs read
    standard output. A long file keeps its beginning and its end, one without a line is removed."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = [(number, os.dup(number)) for number in (1, 2)]
    with path.open("ab") as file:
        for number, _ in before:
            os.dup2(file.fileno(), number)
    try:
        with log_bounded(path):
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
def warnings_collected() -> Iterator[list[str]]:
    """Python warnings, instead of on the terminal in the list when the block is over: each once, by its first line."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        # Each place once, as Python does: what a model warns of in every call would cost every call.
        warnings.simplefilter("default")
        # Said of every recording by torch.profiler, and of no interest to one that is only exported.
        warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
        # For the authors of the libraries, not for the reader of a report.
        for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        try:
            yield found
        finally:
            found += dict.fromkeys(str(warning.message).strip().partition("\n")[0] for warning in caught)


def call_in_one_chunk(work: Callable[[], T]) -> T:
    """What `work` returns. Its time does not depend on how deep its caller is.

    CPython keeps the frames of a thread in chunks of 16 KiB. The frame that does not fit any more begins a chunk, which
    is mapped when the frame is entered and unmapped when it is left. A loop that calls across a chunk's end pays for
    that in every call: two system calls and a page fault, 7 to 14 µs (python/cpython issue 142183; mended on main and
    for 3.13 in March 2026, not in 3.11 and 3.12). On an H200 compiled BEiT took 5.1 to 6.7 ms a call where it crossed
    such an end, and 3.3 to 3.9 ms elsewhere (docs/timing.md). No call inside `work` comes to a chunk's end: in this
    thread, and as long as all frames inside take less than the 512 KiB that are left.
    """
    in_large_frame = FunctionType((lambda call: call()).__code__.replace(co_stacksize=SLOTS), {})
    result: T = in_large_frame(work)
    return result
