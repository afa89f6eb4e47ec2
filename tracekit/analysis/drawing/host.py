"""Tracks of what the host did, thread by thread."""

from __future__ import annotations

import polars as pl

from tracekit.analysis.drawing.slices import in_order
from tracekit.model.picture import Track
from tracekit.model.trace import Trace


def draw_threads(trace: Trace) -> tuple[Track, ...]:
    """One track a thread: spans, operators, Python functions and API calls, as they nest."""
    every = pl.concat([_events(trace), _calls(trace)])
    return tuple(
        Track(f"thread {trace.threads[thread].tid}", in_order(rows), nests=True)
        for (thread,), rows in sorted(every.partition_by("thread", as_dict=True).items())
    )


def _events(trace: Trace) -> pl.DataFrame:
    shaped = "dims" in trace.host.columns
    # The column holds the JSON of a list.
    told = pl.concat_str(pl.lit('{"shapes":'), "dims", pl.lit("}")) if shaped else pl.lit(None, dtype=pl.String)
    return trace.host.select(
        "kind", "name", "start_ns", "end_ns", "thread", details=told, key=pl.lit(None, dtype=pl.Int64)
    )


def _calls(trace: Trace) -> pl.DataFrame:
    told = pl.concat_str(pl.lit('{"correlation":'), pl.col("correlation").cast(pl.String), pl.lit("}"))
    return trace.calls.select(
        pl.lit("call").alias("kind"),
        "name",
        "start_ns",
        "end_ns",
        "thread",
        details=told,
        key=pl.lit(None, dtype=pl.Int64),
    )
