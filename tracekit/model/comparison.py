"""What changed between two sides, A (before, eager) and B (after, compiled). Field names are those of the JSON contract
`tracekit.comparison/1`. All figures are per step."""

import math
from typing import Any, ClassVar, Literal

from msgspec import Struct, field

from tracekit.model.advice import Action, Advice, VerifiedAdvice
from tracekit.model.analysis import Analysis, Health, shrink_idle
from tracekit.model.compilation import Diagnostics
from tracekit.model.estimate import SeparateRunsChange
from tracekit.model.gate import Gate
from tracekit.model.groups import Evidence, Label, ModuleTime
from tracekit.model.idle_estimate import Between, IdleEstimate
from tracekit.model.job import Job
from tracekit.model.note import Note, grave_sentences, note_sentences
from tracekit.model.numerics import Accuracy, Picture
from tracekit.model.provenance import KernelSources, Provenance, SourceLines
from tracekit.model.run import Component, Environment, FormResult, RankOfRun, Settings
from tracekit.model.sequence import OperatorSource, Rates, Sequence, Traffic, TrafficTotal
from tracekit.model.statement import Severity, Statement, Words, Written
from tracekit.model.timeline import StepTimeline
from tracekit.model.timing import BreakEven, StopReason
from tracekit.model.waterfall import Basis, PartKind, Waterfall, WaterfallPart

Result = Literal["faster", "slower", "inconclusive"]
GroupKind = Literal[
    "unchanged", "fused", "substituted", "defused", "eliminated", "added", "unmatched", "communication"
]  # fmt: skip
MatchedBy = Literal["provenance", "anchors", "names", "family", "unmatched"]
#: What the interval of a verdict is of: rounds of one process, several processes, or sides that were timed apart.
VerdictBasis = Literal["rounds", "processes", "apart"]

#: The share by which GPU busy time differs between recordings of the same work (1 to 4 % on an H200).
BUSY_MOVES = 0.05

#: A part of a share of the reason is named from this part of the share on.
NAMED_SHARE = 0.15

#: What holds a form back; `latency-bound` where kernels are too small to fill the GPU, `mixed` where no one thing does.
BoundKind = Literal[
    "launch-bound", "sync-bound", "compute-bound", "memory-bound", "latency-bound", "copy-bound", "communication-bound",
    "mixed",
]  # fmt: skip
#: Why the limit of a product is not known: its sizes were not recorded, as they are not of CUDA graphs; what the device
#: can do at most is not known; sizes and types are known and do not tell it.
UnknownLimit = Literal["no_sizes", "no_sizes_in_graphs", "unknown_device", "sizes_do_not_tell"]

#: Causes that only a recording with operators can tell apart.
UNSEEN_BY_LIGHT = ("op_dispatch", "compiled_wrapper", "guards", "compile", "python")


class BoundIfSlowed(Struct, frozen=True):
    """What the bound would be if recording made the call longer."""

    times: float  #: How many times as long: the most that was ever measured.
    as_recorded: BoundKind | None  #: The bound as recorded.
    slowed: BoundKind | None  #: The bound if the call was lengthened so.


class Bound(Struct, frozen=True):
    """What holds one side back, by the rules of docs/bounds.md. Idle parts are `sync`, `launch`, `compile` and
    `device`, GPU parts `copy`, `memory`, `compute`, `small` (too small to fill the GPU), `neither` (a product far below
    both limits) and `unknown`; where kernels communicate, `communication` too, as far as nothing else ran beside it."""

    kind: BoundKind | None  #: None where what was recorded does not say.
    basis: Basis  #: What `parts_us` divides: the unprofiled call, else the recorded window.
    parts_us: dict[str, float]  #: Per step; the parts of GPU work are estimates.
    starved_share: float | None  #: The share of launches that found nothing in flight, as recorded.
    unknown_because: UnknownLimit | None = None  #: Why the limit of the `unknown` part is not known.
    if_slowed: BoundIfSlowed | None = None  #: What the recording may mean where it is all there is.
    because: str = ""  #: Why, in words.


