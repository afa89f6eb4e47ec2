"""How fast the host is, told by how long it takes for the same work: on a shared machine it changes within a second."""

from msgspec import Struct

from tracekit.model.bounded import CallMicroseconds


class HostTimes(Struct, frozen=True):
    """How long the host took for the same piece of Python (`capture.host_speed`) around many calls."""

    us: CallMicroseconds  #: The median: the less, the faster.
    low: CallMicroseconds  #: The lower quartile, in microseconds.
    high: CallMicroseconds  #: The upper quartile, in microseconds.

    def __post_init__(self) -> None:
        if not self.low <= self.us <= self.high:
            raise ValueError(f"a median of {self.us} us does not lie between {self.low} and {self.high}")
