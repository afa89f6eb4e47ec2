"""Every rank's part in every collective, one row each, for spreadsheets, notebooks and viewers."""

import polars as pl

from tracekit.ranks.joined import Joined

PART_SCHEMA: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("collective", "rank"), pl.Int64),
    **dict.fromkeys(("name", "group"), pl.String),
    "group_size": pl.Int64,
    "dtype": pl.String,
    "bytes": pl.Int64,
    **dict.fromkeys(("start_us", "duration_us", "waiting_us", "transfer_us"), pl.Float64),
    **dict.fromkeys(("waited_for", "last_rank"), pl.Int64),
    **dict.fromkeys(("matched_by", "not_matched"), pl.String),
    **dict.fromkeys(("step", "stream", "sequence"), pl.Int64),
    "kernel": pl.String,
}


def list_parts(joined: Joined) -> pl.DataFrame:
    """In order of collectives, then of ranks: collective (its `number`; empty where a rank's was joined to no other's,
    and `not_matched` says why), start_us since the first window began (where the clocks are unknown, since the rank's
    own), waiting_us and transfer_us (they add up to duration_us), waited_for (a rank), last_rank (to arrive, or
    waited for longest), matched_by."""
    parts = pl.concat([each.with_columns(rank=pl.lit(rank)) for rank, each in parts_of_ranks(joined).items()])
    us = {f"{name}_us": pl.col(f"{name}_ns") / 1e3 for name in ("start", "duration", "waiting", "transfer")}
    told = parts.with_columns(**us).sort("collective", "rank", "start_ns", nulls_last=True)
    return told.select(pl.col(name).cast(kind) for name, kind in PART_SCHEMA.items())


def parts_of_ranks(joined: Joined) -> dict[int, pl.DataFrame]:
    """Of each rank a row for each of its collectives, by start, in whole nanoseconds."""
    waits = joined.waits
    known = waits.collectives.select("collective", "last_rank", matched_by="how")
    of_all = waits.parts.select("part", "rank", "collective", waiting_ns="waiting", waited_for="late")
    of_all = of_all.join(known, on="collective", how="left", maintain_order="left")
    of_all = of_all.join(waits.left.rename({"why": "not_matched"}), on="part", how="left", maintain_order="left")
    may_lack = pl.col("collective", "last_rank", "waited_for", "waiting_ns")
    of_all = of_all.with_columns(pl.when(may_lack >= 0).then(may_lack)).with_columns(pl.col("collective") + 1)
    found: dict[int, pl.DataFrame] = {}
    for rank, digest in joined.digests.items():
        table = joined.on_one_clock(rank, digest.collectives).rename({"collective": "name", "size": "group_size"})
        own = table.select(
            *("name", "group", "group_size", "dtype", "bytes", "stream", "sequence", "kernel", "start_ns", "end_ns"),
            duration_ns=pl.col("end_ns") - pl.col("start_ns"),
            step=pl.Series(digest.steps, dtype=pl.Int64).gather(table["step"]) if digest.steps else None,
        )
        whole = own.hstack(of_all[joined.rows_of(rank)].drop("part", "rank"))
        found[rank] = whole.with_columns(transfer_ns=pl.col("duration_ns") - pl.col("waiting_ns"))
    return found