class PerStep(Struct, frozen=True):
    """The figures of a side per step, as reports show them. None: not measured."""

    wall_us: float | None  #: The median unprofiled call.
    recorded_wall_us: float | None  #: The recorded window over its steps.
    busy_us: float | None  #: Of all devices together.
    compute_us: float | None  #: The part of busy with any work but communication.
    exposed_communication_us: float  #: The part with communication alone, waiting for other ranks included.
    unprofiled_idle_us: float | None  #: The unprofiled call less its busy time.
    recorded_idle_us: float | None  #: The recorded window less its busy time.
    idle_share: float | None  #: Of the unprofiled call, 0 to 1.
    recorded_idle_share: float | None  #: Of the recorded window, 0 to 1.
    slowdown: float | None  #: Recorded wall time over unprofiled wall time.
    recorded_idle_by_cause_us: dict[str, float]  #: As recorded.
    recorded_idle_by_cause_range_us: dict[str, tuple[float, float]] | None  #: Low and high, of one trace alone.
    unprofiled_idle_by_cause_us: dict[str, float] | None  #: Without what recording added.
    unprofiled_idle_by_cause_range_us: dict[str, tuple[float, float]] | None  #: What each may be: low and high.
    unprofiled_idle_residual_us: float | None  #: What the causes leave of it; below 0 where they are more.
    unprofiled_idle_after_sync_us: dict[str, float] | None  #: The part after a wait in which the GPU ran dry.


class SideFigures(Struct, frozen=True):
    """One side of a comparison: a trace's analysis, and what the run folder says of it where there is one."""

    label: str
    path: str
    analysis: Analysis
    form: FormResult | None  #: None for a bare trace file.
    settings: Settings | None  #: None for a bare trace file.
    environment: Environment | None  #: None for a bare trace file.
    rich: Analysis | None = None  #: Operators and shapes, with distorted times; None for a bare trace.
    components: tuple[Component, ...] = ()  #: The workload's parts; empty for a bare trace.
    repeated_parts: tuple[str, ...] = ()  #: Blocks that repeat.
    ranks: tuple[RankOfRun, ...] = ()  #: All ranks of a run of several.
    rank: int | None = None  #: That of them whose recording this is.
    idle_estimate: IdleEstimate | None = None  #: Of the unprofiled call; None where its idle time is not known.
    recorded_idle_estimate: IdleEstimate | None = None  #: As recorded, of a trace alone; None where ranges are unknown.
    bound: Bound | None = None  #: What holds it back; None where that is not known.


