"""Which communication kernels of a fleet are one collective? As `ranks.matching` by names, in columns.

By sequence number where recorded; else the k-th of a group, type and size, of those ranks that have as many as most.
Sends and receives by their two ranks, likewise. Equal ends, by which few ranks' left-overs are joined, are not asked:
what a fleet's names do not join is counted.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.model.ranks import RankSummary, Talk

Ints = NDArray[np.int64]

OF_ALL = ("all", "from_root", "to_root")
#: What makes parts of several ranks one collective.
KEY = ("group", "signature", "sequenced", "k", "again")
WHY = pl.Enum(["missing_rank", "counts_differ", "not_at_once", "peers_unknown", "one_sided", "clocks_unknown"])


@dataclass(frozen=True, slots=True)
class Parts:
    """`every` has a row for each rank's part in each collective: `rank`, `row`, `host`, `start`, `end` (as if all clocks
    were one), `step`, `talk` and `covered`. `barriers` has those that were joined with others': `collective` and
    `part`, the row of `every`. `pairs` has joined sends and receives: `send` and `receive` are rows of `every`, and
    `collective`. `left` has the others' `part` and `why`."""

    talk: tuple[Talk, ...]
    every: pl.DataFrame
    barriers: pl.DataFrame
    pairs: pl.DataFrame
    left: pl.DataFrame


def join_parts(summaries: dict[int, RankSummary]) -> Parts:
    """The collectives of the fleet, unchecked."""
    talk, every = _lay_out(summaries)
    about = _about(talk)
    known = every.select("rank", "talk", "sequence", part="part").join(about, on="talk", maintain_order="left")
    barriers, left_over = _barriers(known.filter(pl.col("exchange").is_in(OF_ALL)))
    pairs, unpaired = _pairs(known.filter(pl.col("exchange") == "pairs"), talk, [*summaries])
    first = int(barriers["collective"].max() or 0) + 1 if barriers.height else 0  # type: ignore[arg-type]
    pairs = pairs.with_columns(collective=pl.int_range(pl.len(), dtype=pl.Int64) + first)
    others = known.filter(pl.col("exchange").is_in(["unknown", "one_sided"])).select(
        "part",
        why=pl.when(pl.col("exchange") == "unknown").then(pl.lit("peers_unknown")).otherwise(pl.lit("one_sided")),
    )
    left = pl.concat([each.cast({"why": WHY}) for each in (left_over, unpaired, others)])
    return Parts(talk, every, barriers, pairs, left)


def _lay_out(summaries: dict[int, RankSummary]) -> tuple[tuple[Talk, ...], pl.DataFrame]:
    known: dict[Talk, int] = {}
    hosts: dict[str, int] = {}
    base = min(each.origin_ns for each in summaries.values())
    pieces: list[Ints] = []
    for rank, each in summaries.items():
        numbers = np.array([known.setdefault(_whole(one, each), len(known)) for one in each.talk], dtype=np.int64)
        # Ranks that state no host have a clock each.
        host = hosts.setdefault(each.host_name or f"rank {rank}", len(hosts))
        piece = np.empty((len(each.parts), 9), dtype=np.int64)
        piece[:, 0], piece[:, 1], piece[:, 2] = rank, host, np.arange(len(each.parts))
        piece[:, 3:5] = each.parts[:, :2] + (each.origin_ns - base)
        piece[:, 5] = each.parts[:, 2]
        piece[:, 6] = numbers[each.parts[:, 3]] if len(numbers) else 0
        piece[:, 7:] = each.parts[:, 4:]
        pieces.append(piece)
    names = ("rank", "host", "row", "start", "end", "step", "talk", "sequence", "covered")
    whole = np.concatenate(pieces)
    every = pl.DataFrame({name: whole[:, at] for at, name in enumerate(names)})
    return tuple(known), every.with_columns(part=pl.int_range(pl.len(), dtype=pl.Int64))


