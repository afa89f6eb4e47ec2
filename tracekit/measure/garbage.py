"""When Python collected garbage: the profiler says so only beside Python stacks, under which compiled code crawls."""

import gc
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tracekit.model.host_marks import Collection


@contextmanager
def collections_noted(clock: Callable[[], int] = time.time_ns) -> Iterator[list[Collection]]:
    """The list grows with each collection of this process, on whatever thread, until the block ends. `clock` tells the
    moments, in nanoseconds."""
    noted: list[Collection] = []
    process, began_ns = os.getpid(), 0

    # Python never collects on two threads at once, nor inside this.
    def note(phase: str, _facts: dict[str, int]) -> None:
        nonlocal began_ns
        if phase == "start":
            began_ns = clock()
        elif began_ns and os.getpid() == process:
            noted.append(Collection(began_ns, clock(), threading.get_native_id(), threading.get_ident()))

    gc.callbacks.append(note)
    try:
        yield noted
    finally:
        # Whatever the program did to the list meanwhile.
        gc.callbacks[:] = [callback for callback in gc.callbacks if callback is not note]


def collecting_us(collections: Iterable[Collection], begin_ns: int, end_ns: int) -> float:
    """How much of the time between two moments they took. Whatever thread collects, Python's others wait."""
    return sum(max(min(each.end_ns, end_ns) - max(each.begin_ns, begin_ns), 0) for each in collections) / 1e3