class Side(SideFigures, frozen=True):
    """The same with what is drawn of it: every activity one by one is the trace over again."""

    sequence: Sequence | None = None  #: What the GPU did, one by one; None where not asked for.
    provenance: Provenance | None = None  #: Where its work came from; None if not asked.
    timeline: StepTimeline | None = None  #: One step of the recording, to be drawn.
    rich_timeline: StepTimeline | None = None  #: One step of the rich recording; None where `timeline` is of that.
    pictures: tuple[Picture, ...] = ()  #: Of the images that the form made.
    kernel_sources: KernelSources | None = None  #: Of its Triton kernels; None where not kept.
    code: dict[str, SourceLines] = field(default_factory=dict)  #: Of the user's model, by `file:line`.

    @property
    def operators(self) -> OperatorSource | None:
        """Where the operators of its GPU work are known from, which says how far to trust groups."""
        return self.sequence.operators if self.sequence else None

    @property
    def steps(self) -> int:
        return max(self.analysis.window.steps, 1)

    @property
    def on_cpu(self) -> bool:
        """Whether it has no GPU figures: its activities are a CPU's outermost operators then."""
        return self.analysis.gpu is None

    @property
    def wall_us(self) -> float | None:
        """The median unprofiled call; None when the side was never timed."""
        if not (self.form and self.form.wall_us):
            return None
        # Only here: a bare trace has no times, and the module takes a while to load.
        from statistics import median

        return median(self.form.steady_us)

    @property
    def recorded_wall_us(self) -> float | None:
        """The window's length per step while it was recorded; None when it was not read by steps or spans."""
        return self.analysis.window.span_us / self.steps if self.analysis.window.kind != "whole" else None

    @property
    def span_us(self) -> float | None:
        """The recorded window, of all devices together, per step."""
        return self.analysis.gpu.span_us / self.steps if self.analysis.gpu else None

    @property
    def busy_us(self) -> float | None:
        """GPU busy time per step, of all devices together."""
        return self.analysis.gpu.busy_us / self.steps if self.analysis.gpu else None

    @property
    def exposed_us(self) -> float:
        """GPU time per step with communication alone, waiting for other ranks included."""
        communication = self.analysis.communication
        return communication.exposed_us / self.steps if communication else 0.0

    @property
    def compute_us(self) -> float | None:
        """GPU busy time per step with any work but communication."""
        communication = self.analysis.communication
        return communication.compute_us / self.steps if communication else self.busy_us

    @property
    def busy_differs_us(self) -> float | None:
        """By how much GPU busy time per step, without communication, differs between this side's two recordings: what
        it is certain to. None without a rich recording of the same kind of window."""
        rich = self.rich
        if self.compute_us is None or rich is None or rich.gpu is None or rich.window.kind != self.analysis.window.kind:
            return None
        rich_us = rich.communication.compute_us if rich.communication else rich.gpu.busy_us
        return abs(rich_us / max(rich.window.steps, 1) - self.compute_us)

    @property
    def recorded_idle_us(self) -> float | None:
        """GPU idle time per step as the recording shows it, which profiling has lengthened."""
        return self.analysis.gpu.idle_us / self.steps if self.analysis.gpu else None

    @property
    def unprofiled_idle_us(self) -> float | None:
        """What the GPU did not work in of the unprofiled call.

        None without a wall time, with several GPUs, when the recording was not read over the steps that are calls, or
        when it shows clearly more work than the call took. Busy time moves by a few percent from recording to
        recording: up to there a call that seems shorter than its work had no idle time.
        """
        if self.wall_us is None or self.busy_us is None or not self.reads_calls:
            return None
        idle = self.wall_us - self.busy_us
        return None if idle < -BUSY_MOVES * self.wall_us else max(idle, 0.0)

    @property
    def reads_calls(self) -> bool:
        """Whether a step of the recording is what an unprofiled call is: of one GPU, and marked."""
        return self.analysis.window.kind == "steps" and len(self.analysis.devices) == 1

    @property
    def recorded_ratio(self) -> float | None:
        """How many times as long as an unprofiled call what was recorded took, step or span, with a GPU or without;
        None where either is not known."""
        return self.recorded_wall_us / self.wall_us if self.recorded_wall_us is not None and self.wall_us else None

    @property
    def slowdown(self) -> float | None:
        """The same of a step on one GPU, which is what a call is; None for all else."""
        return self.recorded_ratio if self.reads_calls else None

    @property
    def kernels_per_step(self) -> float | None:
        return self.analysis.kernels.count / self.steps if self.analysis.kernels else None

    @property
    def graphed_share(self) -> float | None:
        """The share of kernels that CUDA graphs started, 0 to 1; None without kernels."""
        kernels, launches = self.analysis.kernels, self.analysis.launches
        return launches.kernels_in_graphs / kernels.count if kernels and launches and kernels.count else None

    @property
    def launches_per_step(self) -> float | None:
        return self.analysis.launches.count / self.steps if self.analysis.launches else None

    @property
    def idle_share(self) -> float | None:
        """Idle time of the unprofiled call as a share of it, 0 to 1; None where it is not known."""
        idle, wall = self.unprofiled_idle_us, self.wall_us
        return idle / wall if idle is not None and wall else None

    @property
    def recorded_idle_share(self) -> float | None:
        """Idle time as a share of the window as recorded; None without GPU figures."""
        return self.analysis.gpu.idle_fraction if self.analysis.gpu else None

    def idle_us(self, basis: Basis) -> float | None:
        return self.unprofiled_idle_us if basis == "unprofiled" else self.recorded_idle_us

    @property
    def health(self) -> tuple[Health, ...]:
        """What is to be known of the recording, and whatever damage the rich one beside it has."""
        rich = self.rich.health if self.rich else ()
        damage = tuple(each.but(recording="rich") for each in rich if each.severity == "error")
        return (*self.analysis.health, *damage)

    @property
    def has_stacks(self) -> bool:
        """Whether Python stacks were recorded, which slow the host most."""
        return any(each.code == "python_stacks_recorded" for each in self.analysis.health)

    @property
    def host(self) -> Analysis:
        """The analysis that tells what the host did: the rich recording's where there is one."""
        return self.rich if self.rich and self.rich.idle else self.analysis

    @property
    def entering(self) -> Analysis | None:
        """The analysis that tells of compiled regions: of the recordings that hold operators the one that distorts
        least. None where there is none."""
        return next((each for each in (self.analysis, self.rich) if each and each.regions is not None), None)

    @property
    def diagnostics(self) -> Diagnostics | None:
        """What torch.compile said while the form was run; None for bare traces, eager forms and runs of before."""
        return self.form.compilation.diagnostics if self.form and self.form.compilation else None

    def idle_by_cause(self) -> dict[str, float]:
        """Idle time per step by cause, in microseconds, as recorded; it adds up to `recorded_idle_us`.

        What the light recording attributes is taken from it: it distorts least. Only the rest, where it holds no
        operators, is divided among host causes as in the rich one; what that cannot attribute either stays so. Causes
        without time are left out.
        """
        found, rich = _causes(self.analysis), _causes(self.rich) if self.rich else {}
        rich = {cause: us for cause, us in rich.items() if cause in (*UNSEEN_BY_LIGHT, "unattributed")}
        whole = math.fsum(rich.values())
        if whole and "unattributed" in found:
            rest = found.pop("unattributed")
            for cause, us in rich.items():
                found[cause] = found.get(cause, 0.0) + us / whole * rest
        return {cause: us / self.steps for cause, us in found.items()}

    def calibrated_idle_by_cause(self) -> dict[str, float] | None:
        """Idle time of the unprofiled call by cause, in microseconds. With `idle_residual_us` it adds up to
        `unprofiled_idle_us`. None where the call's idle time is not known."""
        if self.unprofiled_idle_us is None:
            return None
        if self.idle_estimate is None:
            return shrink_idle(self.idle_by_cause(), self.unprofiled_idle_us)
        return {cause: each.us for cause, each in self.idle_estimate.causes.items()}

    def idle_ranges(self) -> dict[str, Between] | None:
        """The same with what each may be; None where that is not known."""
        return None if self.unprofiled_idle_us is None or self.idle_estimate is None else self.idle_estimate.causes

    def recorded_idle_ranges(self) -> dict[str, Between] | None:
        """Of idle time as recorded what each cause may be without what recording adds; None where that is not known."""
        return self.recorded_idle_estimate.causes if self.recorded_idle_estimate else None

    @property
    def idle_residual_us(self) -> float | None:
        """What of the unprofiled call's idle time the causes do not explain; below 0 where they explain more. None
        where the call's idle time is not known."""
        causes, whole = self.calibrated_idle_by_cause(), self.unprofiled_idle_us
        return None if causes is None or whole is None else whole - math.fsum(causes.values())

    @property
    def per_step(self) -> PerStep:
        """Its figures per step."""
        return PerStep(
            wall_us=self.wall_us,
            recorded_wall_us=self.recorded_wall_us,
            busy_us=self.busy_us,
            compute_us=self.compute_us,
            exposed_communication_us=self.exposed_us,
            unprofiled_idle_us=self.unprofiled_idle_us,
            recorded_idle_us=self.recorded_idle_us,
            idle_share=self.idle_share,
            recorded_idle_share=self.recorded_idle_share,
            slowdown=self.slowdown,
            recorded_idle_by_cause_us=self.idle_by_cause(),
            recorded_idle_by_cause_range_us=_ends(self.recorded_idle_ranges()),
            unprofiled_idle_by_cause_us=self.calibrated_idle_by_cause(),
            unprofiled_idle_by_cause_range_us=_ends(self.idle_ranges()),
            unprofiled_idle_residual_us=self.idle_residual_us,
            unprofiled_idle_after_sync_us=self.idle_estimate.after_sync_us if self.idle_estimate else None,
        )

    def family_us(self, family: str) -> float:
        """GPU time per step of one kernel family; 0 when the side has no GPU figures."""
        families = self.analysis.kernels.by_family if self.analysis.kernels else ()
        return sum(each.total_us for each in families if each.family == family) / self.steps


