"""What one trace says. Field names are those of the JSON contract `tracekit.analysis/1`."""

import math
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr

from tracekit.model.compilation import CompiledRegions
from tracekit.model.statement import Severity, Statement

#: Kernel families, in the order reports list them.
FAMILIES = (
    *("gemm", "attention", "convolution", "normalization", "pointwise", "reduction", "copy", "triton"),
    *("communication", "memcpy", "memset", "other"),
)

#: Causes of idle time, in the order reports list them.
IDLE_CAUSES = (
    *("sync_wait", "launch_call", "op_dispatch", "compiled_wrapper", "guards", "compile", "memory", "gc", "python"),
    *("profiler", "launch_latency", "device", "unattributed"),
)
#: What the GPU takes to begin what was launched, alone or behind other work.
OF_THE_GPU = ("launch_latency", "device")
#: What CUDA graphs do away with. Guards are checked before each, and the user's own Python runs between them. Gaps
#: between queued kernels stay (H200: 180 and 224 us of a causal LM's call, without graphs and with them).
OF_LAUNCHING = ("launch_call", "op_dispatch", "compiled_wrapper", "launch_latency")
#: `profiler` is no idle time of an unprofiled call; all other causes but the GPU's own are the host's.
NOT_THE_HOST = ("profiler", *OF_THE_GPU)


def shrink_idle(recorded_us: Mapping[str, float], true_us: float) -> dict[str, float]:
    """Idle time by cause, in microseconds, made to add up to `true_us`; to less, where less was recorded.

    Recording slows the host and hardly touches the GPU (docs/idle.md). So the profiler's own events go, and then every
    cause of the host shrinks by the same factor; what the GPU waited for itself shrinks only when nothing of the host's
    is left. That the host's causes shrink alike is an assumption: a recording does not tell which of them it
    lengthened. Nothing is ever lengthened: idle time that no recording shows has no cause.
    """
    left = {cause: 0.0 if cause == "profiler" else us for cause, us in recorded_us.items()}
    over = math.fsum(left.values()) - true_us
    host = [cause for cause in left if cause not in NOT_THE_HOST]
    for causes in (host, [cause for cause in left if cause in OF_THE_GPU]):
        have = math.fsum(left[cause] for cause in causes)
        if over > 0 and have:
            left |= {cause: left[cause] * max(1 - over / have, 0.0) for cause in causes}
            over -= have
    return left


class TraceFacts(Struct, frozen=True):
    """The trace file."""

    path: str
    events: int  #: Events that were read.
    bytes: int  #: Bytes of its JSON, unpacked.
    skipped: dict[str, int]  #: Events that were skipped, by reason.


class HealthFinding(Struct, frozen=True):
    """Something a reader of the figures must know about the recording, as JSON holds it."""

    code: str
    severity: Severity
    count: int  #: How many events (or the like) it is about.
    facts: dict[str, Any]  #: Figures and names, with units in their keys.
    message: str


class Health(Statement):
    """Something a reader of the figures must know about the recording."""

    as_written = HealthFinding
    beside = ("count",)
    count: int

    def written(self) -> HealthFinding:
        return HealthFinding(self.code, self.severity, self.count, self.facts, self.long())


WindowKind = Literal["steps", "span", "whole"]


class Window(Struct, frozen=True):
    """The stretch of time that is analysed."""

    kind: WindowKind
    steps: int  #: Its steps or named spans; 0 when it is the whole trace.
    span_us: float  #: Length of the stretch: for several devices the longest one's.


class DeviceUse(Struct, frozen=True):
    """How one GPU spent the window: busy + idle = span."""

    id: int
    name: str | None  #: None where the trace does not say.
    span_us: float
    busy_us: float
    idle_us: float
    idle_fraction: float
    streams: int  #: How many of its streams had work.
    outside_us: float = 0.0  #: The part of busy that only work from outside the window's steps had.


class GpuUse(Struct, frozen=True):
    """The figures of the one device, or the sums over devices."""

    span_us: float
    busy_us: float
    idle_us: float
    idle_fraction: float
    outside_us: float = 0.0  #: As of a device.


class CommunicationUse(Struct, frozen=True):
    """Kernels that exchange data with other GPUs, the time included that they wait for late ranks: one rank's recording
    cannot tell that from transfer. `compute_us` and `exposed_us` add up to the GPU's busy time."""

    kernels: int  #: How many.
    total_us: float  #: Their lengths, added up.
    compute_us: float  #: Busy time with any other work.
    exposed_us: float  #: Busy time with communication alone.
    rank: int | None  #: Of this recording; None where it does not say.
    world_size: int | None  #: How many ranks there were; None where it does not say.

    @property
    def may_wait(self) -> bool:
        """Whether waiting for other ranks may be in it: not where there were none."""
        return self.world_size != 1


