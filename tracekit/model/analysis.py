"""What one trace says. Field names are those of the JSON contract `tracekit.analysis/1`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from tracekit.model.regions import CompiledRegions

Severity = Literal["info", "warning", "error"]

#: Kernel families, in the order reports list them.
FAMILIES = (
    "gemm",
    "attention",
    "convolution",
    "normalization",
    "pointwise",
    "reduction",
    "copy",
    "triton",
    "communication",
    "memcpy",
    "memset",
    "other",
)

#: Causes of idle time, in the order reports list them.
IDLE_CAUSES = (
    "sync_wait",
    "launch_call",
    "op_dispatch",
    "guards",
    "compile",
    "memory",
    "gc",
    "python",
    "profiler",
    "device",
    "unattributed",
)


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """The trace file: `events` that were read, `bytes` of its JSON, unpacked, and `skipped` events by reason."""

    path: str
    events: int
    bytes: int
    skipped: dict[str, int]


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """Something a reader of the figures must know about the recording. `count` is how many events (or the like) it is
    about, `facts` its figures and names, of JSON's own types. `report/words/health.py` says it in English."""

    code: str
    severity: Severity
    count: int
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """The stretch of time that is analysed. `steps` counts its steps or named spans; 0 when it is the whole trace.

    `span_us` is the length of the stretch: for several devices the longest one's.
    """

    kind: Literal["steps", "span", "whole"]
    steps: int
    span_us: float


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """How one GPU spent the window: busy + idle = span. `name` is None where the trace does not say.

    `outside_us` is the part of busy in which nothing ran but what was launched outside the window's steps. `streams` is
    how many of its streams had work.
    """

    id: int
    name: str | None
    span_us: float
    busy_us: float
    idle_us: float
    idle_fraction: float
    streams: int
    outside_us: float = 0.0


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The figures of the one device, or the sums over devices."""

    span_us: float
    busy_us: float
    idle_us: float
    idle_fraction: float
    outside_us: float = 0.0


@dataclass(frozen=True, slots=True)
class FamilyTime:
    """All kernels (or copies) of one family in the window: `count` of them, `total_us` long together."""

    family: str
    count: int
    total_us: float


@dataclass(frozen=True, slots=True)
class KernelTime:
    """All kernels (or copies) of one name in the window."""

    name: str
    family: str
    count: int
    total_us: float
    mean_us: float

    def __post_init__(self) -> None:
        """Raises ValueError where the time is no number: it could be in no sum."""
        if not math.isfinite(self.total_us):
            raise ValueError(f"{self.name[:200]} took {self.total_us} microseconds, which is no time")


@dataclass(frozen=True, slots=True)
class KernelSummary:
    """Kernels in the window; `short_count` are those under 10 us, `unique` is how many names they have.

    The families add up to `total_us`, and so do the names. `by_name` is largest total first; the JSON's `top` is its
    beginning.
    """

    count: int
    unique: int
    total_us: float
    triton_count: int
    short_count: int
    by_family: tuple[FamilyTime, ...]
    by_name: tuple[KernelTime, ...]


@dataclass(frozen=True, slots=True)
class CopySummary:
    """Memory copies and sets in the window, which are GPU activity but not kernels."""

    memcpy_count: int
    memset_count: int
    total_us: float
    by_name: tuple[KernelTime, ...]


@dataclass(frozen=True, slots=True)
class LaunchSummary:
    """`count` is host API calls that started at least one kernel; one graph launch starts many.

    `graph_launches` are those of whole CUDA graphs among them, which started `kernels_in_graphs`. The launches of
    `unlinked_kernels` were not recorded.
    """

    count: int
    graph_launches: int
    kernels_in_graphs: int
    unlinked_kernels: int


@dataclass(frozen=True, slots=True)
class CauseTime:
    """Idle time in the window that one cause made: `us` in all, parts of so many `gaps`."""

    cause: str
    us: float
    gaps: int


@dataclass(frozen=True, slots=True)
class SyncTime:
    """Synchronising calls of one name in the window; a copy from or to pageable memory is one if it held its caller.

    `idle_after_us` is the length of the idle gaps that began while such a call waited, and that work ended which was
    launched only after it: the GPU ran dry because of the call. `drained` counts these gaps. `where` is the operator,
    module and Python line that most of the calls were made from, as far as recorded.
    """

    call: str
    count: int
    idle_after_us: float
    where: str | None
    drained: int = 0


@dataclass(frozen=True, slots=True)
class HostWork:
    """What the host did for a part of a gap: the innermost recorded event, None where nothing is recorded."""

    name: str | None
    us: float


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the program a host call was made: the innermost of each kind around it, None where not recorded.

    `line` is the Python function's first line (`model.py(12): forward`); one outside of torch is preferred.
    """

    operator: str | None
    module: str | None
    line: str | None

    @property
    def words(self) -> str:
        """`aten::item in Attention_3, model.py(12): forward`."""
        inside = " in ".join(each for each in (self.operator, self.module) if each)
        return ", ".join(each for each in (inside, self.line) if each)


