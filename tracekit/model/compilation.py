"""What torch.compile said of itself while a form was run: what it compiled, what it could not, and what that cost."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from tracekit.model.bounded import CallMicroseconds, Count, Many, Microseconds, Seconds, Text
from tracekit.model.note import Noted


class RegionTime(Struct, frozen=True):
    """All runs of one compiled frame in the window."""

    id: str | None  #: Its compilation's (`1/2`); None where the event names none.
    count: int
    host_us: float  #: From entry to return.
    outside_us: float  #: Python and operators between its graphs and inner regions.
    idle_us: float | None = None  #: The part of `outside_us` in which no GPU had work; None where none was recorded.


class CompiledRegions(Struct, frozen=True):
    """What ran in compiled code, in the window as recorded; times are sums over it."""

    regions: tuple[RegionTime, ...]
    graphs: int  #: Calls of compiled graphs.
    lookups: int  #: Those in which guards were checked.
    guards_us: float  #: Host time of finding the compiled code that fits (`TorchDynamo Cache Lookup`).
    entry_us: float  #: Host time of the steps before its first operator.
    gpu_us: float | None  #: GPU time launched from compiled graphs, without communication; None if unknown.
    all_gpu_us: float | None  #: All GPU time, over all streams, without communication.
    unlinked_us: float | None  #: GPU time, within `all_gpu_us`, whose launch was not recorded.
    activities: int | None  #: How many `gpu_us` is of.
    all_activities: int | None  #: How many `all_gpu_us` is of.
    idle_us: float | None = None  #: GPU idle time, over all GPUs, that ended with work of `gpu_us`.

    @property
    def count(self) -> int:
        """How often a region was entered."""
        return sum(region.count for region in self.regions)

    @property
    def gpu_share(self) -> float | None:
        """The share of GPU time that compiled code launched, 0 to 1."""
        return self.gpu_us / self.all_gpu_us if self.gpu_us is not None and self.all_gpu_us else None


#: When a call was made: to warm up, in timing, or later, for a recording.
CallPhase = Literal["warm-up", "timed", "later"]
PhaseName = Literal["dynamo", "aot_autograd", "inductor", "triton", "autotune", "cuda_graphs"]
CacheName = Literal["fx_graph", "aot_autograd", "templates"]
FallbackKind = Literal["recompile_limit", "skipped", "error"]


class FailedGuard(Struct, frozen=True):
    """A check that compiled code did not pass, so that it was compiled again."""

    version: Text  #: The compilation that holds the check (`0/0`).
    text: Text  #: The check in torch's words.

    @property
    def check(self) -> str:
        """What was checked, in torch's words."""
        return self.text.partition("\n")[0].partition("  #")[0].strip()


class FrameCompilation(Struct, frozen=True):
    """A frame that was compiled, or tried to. None: torch did not tell."""

    id: Text  #: What recordings call its region: frame 1, third time is `1/2`.
    function: Text | None
    where: Text | None  #: The `file:line` the function begins at.
    phase: CallPhase
    call: Count  #: Which of the form's calls in that phase, from 1; 0 is outside of any.
    seconds: Seconds | None
    guards: Count | None  #: Checks of a run of the compiled code.
    because: Many[FailedGuard] = ()  #: The checks that failed before it was compiled again, latest first.
    inputs: dict[Text, Text] | None = None  #: Their sizes (`x`: `4 x 8`; a size `s77` is any).


class GraphBreak(Struct, frozen=True):
    """A line at which compiled code ends, and is gone on with after Python has run it. What it costs per step is known
    only once the recording has been read: None where that shows none of its frames."""

    where: Text | None
    function: Text | None
    reason: Text
    explanation: Text | None
    hint: Text | None
    code: Text | None  #: torch's number of the reason (`gb0059`).
    frames: Many[Text]  #: The compilations that ended there.
    per_step_us: Microseconds | None = None  #: Host time outside graphs there: an estimate from above.
    called_from: Text | None = None  #: The line of the module that led there, where it is another.
    idle_per_step_us: Microseconds | None = None  #: The part of it in which the GPU was idle; None without a GPU.
    steers_branch: bool = False  #: Whether a value is read there that decides which code runs next.

    @property
    def cost_us(self) -> float | None:
        """What it adds to a call at most, as recorded: where there is a GPU, queued work hides the rest."""
        return self.per_step_us if self.idle_per_step_us is None else self.idle_per_step_us

    @property
    def line(self) -> str | None:
        """`helper.py:12, called from model.py:40`."""
        if self.where is None or self.called_from is None:
            return self.where
        return f"{self.where}, called from {self.called_from}"

    @property
    def is_torchs(self) -> bool:
        """Whether it stands in torch's own code (an optimizer's step, DistributedDataParallel), which nobody mends from
        without."""
        return (self.where or "").startswith("torch/")


