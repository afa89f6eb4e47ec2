"""How fast is the host just now, and when did Python collect garbage? What others do on the machine slows it, in turns
of a few calls to seconds.

On shared machines with an H100 or H200 the host was found to take 1.6 times as long in such a turn, for Python and for
launches alike (docs/timing.md): calls that were timed and calls that were recorded are not of one speed. Of garbage the
profiler tells only beside Python stacks, under which compiled code crawls.
"""

import gc
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns, thread_time_ns

from tracekit.model.host_marks import Collection

#: 15 to 30 us: too short to hold up a call, and longer than the clock is coarse.
ADDITIONS = 1000


def host_us() -> float:
    """How long this thread takes for a piece of Python that is always the same, in microseconds."""
    began, total = perf_counter_ns(), 0
    for number in range(ADDITIONS):
        total += number
    return (perf_counter_ns() - began) / 1e3


def has_thread_clock() -> bool:
    """Whether the time that a thread is on a CPU is told so finely that a step has it. A sandbox's may advance by 10 ms
    at a time."""
    began = thread_time_ns()
    host_us()
    return thread_time_ns() > began


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
