"""One side by itself: what its page tells, and its figures per step."""

from typing import Literal

from msgspec import Struct

from tracekit.model.comparison import Bound, Finding, Side
from tracekit.model.compilation import NotCompiled
from tracekit.model.idle_estimate import Between
from tracekit.model.note import Note
from tracekit.model.provenance import SourceLines

RemedyCode = Literal[
    "compute_on_gpu",
    "capture_in_graph",
    "select_on_gpu",
    "fix_sizes",
    "move_call",
    "allow_compiler",
    "remove_break",
    "return_values",
    "move_context",
    "compile_body",
    "name_line",
]


class Remedy(Struct, frozen=True):
    """What may let torch.compile compile a function."""

    code: RemedyCode
    option: str | None = None  #: What is added to the command; None where a model's code is to be changed.
    command: str | None = None  #: The whole command.


class NothingCompiled(Struct, frozen=True):
    """Why a run that was to have a compiled form has none."""

    reasons: tuple[NotCompiled, ...]  #: The first to be met first; empty where torch told none.
    remedies: tuple[Remedy, ...]
    source: SourceLines | None = None  #: Around the first reason's line; None where that is not there.


class SingleRun(Struct, frozen=True):
    """One side by itself: what its page tells beside the figures."""

    side: Side
    bound: Bound | None  #: What holds the side back; None without GPU figures.
    findings: tuple[Finding, ...]  #: Those that need no other side to compare with.
    notes: tuple[Note, ...]  #: What a reader must know before believing the figures.
    nothing_compiled: NothingCompiled | None = None  #: None for all but runs of which torch.compile compiled nothing.


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


def per_step(side: Side) -> PerStep:
    return PerStep(
        wall_us=side.wall_us,
        recorded_wall_us=side.recorded_wall_us,
        busy_us=side.busy_us,
        compute_us=side.compute_us,
        exposed_communication_us=side.exposed_us,
        unprofiled_idle_us=side.unprofiled_idle_us,
        recorded_idle_us=side.recorded_idle_us,
        idle_share=side.idle_share,
        recorded_idle_share=side.recorded_idle_share,
        slowdown=side.slowdown,
        recorded_idle_by_cause_us=side.idle_by_cause(),
        recorded_idle_by_cause_range_us=_ends(side.recorded_idle_ranges()),
        unprofiled_idle_by_cause_us=side.calibrated_idle_by_cause(),
        unprofiled_idle_by_cause_range_us=_ends(side.idle_ranges()),
        unprofiled_idle_residual_us=side.idle_residual_us,
        unprofiled_idle_after_sync_us=side.idle_estimate.after_sync_us if side.idle_estimate else None,
    )


def _ends(ranges: dict[str, Between] | None) -> dict[str, tuple[float, float]] | None:
    return None if ranges is None else {cause: (each.low_us, each.high_us) for cause, each in ranges.items()}
