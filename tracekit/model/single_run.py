"""One side by itself: what its page tells, and its figures per step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tracekit.model.bounded import doc
from tracekit.model.comparison import Bound, Finding, Side
from tracekit.model.note import Note

if TYPE_CHECKING:
    from tracekit.model.comparison import Side


@dataclass(frozen=True, slots=True)
class SingleRun:
    """One side by itself: what its page tells beside the figures."""

    side: Side
    bound: Annotated[Bound | None, doc("What holds the side back; None without GPU figures.")]
    findings: Annotated[tuple[Finding, ...], doc("Those that need no other side to compare with.")]
    notes: Annotated[tuple[Note, ...], doc("What a reader must know before believing the figures.")]


@dataclass(frozen=True, slots=True)
class PerStep:
    """The figures of a side per step, as reports show them. None: not measured."""

    wall_us: Annotated[float | None, doc("The median unprofiled call.")]
    recorded_wall_us: Annotated[float | None, doc("The recorded window over its steps.")]
    busy_us: Annotated[float | None, doc("Of all devices together.")]
    unprofiled_idle_us: Annotated[float | None, doc("The unprofiled call less its busy time.")]
    recorded_idle_us: Annotated[float | None, doc("The recorded window less its busy time.")]
    idle_share: Annotated[float | None, doc("Of the unprofiled call, 0 to 1.")]
    recorded_idle_share: Annotated[float | None, doc("Of the recorded window, 0 to 1.")]
    slowdown: Annotated[float | None, doc("Recorded wall time over unprofiled wall time.")]
    recorded_idle_by_cause_us: Annotated[dict[str, float], doc("As recorded.")]
    unprofiled_idle_by_cause_us: Annotated[dict[str, float] | None, doc("Without what recording added.")]


def per_step(side: Side) -> PerStep:
    return PerStep(
        wall_us=side.wall_us,
        recorded_wall_us=side.recorded_wall_us,
        busy_us=side.busy_us,
        unprofiled_idle_us=side.unprofiled_idle_us,
        recorded_idle_us=side.recorded_idle_us,
        idle_share=side.idle_share,
        recorded_idle_share=side.recorded_idle_share,
        slowdown=side.slowdown,
        recorded_idle_by_cause_us=side.idle_by_cause(),
        unprofiled_idle_by_cause_us=side.calibrated_idle_by_cause(),
    )
