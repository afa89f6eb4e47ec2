"""Every GPU activity of the window, and every idle gap, one row each, for spreadsheets and notebooks."""

import polars as pl

from tracekit.analysis.idle import list_gaps, main_cause
from tracekit.analysis.kernels import with_families
from tracekit.analysis.window import find_scope
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.trace import Trace

ACTIVITY_SCHEMA: dict[str, type[pl.DataType]] = {
    "kind": pl.String,
    "name": pl.String,
    "family": pl.String,
    "device": pl.Int64,
    "stream": pl.Int64,
    "step": pl.Int64,
    "start_us": pl.Float64,
    "duration_us": pl.Float64,
    "launched_by": pl.String,
    "launched_us": pl.Float64,
    "bytes": pl.Int64,
}
GAP_SCHEMA: dict[str, type[pl.DataType]] = {
    "device": pl.Int64,
    "start_us": pl.Float64,
    "duration_us": pl.Float64,
    "cause": pl.String,
    **{f"{cause}_us": pl.Float64 for cause in IDLE_CAUSES},
    "after": pl.String,
    "before": pl.String,
    "launched_by": pl.String,
    "sync": pl.String,
    "where": pl.String,
}


def list_activities(trace: Trace, *, window: str = "auto", steps: tuple[int, int] | None = None) -> pl.DataFrame:
    """In order of their start: kind, name, family, device, stream, step (a step's number; empty without steps),
    start_us since the first event, duration_us, launched_by (the host call) and launched_us (its start), bytes.

    No rows for a trace without GPU activity. Raises TracekitError when nothing matches `window`.
    """
    if not trace.activities.height:
        return pl.DataFrame(schema=ACTIVITY_SCHEMA)
    scope = find_scope(trace, window, steps)
    numbers = pl.Series([span.index for span in scope.spans], dtype=pl.Int64)
    joined = with_families(scope.activities)
    step = numbers.gather(joined["step"]) if len(numbers) else pl.lit(None, dtype=pl.Int64)
    start_us, launched_us = pl.col("start_ns") / 1e3, pl.col("called_ns") / 1e3
    duration_us = (pl.col("end_ns") - pl.col("start_ns")) / 1e3
    told = joined.with_columns(step=step, start_us=start_us, duration_us=duration_us, launched_us=launched_us)
    return told.select(list(ACTIVITY_SCHEMA))


def list_idle(trace: Trace, *, window: str = "auto", steps: tuple[int, int] | None = None) -> pl.DataFrame:
    """Every idle gap of the window, in order of its start: device, start_us since the start of the window, duration_us,
    cause (the one that takes most of it), a column of microseconds for each cause, after and before (the activities
    around it), launched_by, sync (the call that exposed it), where.

    No rows for a trace without GPU activity. Raises TracekitError when nothing matches `window`.
    """
    if not trace.activities.height:
        return pl.DataFrame(schema=GAP_SCHEMA)
    as_they_are = ("device", "start_us", "duration_us", "after", "before", "launched_by", "sync")
    rows = [
        {
            **{name: getattr(gap, name) for name in as_they_are},
            **{f"{cause}_us": gap.causes.get(cause, 0.0) for cause in IDLE_CAUSES},
            "cause": main_cause(gap),
            "where": gap.where.words if gap.where else None,
        }
        for gap in list_gaps(trace, find_scope(trace, window, steps))
    ]
    return pl.DataFrame(rows, schema=GAP_SCHEMA)
