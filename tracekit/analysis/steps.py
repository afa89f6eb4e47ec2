"""What did each step cost?"""

from __future__ import annotations

import numpy as np
import polars as pl

from tracekit.analysis import interval
from tracekit.analysis.devices import busy_intervals
from tracekit.analysis.window import Scope
from tracekit.model.analysis import StepUse
from tracekit.model.trace import Trace


def measure_steps(trace: Trace, scope: Scope) -> tuple[StepUse, ...]:
    """One entry a step, in order; empty when the whole trace is the window."""
    if not scope.step_windows:
        return ()
    lengths = np.stack([each[:, 1] - each[:, 0] for each in scope.step_windows.values()])
    busy = np.stack(
        [interval.covered_within(busy_intervals(trace, device), each) for device, each in scope.step_windows.items()]
    )
    kernels = scope.activities.filter(pl.col("kind") == "kernel")
    counts = {
        row[0]: row[1:]
        for row in kernels.group_by("step").agg(pl.len(), pl.col("call").drop_nulls().n_unique()).iter_rows()
    }
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
