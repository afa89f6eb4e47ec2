"""What the host's clock says of a recording, beside what the profiler wrote. Times are Unix time in ns."""

from msgspec import Struct


class Collection(Struct, frozen=True):
    """A garbage collection of Python's, and the thread it happened on."""

    begin_ns: int
    end_ns: int
    native_id: int  #: The thread by the system's number ...
    ident: int  #: ... and by pthread's, as `threading` has both.


class HostMarks(Struct, frozen=True):
    """`begin_ns`: what ended before it belongs to the start of the profiler's session."""

    begin_ns: int = 0
    steps: tuple[tuple[int, int], ...] = ()  #: When each began and ended, where the recording may not hold it.
    collections: tuple[Collection, ...] = ()
    host_us: tuple[float, ...] = ()  #: How fast the host was in each step (`measure.host`).
    off_cpu_us: tuple[float, ...] = ()  #: How long the calling thread slept or waited in each step, off the CPU.