@dataclass(frozen=True, slots=True)
class IdleGap:
    """A maximal stretch in which one GPU had nothing to run. `start_us` counts from the start of the window.

    `causes` divides the gap exactly. `before` is the activity that ended it and `after` the one that preceded it; None
    at the edges of the window. `launched_by` is the host call that launched `before`, `sync` the synchronising call
    under which the GPU ran dry, if that exposed the gap. `host` is what the launching thread did until that launch
    returned, largest first; the rest of the gap is the device's. `where` is where the synchronising call was made, else
    the launch.
    """

    device: int
    start_us: float
    duration_us: float
    causes: dict[str, float]
    after: str | None
    before: str | None
    launched_by: str | None = None
    sync: str | None = None
    host: tuple[HostWork, ...] = ()
    where: Place | None = None


@dataclass(frozen=True, slots=True)
class DeviceIdle:
    """Idle time of one device by cause, in microseconds; it adds up to `DeviceUse.idle_us`."""

    device: int
    causes: dict[str, float]


@dataclass(frozen=True, slots=True)
class StepIdle:
    """Idle time of one step by cause, in microseconds, of all devices; it adds up to `StepUse.idle_us`."""

    index: int
    causes: dict[str, float]


@dataclass(frozen=True, slots=True)
class IdleSummary:
    """Idle time by cause; the causes add up to the idle time of all devices."""

    gap_count: int
    causes: tuple[CauseTime, ...]
    syncs: tuple[SyncTime, ...]
    largest: tuple[IdleGap, ...]
    by_device: tuple[DeviceIdle, ...] = ()
    by_step: tuple[StepIdle, ...] = ()


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of `count` values, in microseconds."""

    count: int
    p10_us: float
    p50_us: float
    p90_us: float
    p99_us: float
    most_us: float


@dataclass(frozen=True, slots=True)
class DeviceQueue:
    """How far the host ran ahead of one GPU in the window.

    An item is what one host call launched: a kernel, a copy, a set, or a whole CUDA graph. It is handed over when its
    call returns, or when it starts if that is earlier, and is in the queue until it starts.

    At each moment of the window the GPU is starved (idle, everything handed over has ended), delayed (idle, something
    handed over has not ended: latency, order among streams, gaps inside a graph), hand to mouth (at work, the queue
    empty) or backed up (at work, something in the queue): the four add up to the window. `starved_items` found
    everything handed over before them ended; of `items`. `delays` are of kernels that were launched one by one, from
    the return of the call to the start (0 where the kernel started before its call had returned); `graph_delays` the
    same of CUDA graphs and their first activity; None where there are none. `kernels_in_graphs` and `unlinked` (whose
    call was not recorded, which are taken for handed over at their start) have no delay. `mean_depth` is the length of
    the queue, averaged over time, `most_depth` the longest it was, `depths` the mean for equal slices of the window.
    """

    device: int
    items: int
    starved_items: int
    kernels_in_graphs: int
    unlinked: int
    delays: Percentiles | None
    graph_delays: Percentiles | None
    starved_us: float
    delayed_us: float
    hand_to_mouth_us: float
    backed_up_us: float
    mean_depth: float
    most_depth: int
    depths: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """From the profiler's memory events, where they were recorded."""

    peak_allocated_bytes: int
    allocation_count: int


@dataclass(frozen=True, slots=True)
class StepUse:
    """One measured call. Wall is from the step's start on the host to its end there or on the GPU, whichever is later.

    Busy is all GPU activity in that time, whoever launched it: where steps overlap on the GPU, so do their busy times.
    Busy and idle are sums over devices, `kernels` and `launches` how many of its own. All but the wall are None for a
    CPU-only recording. `index` is its number in the recording.
    """

    index: int
    wall_us: float
    busy_us: float | None
    idle_us: float | None
    kernels: int | None
    launches: int | None


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """All events of one operator name. `self_us` leaves out the operators it called."""

    name: str
    count: int
    self_us: float


@dataclass(frozen=True, slots=True)
class CpuUse:
    """What a CPU-only recording shows: no launches, no GPU idle. `fused_count` is Inductor's C++ kernels and
    `fused_us` their time; None where compiled code ran whose kernels record no events."""

    span_us: float
    operator_count: int
    operator_us: float
    fused_count: int | None
    fused_us: float | None
    top: tuple[OperatorTime, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What one trace says. GPU parts are None for a CPU-only recording, `cpu` is None for a GPU one.

    `queue` is None too where no activity is joined to the call that launched it, `regions` where no operators were
    recorded.
    """

    trace: TraceFacts
    health: tuple[HealthFinding, ...]
    window: Window
    devices: tuple[DeviceUse, ...]
    gpu: GpuUse | None
    kernels: KernelSummary | None
    copies: CopySummary | None
    launches: LaunchSummary | None
    idle: IdleSummary | None
    memory: MemorySummary | None
    steps: tuple[StepUse, ...]
    cpu: CpuUse | None
    queue: tuple[DeviceQueue, ...] | None = None
    regions: CompiledRegions | None = None