#: Where torch keeps what spreads a model over ranks.
SHARDING = "torch/distributed/"


class EagerFallback(Struct, frozen=True):
    """A frame that runs eager though it was to be compiled, without an error: the limit of recompilations was reached,
    Dynamo passed it over, or its compilation failed and errors are suppressed."""

    kind: FallbackKind
    function: Text | None
    where: Text | None  #: The `file:line` the function begins at.
    reason: Text  #: Where a graph break led to it, that of the break first.
    line: Text | None = None  #: Where Dynamo gave it up, or broke its graph before; with the line that led there.

    @property
    def is_of_sharding(self) -> bool:
        return any((place or "").startswith(SHARDING) for place in (self.where, self.line))


#: Kinds of what Dynamo cannot compile.
NotCompiledCode = Literal[
    "scalar_read",
    "data_dependent_branch",
    "data_dependent_shape",
    "untraceable_call",
    "compiler_disabled",
    "graph_break_call",
    "generator",
    "context_manager",
    "failed",
    "other",
]
#: Characters of a line of code that are kept.
LONGEST_LINE = 200


class NotCompiled(Struct, frozen=True):
    """Why a function was not compiled, where torch.compile made no graph of anything. None: torch did not tell."""

    code: NotCompiledCode
    reason: Text  #: In torch's words.
    where: Text | None = None  #: The user's line, `file:line`.
    function: Text | None = None
    line: Text | None = None  #: The code of that line.
    called_from: Text | None = None  #: The line of the module that led there, where it is another.
    inside: Literal["loop", "context_manager"] | None = None  #: Around the line: there Dynamo cannot go on.
    in_block: bool = False  #: In a block that repeats: compiled by itself it would be skipped too.
    explanation: Text | None = None
    hint: Text | None = None


class PhaseTime(Struct, frozen=True):
    """Time of one phase of compiling."""

    phase: PhaseName
    seconds: Seconds  #: Without the phases inside of it.


class CacheUse(Struct, frozen=True):
    """How often one of torch's caches was asked."""

    cache: CacheName
    hits: Count  #: Found what they asked for.
    misses: Count  #: Did not.
    bypasses: Count  #: Of what it cannot hold.


class CudaGraphSkip(Struct, frozen=True):
    """Why compiled code was not made a CUDA graph."""

    reason: Text | None  #: None where torch counted a skip without saying why.
    count: Count  #: How often that was said.


class CompilingCall(Struct, frozen=True):
    """A call of the form in which something was compiled, or a CUDA graph recorded."""

    phase: CallPhase
    call: Count  #: From 1 within the phase.
    compilations: Count  #: How many.
    cuda_graphs: Count  #: How many.
    wall_us: CallMicroseconds | None  #: None where the call was not timed.


class Diagnostics(Struct, frozen=True):
    """What torch.compile said while one form was warmed up, timed and recorded; nothing of other forms is in it."""

    frames: Many[FrameCompilation] = ()
    breaks: Many[GraphBreak] = ()
    fallbacks: Many[EagerFallback] = ()
    phases: Many[PhaseTime] = ()  #: Of all compilations, longest first.
    caches: Many[CacheUse] = ()
    calls: Many[CompilingCall] = ()
    cuda_graph_skips: Many[CudaGraphSkip] = ()
    cuda_graphs_recorded: Count = 0  #: How many CUDA graphs were recorded.
    autotuned: Count = 0  #: How many choices of kernel were benchmarked.
    warmed_up_at: dict[Text, Count] | None = None  #: Sizes of warm-up calls that had their own.
    noted: Many[Noted] = ()  #: What this torch did not tell.

    @property
    def unmeant_fallbacks(self) -> tuple[EagerFallback, ...]:
        """Without what torch runs eager by design: hooks of sharded modules, which Dynamo never compiles."""
        return tuple(each for each in self.fallbacks if each.kind != "skipped" or not each.is_of_sharding)

    @property
    def recompiles(self) -> tuple[FrameCompilation, ...]:
        """What was compiled again because a check failed."""
        return tuple(frame for frame in self.frames if frame.because)

    def timed_calls(self) -> tuple[CompilingCall, ...]:
        """The timed calls that compiled. There should be none."""
        return tuple(call for call in self.calls if call.phase == "timed")
