"""How fast the host is at a moment: on a machine that others use too it changes by half, within a second."""

from msgspec import Struct

from tracekit.model.bounded import CallMicroseconds


class HostTimes(Struct, frozen=True):
    """How long the host took for the same piece of Python (`capture.host_speed`) around many calls."""

    us: CallMicroseconds  #: The median.
    low: CallMicroseconds  #: The lower quartile, in microseconds.
    high: CallMicroseconds  #: The upper quartile, in microseconds.

    def __post_init__(self) -> None:
        if not self.low <= self.us <= self.high:
            raise ValueError(f"a median of {self.us} us does not lie between {self.low} and {self.high}")