class FamilyTime(Struct, frozen=True):
    """All kernels (or copies) of one family in the window."""

    family: str
    count: int
    total_us: float
    triton_count: int = 0  #: Of these Inductor wrote in Triton: of `gemm` those from templates.
    triton_us: float = 0.0


class KernelTime(Struct, frozen=True):
    """All kernels (or copies) of one name in the window."""

    name: str
    family: str
    count: int
    total_us: float
    mean_us: float

    def __post_init__(self) -> None:
        """Raises ValueError where the time is no number: it could be in no sum."""
        if not math.isfinite(self.total_us):
            raise ValueError(f"{self.name[:200]} took {self.total_us} microseconds, which is not a duration")


class KernelSummary(Struct, frozen=True):
    """Kernels in the window. The families add up to `total_us`, and so do the names."""

    count: int
    unique: int  #: How many names they have.
    total_us: float
    triton_count: int
    short_count: int  #: Those under 10 us.
    by_family: tuple[FamilyTime, ...]
    by_name: tuple[KernelTime, ...] = field(name="top")  #: Largest total first; JSON holds the first of them.


class CopySummary(Struct, frozen=True):
    """Memory copies and sets in the window, which are GPU activity but not kernels."""

    memcpy_count: int
    memset_count: int
    total_us: float
    by_name: tuple[KernelTime, ...] = field(name="top")


class LaunchSummary(Struct, frozen=True):
    """Calls that put work on the GPU."""

    count: int  #: Host API calls that started at least one kernel; one graph launch starts many.
    graph_launches: int  #: Those of whole CUDA graphs among them.
    kernels_in_graphs: int  #: Kernels that graph launches started.
    unlinked_kernels: int  #: Kernels whose launch was not recorded.


class CauseTime(Struct, frozen=True):
    """Idle time in the window that one cause made."""

    cause: str
    us: float  #: All of it, in microseconds.
    gaps: int  #: How many gaps it has a part in.


class Place(Struct, frozen=True):
    """Where in the program a host call was made: the innermost of each kind around it, None where not recorded."""

    operator: str | None
    module: str | None
    line: str | None  #: The function's first line, of one outside torch if any: `model.py(12): forward`.

    @property
    def words(self) -> str:
        """`aten::item in Attention_3, model.py(12): forward`."""
        inside = " in ".join(each for each in (self.operator, self.module) if each)
        return ", ".join(each for each in (inside, self.line) if each)


#: So many lines that wait are named.
MOST_LINES = 3


def made_at_words(place: Place | None, lines: Mapping[str, int], *, in_eager_code: bool) -> str:
    """`aten::copy_ in Head_0, in eager code at model.py:14 (2), model.py:12`; empty where nothing is known."""
    told = [place.words] if place else []
    if lines:
        named = [f"{line} ({n}x)" if n > 1 else line for line, n in list(lines.items())[:MOST_LINES]]
        unnamed = len(lines) - MOST_LINES
        more = f" and {unnamed} {'line' if unnamed == 1 else 'lines'} more" if unnamed > 0 else ""
        told.append(f"{'in eager code ' if in_eager_code else ''}at {', '.join(named)}{more}")
    return ", ".join(told)


class SyncTime(Struct, frozen=True):
    """Synchronising calls of one name in the window; a copy from or to pageable memory is one if it held its caller.
    Idle time after one is of gaps that began while it waited and that work ended which was launched only after it: the
    GPU ran dry because of the call."""

    call: str
    count: int
    idle_after_us: float  #: Idle gaps that began during such calls and ended with work launched after.
    place: Place | None  #: Where most of the calls were made, as far as recorded.
    drained: int = 0  #: How many gaps `idle_after_us` is of.
    lines: dict[str, int] = field(default_factory=dict)  #: Eager code's lines that wait so, and how often.
    in_eager_code: bool = False  #: The lines are of the eager form, the calls of a compiled one.
    where: str | None = None  #: Place and lines in words; None where not recorded.

    def __post_init__(self) -> None:
        words = made_at_words(self.place, self.lines, in_eager_code=self.in_eager_code)
        force_setattr(self, "where", words or None)


class HostWork(Struct, frozen=True):
    """What the host did for a part of a gap."""

    name: str | None  #: The innermost recorded event; None where nothing is recorded.
    us: float  #: Microseconds.


