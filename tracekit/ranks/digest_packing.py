"""A digest's tables with times that pack well: a rank has tens of thousands of them, and two of three say again what
another has said."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES

#: How many of the moments lie between a gap's start and that of the gap before.
MOMENTS = "moments"
#: What is added to the name of a cause that is told by what the others leave of a gap.
REST = ".rest"


def packed(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """A row starts so much after the one before has ended. A gap starts where an activity ends, or where it is cut; it
    ends where the next thing starts; and it lasts as long as its causes, of which one is told by the others. Where that
    is so, there are zeros."""
    gaps = tables["gaps"]
    overs, begins = _moments(tables["activities"], tables["collectives"])
    starts, ends = (gaps[name].to_numpy() for name in ("start_ns", "end_ns"))
    at = np.maximum(np.searchsorted(overs, starts, side="right") - 1, 0)
    told = gaps.with_columns(
        pl.Series("start_ns", starts - overs[at], dtype=pl.Int64),
        pl.Series("end_ns", ends - _next(begins, starts), dtype=pl.Int64),
        pl.Series(MOMENTS, np.diff(at, prepend=0), dtype=pl.Int64),
    )
    dearest = max(IDLE_CAUSES, key=lambda cause: gaps[cause].n_unique())
    rest = pl.sum_horizontal(IDLE_CAUSES) - pl.Series(ends - starts, dtype=pl.Int64)
    told = told.with_columns(rest.alias(dearest)).rename({dearest: dearest + REST})
    return {name: told if name == "gaps" else _as_differences(table) for name, table in tables.items()}


def unpacked(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables that were packed so. Raises IndexError where a gap begins at no moment."""
    made = {name: _as_times(table) for name, table in tables.items() if name != "gaps"}
    overs, begins = _moments(made["activities"], made["collectives"])
    told = tables["gaps"]
    starts = overs[np.cumsum(told[MOMENTS].to_numpy())] + told["start_ns"].to_numpy()
    ends = _next(begins, starts) + told["end_ns"].to_numpy()
    known = [cause for cause in IDLE_CAUSES if cause in told.columns]
    (dearest,) = {*IDLE_CAUSES} - {*known}
    left = pl.Series(ends - starts, dtype=pl.Int64) - pl.sum_horizontal(known)
    told = told.with_columns(
        pl.Series("start_ns", starts, dtype=pl.Int64),
        pl.Series("end_ns", ends, dtype=pl.Int64),
        (pl.col(dearest + REST) + left).alias(dearest),
    )
    return {**made, "gaps": told.select("start_ns", "end_ns", *IDLE_CAUSES)}


def _moments(activities: pl.DataFrame, collectives: pl.DataFrame) -> tuple[Ints, Ints]:
    """Where gaps may start, and where they may end."""
    cuts = [np.zeros(1, np.int64), *(collectives[name].to_numpy() for name in ("start_ns", "ready_ns"))]
    overs, begins = (np.sort(np.concatenate([activities[name].to_numpy(), *cuts])) for name in ("end_ns", "start_ns"))
    # Each once: numpy's own `unique` hashes them first, and takes four times as long.
    return tuple(each[np.diff(each, prepend=each[0] - 1) != 0] for each in (overs, begins))


def _next(begins: Ints, starts: Ints) -> Ints:
    found: Ints = begins[np.minimum(np.searchsorted(begins, starts, side="right"), len(begins) - 1)]
    return found


def _as_differences(table: pl.DataFrame) -> pl.DataFrame:
    start, end = pl.col("start_ns"), pl.col("end_ns")
    ready = [pl.col(name) - start for name in table.columns if name == "ready_ns"]
    return table.with_columns(start - end.shift(fill_value=0), end - start, *ready)


def _as_times(table: pl.DataFrame) -> pl.DataFrame:
    start = (pl.col("start_ns") + pl.col("end_ns").shift(fill_value=0)).cum_sum()
    ready = [pl.col(name) + start for name in table.columns if name == "ready_ns"]
    return table.with_columns(start, pl.col("end_ns") + start, *ready)
