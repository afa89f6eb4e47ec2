"""How long was each GPU busy, and how long idle? In the window, and in each step."""

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.analysis.window import Scope, Span, columns
from tracekit.interval import Intervals
from tracekit.model.analysis import DeviceUse, GpuUse, StepUse
from tracekit.model.trace import Trace


def busy_intervals(trace: Trace, device: int) -> Intervals:
    """When any stream of the device had something to run: the union of all its activity, whoever launched it."""
    starts, ends = columns(trace.activities.filter(pl.col("device") == device), "start_ns", "end_ns")
    return interval.union(starts, ends)


def measure_devices(trace: Trace, scope: Scope) -> tuple[DeviceUse, ...]:
    """Busy and idle time of each device in its window; they add up to its span exactly."""
    names = {device.id: device.name for device in trace.devices}
    used: list[DeviceUse] = []
    for device, window in scope.windows.items():
        span_ns = interval.length(window)
        idle_ns = interval.length(interval.complement(busy_intervals(trace, device), window))
        own = scope.activities.filter(pl.col("device") == device)
        own_idle_ns = interval.length(interval.complement(interval.union(*columns(own, "start_ns", "end_ns")), window))
        used.append(
            DeviceUse(
                id=device,
                name=names.get(device),
                span_us=span_ns / 1e3,
                busy_us=(span_ns - idle_ns) / 1e3,
                idle_us=idle_ns / 1e3,
                idle_fraction=idle_ns / span_ns if span_ns else 0.0,
                streams=own["stream"].n_unique(),
                outside_us=(own_idle_ns - idle_ns) / 1e3,
            )
        )
    return tuple(used)


def sum_devices(devices: tuple[DeviceUse, ...]) -> GpuUse:
    """The sums over devices: device time, which is more than wall time where there are several."""
    span = sum(device.span_us for device in devices)
    idle = sum(device.idle_us for device in devices)
    busy, outside = sum(device.busy_us for device in devices), sum(device.outside_us for device in devices)
    return GpuUse(span, busy, idle, idle / span if span else 0.0, outside)


def time_steps(spans: tuple[Span, ...]) -> tuple[StepUse, ...]:
    """The steps of a recording without a GPU."""
    return tuple(StepUse(span.index, (span.end_ns - span.start_ns) / 1e3, None, None, None, None) for span in spans)


def measure_steps(trace: Trace, scope: Scope) -> tuple[StepUse, ...]:
    """One entry a step, in order; empty when the whole trace is the window."""
    if not scope.step_windows:
        return ()
    lengths = np.stack([each[:, 1] - each[:, 0] for each in scope.step_windows.values()])
    busy = np.stack(
        [interval.covered_within(busy_intervals(trace, device), each) for device, each in scope.step_windows.items()]
    )
    kernels = scope.activities.filter(pl.col("kind") == "kernel").group_by("step")
    counts = {step: rest for step, *rest in kernels.agg(pl.len(), pl.col("call").drop_nulls().n_unique()).iter_rows()}
    return tuple(
        StepUse(
            span.index,
            int(lengths[:, i].max()) / 1e3,
            int(busy[:, i].sum()) / 1e3,
            int((lengths - busy)[:, i].sum()) / 1e3,
            *counts.get(i, (0, 0)),
        )
        for i, span in enumerate(scope.spans)
    )
