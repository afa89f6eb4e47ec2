"""What recording adds to the host's time, by kind of event. Field names are those of `run.json`."""

from msgspec import Struct

from tracekit.model.bounded import CallMicroseconds, Microseconds


class Cost(Struct, frozen=True):
    """Of one event."""

    us: Microseconds  #: The median of what the host took more than without the profiler.
    low: Microseconds  #: The smallest lower quartile of a loop, in microseconds.
    high: Microseconds  #: The largest upper quartile of a loop, in microseconds.

    def __post_init__(self) -> None:
        if not self.low <= self.us <= self.high:
            raise ValueError(f"a cost of {self.us} us does not lie between {self.low} and {self.high}")


class EventCosts(Struct, frozen=True):
    """What one kind of recording adds to each event. None of CUDA graphs: none could be captured to measure it."""

    launch: Cost  #: A kernel that is launched by itself, with the operator that launches it.
    copy: Cost  #: A copy, with its operator.
    operator: Cost  #: An operator that launches nothing.
    span: Cost  #: A `record_function` around something.
    sync: Cost  #: A wait for the GPU, without the launch before it.
    driver_launch: Cost | None = None  #: The launch of a Triton kernel. None where no Triton kernel was launched.
    graph_launch: Cost | None = None  #: The launch of a CUDA graph, without its kernels.
    graph_node: Cost | None = None  #: Each kernel of a CUDA graph.
    library_launch: Cost | None = None  #: A matrix product's launch, with its operator. None: not measured.


class RecordingCost(Struct, frozen=True):
    """Measured in the process that recorded, on its GPU."""

    light: EventCosts  #: In a recording of kernels and API calls.
    rich: EventCosts  #: In one of operators and shapes too.
    host_us: CallMicroseconds | None = None  #: How fast the host is whose costs these are, as `FormResult.host` says of
    #: timed calls.