def _ends(ranges: dict[str, Between] | None) -> dict[str, tuple[float, float]] | None:
    return None if ranges is None else {cause: (each.low_us, each.high_us) for cause, each in ranges.items()}


def _causes(analysis: Analysis) -> dict[str, float]:
    return {each.cause: each.us for each in analysis.idle.causes if each.us} if analysis.idle else {}


def comparable(a: Side, b: Side) -> bool:
    """Whether a figure of A means what the same figure of B means: a step less a whole recording is no figure."""
    return (a.analysis.window.kind == "whole") == (b.analysis.window.kind == "whole")


#: Of fewer processes there is no 95 % interval.
ENOUGH_FOR_INTERVAL = 8


class Verdict(Struct, frozen=True):
    """Which side is faster, from unprofiled times only. The speed-up need not be exactly the ratio of the medians. All
    but `result` are None when a side was not timed; the interval and the floors are None too when it was timed too few
    times."""

    result: Result | Literal["not_timed"]  #: B against A.
    speedup: float | None = None  #: A's wall over B's, of calls in the same round (docs/timing.md).
    ci95: tuple[float, float] | None = None  #: The speed-up's 95 % interval, of the processes that were timed.
    noise_floor: float | None = None  #: How far a form differs from itself measured twice (0.01 = 1 %).
    a_wall_us: float | None = None  #: The median; of several processes the mean (of logarithms) of each one's.
    b_wall_us: float | None = None  #: The same of B.
    n: int | None = None  #: Rounds of all processes that count.
    processes: int | None = None  #: How many.
    basis: VerdictBasis | None = None  #: What the interval is of.
    least_change: float | None = None  #: What a change must exceed besides.
    block: int | None = None  #: How many neighbouring rounds were averaged or resampled together.
    stopped: StopReason | None = None  #: Why timing stopped.
    apart: SeparateRunsChange | None = None  #: What is known of sides that were timed in separate runs.
    next_process95: tuple[float, float] | None = None  #: Where one more process's speed-up lies, 95 %.
    process_range: tuple[float, float] | None = None  #: Of several processes the least and the greatest speed-up.
    stretches: float | None = None  #: How many independent rounds those of one process amount to (docs/timing.md).
    decided95: tuple[float, float] | None = None  #: What decided in place of `ci95`, of too few independent rounds.

    @property
    def told_range(self) -> tuple[float, float] | None:
        """What is told of what was timed: of few processes their range, for Student's t over so few holds less often
        than it says (docs/timing.md); else the interval."""
        return self.process_range if 1 < (self.processes or 1) < ENOUGH_FOR_INTERVAL else self.ci95

    @property
    def in_this_process(self) -> bool:
        """Whether the next process may find no difference, or the opposite; or nobody knows of it."""
        return self.next_process95 is None or self.next_process95[0] <= 1 <= self.next_process95[1]

    @property
    def established(self) -> bool:
        """Whether there is a difference to explain: found round by round, or larger than separate runs leave open."""
        return self.result in ("faster", "slower") or (self.apart is not None and self.apart.beyond)


