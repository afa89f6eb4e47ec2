"""Curves of how busy each GPU was and how much work waited for it."""

from __future__ import annotations

import numpy as np
import polars as pl

from tracekit.analysis import interval
from tracekit.analysis.devices import busy_intervals
from tracekit.analysis.queue import waiting_over_time
from tracekit.analysis.window import Scope
from tracekit.model.picture import Counter
from tracekit.model.trace import Trace

#: The shown time is cut into so many equal slices for the share in which a GPU was busy.
SLICES = 1000


def draw_curves(trace: Trace, scope: Scope, begin_ns: int, end_ns: int) -> tuple[Counter, ...]:
    """Two for each device: its busy share in equal slices of time, and the queue's length at each moment."""
    curves: list[Counter] = []
    for device in scope.windows:
        curves.append(Counter(f"GPU {device} busy", "%", _busy(trace, device, begin_ns, end_ns)))
        moments, counts = waiting_over_time(scope, device)
        queue = pl.DataFrame({"at_ns": moments, "value": counts.astype(np.float64)})
        # At one moment the last value counts.
        curves.append(Counter(f"GPU {device} queue", "items", queue.unique("at_ns", keep="last", maintain_order=True)))
    return tuple(curves)


def _busy(trace: Trace, device: int, begin_ns: int, end_ns: int) -> pl.DataFrame:
    edges = np.linspace(begin_ns, end_ns, SLICES + 1).astype(np.int64)
    slices = np.stack((edges[:-1], edges[1:]), axis=1)
    busy = interval.covered_within(busy_intervals(trace, device), slices)
    share = 100 * busy / np.maximum(slices[:, 1] - slices[:, 0], 1)
    return pl.DataFrame({"at_ns": slices[:, 0], "value": np.round(share, 1)})
