"""Which host call launched each GPU activity?"""

from __future__ import annotations

import polars as pl

from tracekit.model.trace import Trace


def link_launches(trace: Trace) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The trace's activities with a column `call`, the row of the call that launched each (None: not recorded), and its
    calls with their row number in a column of the same name.

    A launch and what it started carry the same correlation id. Several processes in one file may use an id twice, and
    so may one process that ran for long: the last call of that id before the activity began is then its launch.
    """
    calls = trace.calls.with_row_index("call")
    named = calls.filter(pl.col("correlation").is_not_null()).select("correlation", "call", called_ns="start_ns")
    if not named["correlation"].is_duplicated().any():
        joined = trace.activities.join(named, on="correlation", how="left", maintain_order="left")
        return joined.drop("called_ns"), calls
    return _nearest_before(trace.activities, named), calls


def _nearest_before(activities: pl.DataFrame, named: pl.DataFrame) -> pl.DataFrame:
    before = activities.join_asof(
        named, left_on="start_ns", right_on="called_ns", by="correlation", strategy="backward", check_sortedness=False
    )
    # The clocks of host and GPU differ a little: an activity may seem to begin before its launch does.
    first = named.unique("correlation", keep="first", maintain_order=True).select("correlation", first="call")
    joined = before.join(first, on="correlation", how="left", maintain_order="left")
    return joined.with_columns(call=pl.coalesce("call", "first")).drop("first", "called_ns", strict=False)


def count_ambiguous(activities: pl.DataFrame, calls: pl.DataFrame) -> int:
    """How many activities name a correlation id that more than one call carries."""
    several = calls.filter(pl.col("correlation").is_not_null() & pl.col("correlation").is_duplicated())
    return activities.join(several.select("correlation").unique(), on="correlation", how="semi").height
