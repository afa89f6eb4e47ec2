"""Room on Python's stack for whatever a form calls, so that its time does not depend on how deep its caller is.

CPython keeps the frames of a thread in chunks of 16 KiB. The frame that does not fit any more begins a chunk, which is
mapped when the frame is entered and unmapped when it is left. A loop that calls across a chunk's end pays for that in
every call: two system calls and a page fault, 7 µs on one machine, some 14 µs beside the threads of torch on another
(python/cpython issue 142183; mended on main and for 3.13 in March 2026, not in 3.11 and 3.12). Which call that is
depends on the depth at which the loop runs. On an H200 compiled BEiT called across such an end 113 to 250 times a call
where `tracekit profile` called it, and took 5.1 to 6.7 ms; where a process that is less deep did it took 3.3 to 3.9 ms
(docs/timing.md).
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

T = TypeVar("T")

#: What the frame asks for, in values of 8 bytes: it takes 512 KiB of the chunk that CPython makes for it, of 1 MiB, and
#: leaves the rest, for which a thousand frames of 60 values are too few. What nobody touches takes no memory.
SLOTS = 2**16


def _call(work: Callable[[], Any]) -> Any:
    return work()


_call_in_large_frame = FunctionType(_call.__code__.replace(co_stacksize=SLOTS), globals(), "_call_in_large_frame")


def call_in_one_chunk(work: Callable[[], T]) -> T:
    """What `work` returns. No call inside comes to a chunk's end, at whatever depth this is called: in this thread, for
    others have stacks of their own, and as long as all frames inside take less than the 512 KiB that are left."""
    result: T = _call_in_large_frame(work)
    return result
