"""Who waited for whom in a fleet, and how long? As `ranks.waiting`, in columns."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.ranks.fleets.clocks import FleetClocks
from tracekit.ranks.fleets.parts import WHY, Parts

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FleetWaits:
    """`parts` is `Parts.every` with `start` and `end` on the common clock, `waiting` (-1: unknown) and `late`, the rank
    waited for (-1: none); `members` has each joined part's `collective`, with `first` and `last` (starts) and
    `last_rank`; `left` is `Parts.left` with what was joined and cannot be one."""

    parts: pl.DataFrame
    members: pl.DataFrame
    left: pl.DataFrame


def measure_fleet(parts: Parts, clocks: FleetClocks) -> FleetWaits:
    moved = pl.Series(np.rint(clocks.moved_ns).astype(np.int64))
    every = parts.every.with_columns(start=pl.col("start") + moved, end=pl.col("end") + moved)
    about = pl.DataFrame(
        {
            "talk": range(len(parts.talk)),
            "exchange": [each.exchange for each in parts.talk],
            "root": [each.root for each in parts.talk],
        },
        schema={"talk": pl.Int64, "exchange": pl.String, "root": pl.Int64},
    )
    told = every.select("part", "rank", "start", "end", "talk").join(about, on="talk", maintain_order="left")
    both = [_barriers(parts.barriers, told, clocks), _pairs(parts.pairs, told, clocks)]
    members = pl.concat([each.filter(pl.col("why").is_null()).drop("why") for each in both])
    wrong = pl.concat([each.filter(pl.col("why").is_not_null()).select("part", "why") for each in both])
    sound = members.select("part").unique()
    wrong = wrong.unique("part").join(sound, on="part", how="anti")
    # A kernel that exchanges with several ranks waits for the one that comes last.
    longest = members.sort("waiting").group_by("part").agg(pl.col("waiting", "late").last())
    whole = every.join(longest, on="part", how="left", maintain_order="left").with_columns(
        pl.col("waiting", "late").fill_null(-1)
    )
    return FleetWaits(whole, members, pl.concat([parts.left, wrong.cast({"why": WHY})]))


def _barriers(joined: pl.DataFrame, told: pl.DataFrame, clocks: FleetClocks) -> pl.DataFrame:
    rows = joined.join(told, on="part", maintain_order="left")
    of_one = "collective"
    rows = rows.with_columns(
        first=pl.col("start").min().over(of_one),
        last=pl.col("start").max().over(of_one),
        soonest=pl.col("end").min().over(of_one),
        shortest=(pl.col("end") - pl.col("start")).min().over(of_one),
        last_rank=pl.col("rank").sort_by("start", "rank").last().over(of_one),
        rooted=pl.col("start").filter(pl.col("rank") == pl.col("root")).first().over(of_one),
    )
    lasting = pl.col("end") - pl.col("start")
    if clocks.basis == "bound":
        return rows.select(
            *("collective", "part", "first", "last"),
            last_rank=pl.lit(-1, dtype=pl.Int64),
            waiting=lasting - pl.col("shortest"),
            late=pl.lit(-1, dtype=pl.Int64),
            why=pl.lit(None, dtype=pl.String),
        )
    whom = pl.when(pl.col("exchange") == "from_root").then("rooted").otherwise("last")
    alone = (pl.col("exchange") == "to_root") & (pl.col("rank") != pl.col("root"))
    waiting = pl.when(alone).then(0).otherwise((whom - pl.col("start")).clip(0, lasting)).fill_null(0)
    late = pl.when(pl.col("exchange") == "from_root").then("root").otherwise("last_rank")
    impossible = (pl.col("exchange") == "all") & (pl.col("last") - pl.col("soonest") > clocks.tolerance_ns)
    return rows.select(
        *("collective", "part", "first", "last", "last_rank"),
        waiting=waiting,
        late=pl.when(waiting > 0).then(late).otherwise(-1).cast(pl.Int64),
        why=pl.when(impossible).then(pl.lit("not_at_once")),
    )


def _pairs(joined: pl.DataFrame, told: pl.DataFrame, clocks: FleetClocks) -> pl.DataFrame:
    """A receiver waits for its sender; a sender for its receiver if it was still there when that came."""
    own = told.select("part", "rank", "start", "end")
    rows = joined.join(own, left_on="send", right_on="part").join(
        own, left_on="receive", right_on="part", suffix="_there"
    )
    sender_late = pl.col("start") > pl.col("start_there")
    ends = {"collective": pl.col("collective"), "first": pl.min_horizontal("start", "start_there")}
    ends |= {"last": pl.max_horizontal("start", "start_there")}
    ends["last_rank"] = pl.when(sender_late).then("rank").otherwise("rank_there")
    none = pl.lit(-1, dtype=pl.Int64)
    of_receiver = (pl.col("start") - pl.col("start_there")).clip(0, pl.col("end_there") - pl.col("start_there"))
    there = pl.col("start_there") <= pl.col("end")
    of_sender = pl.when(there).then((pl.col("start_there") - pl.col("start")).clip(0)).otherwise(0)
    over = pl.col("start") - pl.col("end_there") > clocks.tolerance_ns
    why = pl.when(over).then(pl.lit("not_at_once"))
    if clocks.basis == "bound":
        why = pl.when(pl.lit(value=True)).then(pl.lit("clocks_unknown"))
    sides = [("receive", of_receiver, "rank"), ("send", of_sender, "rank_there")]
    columns = ("collective", "part", "first", "last", "last_rank", "waiting", "late", "why")
    return pl.concat(
        rows.select(
            **ends,
            part=part,
            waiting=waiting,
            late=pl.when(waiting > 0).then(other).otherwise(none),
            why=why.cast(pl.String),
        ).select(columns)
        for part, waiting, other in sides
    )
