"""How fast the host is, told by how long it takes for the same work: on a shared machine it changes within a second."""

from tracekit.model.bounded import CallMicroseconds
from tracekit.model.quartiles import Quartiles


class HostTimes(Quartiles, frozen=True):
    """How long the host took for the same piece of Python (`measure.host_speed`) around many calls."""

    us: CallMicroseconds  #: The median: the less, the faster.
    low: CallMicroseconds  #: The lower quartile, in microseconds.
    high: CallMicroseconds  #: The upper quartile, in microseconds.
