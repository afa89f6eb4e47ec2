"""A digest's tables with times that pack well: a rank has tens of thousands of them, and two of three say again what
another has said."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES

#: How many of the moments lie between a gap's start and that of the gap before.
MOMENTS = "moments"


def packed(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """A row starts so much after the one before has ended. A gap starts where an activity ends, or where it is cut, and
    lasts as long as its causes: it mostly has zeros."""
    moments, gaps = _moments(tables["activities"], tables["collectives"]), tables["gaps"]
    starts = gaps["start_ns"].to_numpy()
    at = np.maximum(np.searchsorted(moments, starts, side="right") - 1, 0)
    lasting = pl.col("end_ns") - pl.col("start_ns")
    told = gaps.with_columns(
        pl.Series("start_ns", starts - moments[at], dtype=pl.Int64),
        lasting.sub(pl.sum_horizontal(IDLE_CAUSES)).alias("end_ns"),
        pl.Series(MOMENTS, np.diff(at, prepend=0), dtype=pl.Int64),
    )
    return {name: told if name == "gaps" else _as_differences(table) for name, table in tables.items()}


def unpacked(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables that were packed so."""
    made = {name: _as_times(table) for name, table in tables.items() if name != "gaps"}
    moments, told = _moments(made["activities"], made["collectives"]), tables["gaps"]
    starts = pl.Series("start_ns", moments[np.cumsum(told[MOMENTS].to_numpy())], dtype=pl.Int64) + told["start_ns"]
    ends = pl.col("start_ns") + pl.col("end_ns") + pl.sum_horizontal(IDLE_CAUSES)
    return {**made, "gaps": told.with_columns(starts).with_columns(ends.alias("end_ns")).drop(MOMENTS)}


def _moments(activities: pl.DataFrame, collectives: pl.DataFrame) -> Ints:
    """Where gaps may start."""
    times = (activities["end_ns"], collectives["start_ns"], collectives["ready_ns"])
    return np.unique(np.concatenate([np.zeros(1, np.int64), *(each.to_numpy() for each in times)]))


def _as_differences(table: pl.DataFrame) -> pl.DataFrame:
    start, end = pl.col("start_ns"), pl.col("end_ns")
    ready = [pl.col(name) - start for name in table.columns if name == "ready_ns"]
    return table.with_columns(start - end.shift(fill_value=0), end - start, *ready)


def _as_times(table: pl.DataFrame) -> pl.DataFrame:
    start = (pl.col("start_ns") + pl.col("end_ns").shift(fill_value=0)).cum_sum()
    ready = [pl.col(name) + start for name in table.columns if name == "ready_ns"]
    return table.with_columns(start, pl.col("end_ns") + start, *ready)