class Deltas(Struct, frozen=True):
    """B minus A, per step; None where a side could not be measured."""

    kernels: float | None = None
    launches: float | None = None
    busy_us: float | None = None
    idle_us: float | None = None  #: Of the unprofiled calls where both sides have them, else as recorded.


class ReasonShare(Struct, frozen=True):
    """What GPU work (`gpu`), communication without other work beside it, or waiting (`idle`) has of the change."""

    kind: PartKind
    delta_us: float
    parts: tuple[WaterfallPart, ...]  #: What made most of it, largest first; empty where none is large.
    rest_us: float  #: What all others make; 0 where it is little or no part is named.


class Reason(Struct, frozen=True):
    """Why a call takes another time."""

    change_us: float  #: B's less A's.
    shares: tuple[ReasonShare, ...]  #: The larger first.
    unexplained_us: float  #: What the shares leave; 0 where it is little.
    of_one_process: bool  #: Whether the verdict is of several processes, of which one was recorded.


class GroupMember(Struct, frozen=True):
    """Kernels of one name in a group, per step."""

    name: str
    count: float
    total_us: float


class GroupFigures(Struct, frozen=True):
    """The kernels of A and of B that do the same work. Linked by elimination is what provenance could not tell which of
    several it is, what was left of both sides in one place, and what is known by names alone."""

    kind: GroupKind
    label: Label
    how: MatchedBy  #: How they were matched.
    a: tuple[GroupMember, ...]
    b: tuple[GroupMember, ...]
    delta_count: float
    delta_us: float
    where: tuple[str, ...]  #: file:line or module path; empty where not known.
    repeats: float = 1  #: How often the same few kernels do it per step; 1 if told by names alone.
    traffic: Traffic | None = None  #: Estimated memory traffic per step.
    rates: Rates | None = None  #: Of one operator call of B (of A where B has none); None if unknown.
    sizes: str = ""  #: Its main operator's inputs (`512x3072, 3072x3072`); empty if not all alike.
    exact: bool = True  #: False where it was linked by elimination or by names, not kernel by kernel.


