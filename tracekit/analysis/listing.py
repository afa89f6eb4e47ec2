"""Every GPU activity of the window, one row each, for spreadsheets and notebooks."""

from __future__ import annotations

import polars as pl

from tracekit.analysis.families import family_of
from tracekit.analysis.window import find_scope
from tracekit.model.trace import Trace


def list_activities(trace: Trace, *, window: str = "auto", steps: tuple[int, int] | None = None) -> pl.DataFrame:
    """In order of their start: kind, name, family, device, stream, step (a step's number; empty without steps),
    start_us since the first event, duration_us, launched_by (the host call) and launched_us (its start), bytes.

    Raises TracekitError when nothing matches `window`.
    """
    scope = find_scope(trace, window, steps)
    numbers = pl.Series([span.index for span in scope.spans], dtype=pl.Int64)
    names = scope.activities.select("name", "kind").unique()
    families = names.with_columns(
        family=pl.Series(
            [family_of(name) if kind == "kernel" else kind for name, kind in names.iter_rows()], dtype=pl.String
        )
    )
    calls = scope.calls.select("call", launched_by="name", launched_us=pl.col("start_ns") / 1e3)
    joined = scope.activities.join(calls, on="call", how="left", maintain_order="left").join(
        families, on=["name", "kind"], how="left", maintain_order="left"
    )
    step = numbers.gather(joined["step"]) if len(numbers) else pl.Series([None] * joined.height, dtype=pl.Int64)
    return joined.select(
        "kind",
        "name",
        "family",
        "device",
        "stream",
        step.alias("step"),
        (pl.col("start_ns") / 1e3).alias("start_us"),
        ((pl.col("end_ns") - pl.col("start_ns")) / 1e3).alias("duration_us"),
        "launched_by",
        "launched_us",
        "bytes",
    )