def _whole(talk: Talk, summary: RankSummary) -> Talk:
    if talk.ranks or not (ranks := summary.groups.get(talk.group or "")):
        return talk
    fields = {name: getattr(talk, name) for name in Talk.__slots__}
    return Talk(**fields | {"ranks": ranks})


def _about(talk: tuple[Talk, ...]) -> pl.DataFrame:
    """Of each kind its group and its signature as numbers."""
    groups: dict[object, int] = {}
    signatures: dict[object, int] = {}
    rows = [
        (
            groups.setdefault((each.group, each.ranks or each.size), len(groups)),
            signatures.setdefault((each.signature, each.exchange, each.root), len(signatures)),
            each.exchange,
        )
        for each in talk
    ]
    table = pl.DataFrame(rows, schema={"group": pl.Int64, "signature": pl.Int64, "exchange": pl.String}, orient="row")
    return table.with_columns(talk=pl.int_range(pl.len(), dtype=pl.Int64))


def _barriers(known: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    sequenced = pl.col("sequence") >= 0
    mine = ("rank", "group", "signature")
    rows = known.with_columns(sequenced=sequenced, at=pl.int_range(pl.len()).over(*mine, sequenced)).with_columns(
        k=pl.when(sequenced).then("sequence").otherwise("at"),
        again=pl.when(sequenced).then(pl.int_range(pl.len()).over(*mine, "sequence")).otherwise(0),
        count=pl.len().over(*mine, sequenced),
    )
    usual = pl.col("count").mode().max().over("group", "signature", "sequenced")
    rows = rows.with_columns(alike=sequenced | (pl.col("count") == usual))
    together = rows.filter("alike").with_columns(members=pl.len().over(KEY))
    joined = together.filter(pl.col("members") > 1)
    numbers = joined.select(KEY).unique(maintain_order=True).with_columns(
        collective=pl.int_range(pl.len(), dtype=pl.Int64)
    )
    barriers = joined.join(numbers, on=list(KEY), maintain_order="left").select("collective", "part")
    alone = together.filter(pl.col("members") == 1).select("part", why=pl.lit("missing_rank"))
    uneven = rows.filter(~pl.col("alike")).select("part", why=pl.lit("counts_differ"))
    return barriers, pl.concat([alone, uneven])


def _pairs(known: pl.DataFrame, talk: tuple[Talk, ...], recorded: list[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A kernel that exchanges with several ranks has a row for each of them."""
    ways = [
        (at, way, peer)
        for at, each in enumerate(talk)
        for way, peers in ((True, each.targets), (False, each.sources))
        for peer in (peers if each.exchange == "pairs" else ())
    ]
    peers = pl.DataFrame(ways, schema={"talk": pl.Int64, "sends": pl.Boolean, "peer": pl.Int64}, orient="row")
    rows = known.join(peers, on="talk", maintain_order="left").with_columns(
        source=pl.when("sends").then("rank").otherwise("peer"),
        target=pl.when("sends").then("peer").otherwise("rank"),
    )
    link = ("group", "source", "target")
    # A group's name is one to all its ranks; who is in it is known to each.
    rows = rows.with_columns(
        k=pl.int_range(pl.len()).over(*link, "sends"),
        sent=pl.col("sends").sum().over(link),
        taken=(~pl.col("sends")).sum().over(link),
    )
    even = rows.filter(pl.col("sent") == pl.col("taken"))
    found = even.filter("sends").join(even.filter(~pl.col("sends")), on=[*link, "k"], suffix="_there")
    pairs = found.select(send="part", receive="part_there")
    joined = pl.concat([pairs["send"], pairs["receive"]]).unique()
    here = pl.col("source").is_in(recorded) & pl.col("target").is_in(recorded)
    left = rows.filter(~pl.col("part").is_in(joined.implode())).unique("part", maintain_order=True)
    why = pl.when(here).then(pl.lit("counts_differ")).otherwise(pl.lit("missing_rank"))
    return pairs, left.select("part", why=why)