class IdleGap(Struct, frozen=True):
    """A maximal stretch in which one GPU had nothing to run."""

    device: int
    start_us: float  #: From the start of the window.
    duration_us: float
    causes: dict[str, float]  #: Microseconds by cause; they divide the gap exactly.
    after: str | None  #: The activity that preceded it; None at the window's edge.
    before: str | None  #: The activity that ended it; None at the window's edge.
    launched_by: str | None = None  #: The host call that launched `before`.
    sync: str | None = None  #: The synchronising call under which the GPU ran dry, if one was.
    host: tuple[HostWork, ...] = ()  #: What the launching thread did, largest first.
    where: Place | None = None  #: Where the synchronising call was made, else the launch.


class DeviceIdle(Struct, frozen=True):
    """Idle time of one device; it adds up to `DeviceUse.idle_us`."""

    device: int
    causes: dict[str, float]  #: Microseconds by cause.


class StepIdle(Struct, frozen=True):
    """Idle time of one step, of all devices; it adds up to `StepUse.idle_us`."""

    index: int
    causes: dict[str, float]  #: Microseconds by cause.


class IdleSummary(Struct, frozen=True):
    """Idle time by cause; the causes add up to the idle time of all devices."""

    gap_count: int
    causes: tuple[CauseTime, ...]
    syncs: tuple[SyncTime, ...]
    largest: tuple[IdleGap, ...]
    by_device: tuple[DeviceIdle, ...] = ()
    by_step: tuple[StepIdle, ...] = ()


class Percentiles(Struct, frozen=True):
    """Of delays."""

    count: int  #: How many values.
    p10_us: float
    p50_us: float
    p90_us: float
    p99_us: float
    most_us: float


class DeviceQueue(Struct, frozen=True):
    """How far the host ran ahead of one GPU in the window.

    An item is what one host call launched: a kernel, a copy, a set, or a whole CUDA graph. It is handed over when
    its call returns, or when it starts if that is earlier, and is in the queue until it starts. At each moment of
    the window the GPU is starved, delayed, hand to mouth or backed up: the four add up to the window.
    """

    device: int
    items: int  #: How many items.
    starved_items: int  #: Those that found everything handed over before them ended.
    kernels_in_graphs: int  #: They have no delay.
    unlinked: int  #: Of no recorded call: taken for handed over at their start, without a delay.
    delays: Percentiles | None  #: From launch to start, of kernels launched one by one; 0: before.
    graph_delays: Percentiles | None  #: The same of CUDA graphs and their first activity.
    starved_us: float  #: Idle, everything handed over has ended.
    delayed_us: float  #: Idle, something handed over has not ended: latency, order among streams.
    hand_to_mouth_us: float  #: At work, the queue empty.
    backed_up_us: float  #: At work, something in the queue.
    mean_depth: float  #: Length of the queue, averaged over time.
    most_depth: int  #: The longest it was.
    depths: tuple[float, ...]  #: The mean for equal slices of the window.


class MemorySummary(Struct, frozen=True):
    """From the profiler's memory events, where they were recorded."""

    peak_allocated_bytes: int
    allocation_count: int


class StepUse(Struct, frozen=True):
    """One measured call. Busy and idle are sums over devices; all but the wall are None for a CPU-only recording."""

    index: int  #: Its number in the recording.
    wall_us: float  #: From its start on the host to its end there or on the GPU, whichever is later.
    busy_us: float | None  #: All GPU activity in that time, also of steps that overlap it.
    idle_us: float | None
    kernels: int | None  #: How many it launched.
    launches: int | None  #: How many of its own.


class OperatorTime(Struct, frozen=True):
    """All events of one operator name."""

    name: str
    count: int
    self_us: float  #: Without the operators it called.


class CpuUse(Struct, frozen=True):
    """What a CPU-only recording shows: no launches, no GPU idle."""

    span_us: float
    operator_count: int
    operator_us: float
    compiled_wrapper_us: float  #: Of what calls compiled code: its own time, without operators and C++ kernels.
    fused_count: int | None  #: Inductor's C++ kernels; None where those that ran record no events.
    fused_us: float | None  #: Their time; None likewise.
    top: tuple[OperatorTime, ...]


class Analysis(Struct, frozen=True):
    """What one trace says. GPU parts are None for a CPU-only recording."""

    trace: TraceFacts
    health: tuple[Health, ...]
    window: Window
    devices: tuple[DeviceUse, ...]
    gpu: GpuUse | None
    kernels: KernelSummary | None
    copies: CopySummary | None
    launches: LaunchSummary | None
    idle: IdleSummary | None
    memory: MemorySummary | None
    steps: tuple[StepUse, ...]
    cpu: CpuUse | None  #: None for a GPU recording.
    queue: tuple[DeviceQueue, ...] | None = None  #: None too where no activity is joined to its launch.
    regions: CompiledRegions | None = None  #: None where no operators were recorded.
    communication: CommunicationUse | None = None  #: None where no kernel communicated.
