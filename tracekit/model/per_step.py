"""A side's figures per step, as the JSON contract has them beside the totals of its window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracekit.model.comparison import Side


@dataclass(frozen=True, slots=True)
class PerStep:
    """The figures of a side per step, as reports show them. None: not measured.

    `wall_us` is the median unprofiled call, `recorded_wall_us` the window over its steps. `busy_us` is of all devices
    together. `unprofiled_idle_us` is the unprofiled call less its busy time, `recorded_idle_us` the window less its
    busy time; `idle_share` and `recorded_idle_share` are their shares of the call and of the window, 0 to 1. `slowdown`
    is recorded wall time over unprofiled wall time. `recorded_idle_by_cause_us` is idle time by cause as recorded,
    `unprofiled_idle_by_cause_us` the same without what recording added.
    """

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