class KernelGroup(GroupFigures, frozen=True):
    """The same with the places of its kernels."""

    evidence: tuple[Evidence, ...] = ()  #: What shows that a library kernel was exchanged.
    a_at: tuple[int, ...] = ()  #: Positions in A's sequence; empty where told by names alone.
    b_at: tuple[int, ...] = ()  #: The same of B.

    @property
    def evidence_words(self) -> tuple[str, ...]:
        return tuple(each.long() for each in self.evidence)

    @property
    def modules(self) -> tuple[str, ...]:
        """Those of `where` that are no `file:line`."""
        return tuple(each for each in self.where if ":" not in each)


class Coverage(Struct, frozen=True):
    """Shares of each side's GPU time, 0 to 1. The rest is unmatched."""

    a_time_matched: float  #: In groups of both sides' kernels.
    b_time_matched: float  #: In groups of both sides' kernels.
    a_time_inexact: float = 0.0  #: The part of `a_time_matched` linked by elimination, not one by one.
    b_time_inexact: float = 0.0  #: The part of `b_time_matched` linked by elimination, not one by one.
    a_time_alone: float = 0.0  #: In groups of A that are known to have no counterpart: eliminated.
    b_time_alone: float = 0.0  #: In groups of B that are known to have no counterpart: added.


class TracePlace(Struct, frozen=True):
    """A stretch of a recording."""

    path: str  #: The file that was read.
    start_us: float  #: From the start of the window that was read.
    duration_us: float


