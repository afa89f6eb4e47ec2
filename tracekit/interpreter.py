"""What Python does beside the program: it looks for garbage, uses some cores, and at its end takes everything apart."""

import atexit
import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection inside: a million fresh objects would set it off a hundred times and free nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def usable_cores() -> int:
    """Of this machine, those that this process may use: Slurm, for one, gives a job a few of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    # More processes than these a pool of Windows cannot wait for.
    return min(os.cpu_count() or 1, 61)


def fill_closed_streams() -> None:
    """Standard streams that this process was started without become the null device, for its children too. A file
    opened later would get such a stream's number, and with it whatever libraries and children write there."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode))


def end_at_once(code: int) -> NoReturn:
    """Ends this process as an interpreter does, but for taking apart what it holds: of a trace that took 40 ms, of
    torch most of a second."""
    # Waits for threads; those of executors are told to end.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # None where the program was started with it closed.
        if stream is not None:
            stream.flush()
    os._exit(code)
