"""How long was each GPU busy, and how long idle?"""

from __future__ import annotations

import polars as pl

from tracekit.analysis import interval
from tracekit.analysis.interval import Intervals
from tracekit.analysis.window import Scope, columns
from tracekit.model.analysis import DeviceUse, GpuUse
from tracekit.model.trace import Trace


def busy_intervals(trace: Trace, device: int) -> Intervals:
    """When any stream of the device had something to run: the union of all its activity, whoever launched it."""
    starts, ends = columns(trace.activities.filter(pl.col("device") == device), "start_ns", "end_ns")
    return interval.union(starts, ends)


def measure_devices(trace: Trace, scope: Scope) -> tuple[DeviceUse, ...]:
    """Busy and idle time of each device in its window; they add up to its span exactly."""
    names = {device.id: device.name for device in trace.devices}
    return tuple(_measure(trace, scope, device, names.get(device)) for device in scope.windows)


def _measure(trace: Trace, scope: Scope, device: int, name: str | None) -> DeviceUse:
    window = scope.windows[device]
    span_ns = interval.length(window)
    idle_ns = interval.length(interval.complement(busy_intervals(trace, device), window))
    own = scope.activities.filter(pl.col("device") == device)
    own_idle_ns = interval.length(interval.complement(interval.union(*columns(own, "start_ns", "end_ns")), window))
    return DeviceUse(
        id=device,
        name=name,
        span_us=span_ns / 1e3,
        busy_us=(span_ns - idle_ns) / 1e3,
        idle_us=idle_ns / 1e3,
        idle_fraction=idle_ns / span_ns if span_ns else 0.0,
        streams=own["stream"].n_unique(),
        outside_us=(own_idle_ns - idle_ns) / 1e3,
    )


def sum_devices(devices: tuple[DeviceUse, ...]) -> GpuUse:
    """The sums over devices: device time, which is more than wall time where there are several."""
    span = sum(device.span_us for device in devices)
    idle = sum(device.idle_us for device in devices)
    busy, outside = sum(device.busy_us for device in devices), sum(device.outside_us for device in devices)
    return GpuUse(span, busy, idle, idle / span if span else 0.0, outside)
