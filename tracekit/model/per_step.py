"""A side's figures per step, as the JSON contract has them beside the totals of its window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracekit.model.comparison import Side


@dataclass(frozen=True, slots=True)
class PerStep:
    """What reports show of a side, per step, each as the property of `Side` of its name; `recorded_idle_by_cause_us` is
    `idle_by_cause`, `unprofiled_idle_by_cause_us` `calibrated_idle_by_cause`."""

    wall_us: float | None
    recorded_wall_us: float | None
    busy_us: float | None
    unprofiled_idle_us: float | None
    recorded_idle_us: float | None
    idle_share: float | None
    recorded_idle_share: float | None
    slowdown: float | None
    recorded_idle_by_cause_us: dict[str, float]
    unprofiled_idle_by_cause_us: dict[str, float] | None


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
