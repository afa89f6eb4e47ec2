"""The figures of one side, for one step. None where the side could not be measured."""

from __future__ import annotations

import statistics

from tracekit.model.comparison import Side


def busy_us(side: Side) -> float | None:
    return side.analysis.gpu.busy_us / side.steps if side.analysis.gpu else None


def span_us(side: Side) -> float | None:
    """Length of the recorded window, of all devices together."""
    return side.analysis.gpu.span_us / side.steps if side.analysis.gpu else None


def recorded_idle_us(side: Side) -> float | None:
    """Idle time as the trace shows it, which profiling has lengthened."""
    return side.analysis.gpu.idle_us / side.steps if side.analysis.gpu else None


def median_wall_us(side: Side) -> float | None:
    """The median unprofiled call; None when the side was never timed."""
    return statistics.median(side.form.wall_us) if side.form and side.form.wall_us else None


def true_idle_us(side: Side) -> float | None:
    """Unprofiled wall time that the one GPU did not work in; None without a wall time, or with several GPUs."""
    wall, busy = median_wall_us(side), busy_us(side)
    if wall is None or busy is None or len(side.analysis.devices) != 1:
        return None
    return max(wall - busy, 0.0)


def family_us(side: Side, family: str) -> float:
    """GPU time of one kernel family; 0 when the side has no GPU figures."""
    kernels = side.analysis.kernels
    total = sum(each.total_us for each in kernels.by_family if each.family == family) if kernels else 0.0
    return total / side.steps


def recorded_wall_us(side: Side) -> float | None:
    """The wall time of a step while it was recorded."""
    steps = side.analysis.steps
    if steps:
        return sum(step.wall_us for step in steps) / len(steps)
    return side.analysis.window.span_us / side.steps if side.analysis.window.kind != "whole" else None
