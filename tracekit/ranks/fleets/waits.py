"""Who waited for whom in a fleet, and how long? As `ranks.waiting`, in columns."""

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit.interval import Ints
from tracekit.ranks.fleets.clocks import FleetClocks
from tracekit.ranks.fleets.parts import WHY, Parts


class FleetWaits(Struct, frozen=True):
    """`parts` is `Parts.every` with `start` and `end` on the common clock, `waiting` (-1: unknown) and `late`, the rank
    waited for (-1: none); `members` has each joined part's `collective`, with `first` and `last` (starts) and
    `last_rank`; `left` is `Parts.left` with what was joined and cannot be one."""

    parts: pl.DataFrame
    members: pl.DataFrame
    left: pl.DataFrame

    def joined(self, *columns: str | pl.Expr, **named: pl.Expr) -> pl.DataFrame:
        """`members` beside columns of their parts."""
        return self.members.hstack(self.parts.select(*columns, **named)[self.members["part"]])


def measure_fleet(parts: Parts, clocks: FleetClocks) -> FleetWaits:
    moved = pl.Series(np.rint(clocks.moved_ns).astype(np.int64))
    every = parts.every.with_columns(start=pl.col("start") + moved, end=pl.col("end") + moved)
    both = [_barriers(parts, every, clocks), _pairs(parts.pairs, every, clocks)]
    members = pl.concat([each.filter(pl.col("why").is_null()).drop("why") for each in both])
    wrong = pl.concat([each.filter(pl.col("why").is_not_null()).select("part", "why") for each in both])
    waiting = np.full(every.height, -1, dtype=np.int64)
    late = waiting.copy()
    # A kernel that exchanges with several ranks waits for the one that comes last: those are written last.
    ordered = members.sort("waiting").select("part", "waiting", "late").to_numpy()
    waiting[ordered[:, 0]], late[ordered[:, 0]] = ordered[:, 1], ordered[:, 2]
    whole = every.with_columns(waiting=pl.Series(waiting), late=pl.Series(late))
    lost = wrong.unique("part").filter(pl.Series(waiting).gather(wrong.unique("part")["part"]) < 0)
    return FleetWaits(whole, members, pl.concat([parts.left, lost.cast({"why": WHY})]))


def _barriers(parts: Parts, every: pl.DataFrame, clocks: FleetClocks) -> pl.DataFrame:
    part = parts.barriers["part"].to_numpy()
    collective = parts.barriers["collective"].to_numpy()
    rank, start, end, talk = (every[name].to_numpy()[part] for name in ("rank", "start", "end", "talk"))
    order = np.lexsort((rank, start, collective))
    collective, part, rank, start, end, talk = (each[order] for each in (collective, part, rank, start, end, talk))
    begin = np.flatnonzero(np.append(True, collective[1:] != collective[:-1])) if len(order) else order
    counts = np.diff(np.append(begin, len(order)))
    last = begin + counts - 1
    lasting = end - start

    def each_one(values: Ints) -> Ints:
        return np.repeat(values, counts)

    shortest, soonest = (np.minimum.reduceat(some, begin) if len(order) else some for some in (lasting, end))
    first_start, last_start, last_rank = each_one(start[begin]), each_one(start[last]), each_one(rank[last])
    if clocks.basis == "bound":
        waiting, late, wrong = lasting - each_one(shortest), np.full(len(order), -1), np.zeros(len(order), dtype=bool)
        last_rank = late
    else:
        exchange = np.array([each.exchange for each in parts.talk])[talk] if len(order) else np.array([], dtype=str)
        root = np.array([-1 if each.root is None else each.root for each in parts.talk], dtype=np.int64)[talk]
        # All wait for a broadcast's root, and a reduce's root for all.
        is_root = rank == root
        rooted = np.full(len(counts), np.iinfo(np.int64).min)
        number = each_one(np.arange(len(counts)))
        rooted[number[is_root]] = start[is_root]
        whom = np.where(exchange == "from_root", each_one(rooted), last_start)
        waiting = np.clip(whom - start, 0, lasting)
        waiting[(exchange == "to_root") & ~is_root] = 0
        late = np.where(waiting > 0, np.where(exchange == "from_root", root, last_rank), -1)
        wrong = (exchange == "all") & (last_start - each_one(soonest) > clocks.tolerance_ns)
    columns = {"collective": collective, "part": part, "first": first_start, "last": last_start}
    columns |= {"last_rank": last_rank, "waiting": waiting, "late": late}
    found = pl.DataFrame({name: values.astype(np.int64) for name, values in columns.items()})
    return found.with_columns(why=pl.when(pl.Series(wrong)).then(pl.lit("not_at_once")))


def _pairs(joined: pl.DataFrame, every: pl.DataFrame, clocks: FleetClocks) -> pl.DataFrame:
    """A receiver waits for its sender; a sender for its receiver if it was still there when that came."""
    own = every.select("part", "rank", "start", "end")
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