class FindingStatement(Statement):
    """What was found. The sentence is what shows it."""

    as_written = Written
    says_title: ClassVar[str]
    says_why: ClassVar[str] = ""

    def title(self) -> str:
        return self.says_title.format(**vars(self))

    def why(self) -> str:
        """Why the advice is worth trying, in few words; empty where that is not known."""
        return self.says_why

    def why_tried(self) -> str:
        """The same of advice that was tried."""
        return self.why()


class WrittenFinding(Struct, frozen=True):
    """What a reader should know or do. Nothing is in `changes` and `environment` where no other run may be faster."""

    code: str
    severity: Severity
    title: str
    evidence: str
    saving_us: float | None  #: Of a call at most, by estimate; None where nobody can say.
    advice: Words | None  #: What to do; None where nothing is advised.
    changes: dict[str, str]  #: The options that the advice changes.
    places: tuple[TracePlace, ...]  #: Where the recording shows it, the longest first.
    verified: VerifiedAdvice | None  #: What came of the advice, where it was tried.
    start_saving_us: float | None  #: Of starting up, once a process; None where not measured.
    environment: dict[str, str]  #: The variables that the advice sets.
    facts: dict[str, Any]  #: Figures and names, with units in their keys.
    action: Action | None  #: What is advised; None where nothing is.


class Finding(Struct, frozen=True):
    """What a reader should know or do. Nothing is in `changes` and `environment` where no other run may be faster."""

    statement: FindingStatement
    saving_us: float | None = None  #: Of a call at most, by estimate; None where nobody can say.
    advice: Advice | None = None  #: None where nothing is advised.
    changes: dict[str, str] = field(default_factory=dict)  #: The options that the advice changes.
    places: tuple[TracePlace, ...] = ()  #: Where the recording shows it, the longest first.
    verified: VerifiedAdvice | None = None  #: What came of the advice, where it was tried.
    start_saving_us: float | None = None  #: Of starting up, once a process; None where not measured.
    environment: dict[str, str] = field(default_factory=dict)  #: The variables that the advice sets.
    groups: tuple[int, ...] = ()  #: The kernel groups that it is about, where it is about some, by their place.

    @property
    def code(self) -> str:
        return self.statement.code

    @property
    def severity(self) -> Severity:
        return self.statement.severity

    @property
    def title(self) -> str:
        return self.statement.title()

    @property
    def evidence(self) -> str:
        """What shows it."""
        return self.statement.long()

    @property
    def facts(self) -> dict[str, Any]:
        return self.statement.facts

    @property
    def action(self) -> Action | None:
        return self.advice.written() if self.advice else None


class Comparison(Struct, frozen=True):
    """What changed from A to B, and why."""

    a: Side
    b: Side
    verdict: Verdict
    deltas: Deltas
    waterfall: Waterfall | None
    groups: tuple[KernelGroup, ...]
    coverage: Coverage | None
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]  #: To be known before believing the figures.
    gate: Gate | None = None
    traffic: TrafficTotal | None = None
    break_even: tuple[BreakEven, ...] = ()
    accuracy: Accuracy | None = None
    reason: Reason | None = None
    modules: ModuleTime | None = None  #: Time of GPU work, or of a CPU's operators, by module; None where not known.
    job: Job | None = None  #: All ranks of a run of several, of which A and B are one's.

    @property
    def warnings(self) -> tuple[str, ...]:
        return note_sentences(self.notes)

    @property
    def grave(self) -> tuple[str, ...]:
        """What must stand beside the headline."""
        return grave_sentences(self.notes)

    @property
    def compiled_while_timed(self) -> tuple[Side, ...]:
        """The sides in whose timed calls something was compiled: their times give no verdict."""
        return tuple(side for side in (self.a, self.b) if side.form and side.form.compilations_while_timed)
