"""What did each step cost?"""

from __future__ import annotations

import polars as pl

from tracekit.analysis import interval
from tracekit.analysis.devices import busy_intervals
from tracekit.analysis.window import Scope
from tracekit.model.analysis import StepUse
from tracekit.model.trace import Trace


def measure_steps(trace: Trace, scope: Scope) -> tuple[StepUse, ...]:
    """One entry a step, in order; empty when the whole trace is the window."""
    busy = {device: busy_intervals(trace, device) for device in scope.step_windows}
    kernels = scope.activities.filter(pl.col("kind") == "kernel")
    counts = {
        row[0]: row[1:]
        for row in kernels.group_by("step").agg(pl.len(), pl.col("call").drop_nulls().n_unique()).iter_rows()
    }
    return tuple(_measure(scope, busy, i, counts.get(i, (0, 0))) for i in range(len(scope.spans)))


def _measure(scope: Scope, busy: dict[int, interval.Intervals], i: int, counts: tuple[int, int]) -> StepUse:
    span = scope.spans[i]
    windows = {device: each[i : i + 1] for device, each in scope.step_windows.items()}
    idle_ns = sum(interval.length(interval.complement(busy[device], window)) for device, window in windows.items())
    whole_ns = sum(interval.length(window) for window in windows.values())
    wall_ns = max((interval.length(window) for window in windows.values()), default=span.end_ns - span.start_ns)
    return StepUse(span.index, wall_ns / 1e3, (whole_ns - idle_ns) / 1e3, idle_ns / 1e3, *counts)
