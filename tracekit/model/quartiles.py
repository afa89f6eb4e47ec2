"""The middle of many times of one kind."""

from msgspec import Struct

from tracekit.model.bounded import CallMicroseconds, Microseconds


class Quartiles(Struct, frozen=True):
    """The median of many times, and between what half of them lie."""

    us: Microseconds  #: The median.
    low: Microseconds  #: The lower quartile, in microseconds.
    high: Microseconds  #: The upper quartile, in microseconds.

    def __post_init__(self) -> None:
        if not self.low <= self.us <= self.high:
            raise ValueError(f"a median of {self.us} us does not lie between {self.low} and {self.high}")


class HostTimes(Quartiles, frozen=True):
    """How long the host took for the same piece of Python (`measure.host_speed`) around many calls: on a shared machine
    that changes within a second."""

    us: CallMicroseconds  #: The median: the less, the faster.
    low: CallMicroseconds  #: The lower quartile, in microseconds.
    high: CallMicroseconds  #: The upper quartile, in microseconds.
