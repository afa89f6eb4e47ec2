"""Which communication kernels of a fleet are one collective? As `ranks.matching` by names, in columns.

By sequence number where recorded; else the k-th of a group, type and size, of those ranks that have as many as most.
Sends and receives by their two ranks, likewise. Equal ends, by which few ranks' left-overs are joined, are not asked:
what a fleet's names do not join is counted.
"""

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from tracekit.interval import Ints
from tracekit.ranks.digests import RankSummary, Talk

OF_ALL = ("all", "from_root", "to_root")
WHY = pl.Enum(["missing_rank", "counts_differ", "not_at_once", "peers_unknown", "one_sided", "clocks_unknown"])


class Parts(Struct, frozen=True):
    """`every` has a row for each rank's part in each collective: `part` (its place), `rank`, `host`, `start`, `end` (as
    if all clocks were one), `step`, `talk`, `sequence` and `covered`. `barriers` has those that were joined with
    others': `collective` and `part`. `pairs` has joined sends and receives: `collective`, and their parts, `send` and
    `receive`. `left` has the others' `part` and `why`."""

    talk: tuple[Talk, ...]
    every: pl.DataFrame
    barriers: pl.DataFrame
    pairs: pl.DataFrame
    left: pl.DataFrame


def join_parts(summaries: dict[int, RankSummary]) -> Parts:
    """The collectives of the fleet, unchecked."""
    talk, every = _lay_out(summaries)
    exchanges = pl.Series([each.exchange for each in talk], dtype=pl.String).gather(every["talk"])
    barriers, left_over = _barriers(every.filter(exchanges.is_in(OF_ALL)), talk)
    pairs, unpaired = _pairs(every.filter(exchanges == "pairs"), talk, [*summaries])
    first = int(barriers["collective"].max() or 0) + 1  # type: ignore[arg-type]
    pairs = pairs.with_columns(collective=pl.int_range(pl.len(), dtype=pl.Int64) + first)
    others = (
        every.filter(exchanges == exchange).select("part", why=pl.lit(why))
        for exchange, why in (("unknown", "peers_unknown"), ("one_sided", "one_sided"))
    )
    left = pl.concat([each.cast({"why": WHY}) for each in (left_over, unpaired, *others)])
    return Parts(talk, every, barriers, pairs, left)


def _lay_out(summaries: dict[int, RankSummary]) -> tuple[tuple[Talk, ...], pl.DataFrame]:
    known: dict[Talk, int] = {}
    hosts: dict[str, int] = {}
    base = min(each.origin_ns for each in summaries.values())
    # Ranks that state no host have a clock each.
    of_rank = [hosts.setdefault(each.host_name or f"rank {rank}", len(hosts)) for rank, each in summaries.items()]
    counts = [len(each.parts) for each in summaries.values()]
    columns = {"rank": np.repeat([*summaries], counts), "host": np.repeat(of_rank, counts)}
    since = np.repeat([each.origin_ns - base for each in summaries.values()], counts)
    start, end, step, number, sequence, covered = np.concatenate([each.parts for each in summaries.values()]).T
    # Kinds of communication are counted over all ranks.
    kinds = [known.setdefault(_whole(one, each), len(known)) for each in summaries.values() for one in each.talk]
    before = np.cumsum([0, *(len(each.talk) for each in summaries.values())])[:-1]
    talk = np.array(kinds, dtype=np.int64)[number + np.repeat(before, counts)]
    columns |= {"start": start + since, "end": end + since, "step": step, "talk": talk}
    columns |= {"sequence": sequence, "covered": covered, "part": np.arange(len(talk))}
    return tuple(known), pl.DataFrame({name: np.ascontiguousarray(values) for name, values in columns.items()})


def _whole(talk: Talk, summary: RankSummary) -> Talk:
    if talk.ranks or not (ranks := summary.groups.get(talk.group or "")):
        return talk
    return replace(talk, ranks=ranks)


def _barriers(rows: pl.DataFrame, talk: tuple[Talk, ...]) -> tuple[pl.DataFrame, pl.DataFrame]:
    kinds: dict[object, int] = {}
    numbers = [
        kinds.setdefault((each.group, each.ranks or each.size, each.signature, each.exchange, each.root), len(kinds))
        for each in talk
    ]
    rank, sequence = rows["rank"].to_numpy(), rows["sequence"].to_numpy()
    kind = 2 * np.array(numbers, dtype=np.int64)[rows["talk"].to_numpy()] + (sequence >= 0)
    ranks = int(rank.max()) + 1 if len(rank) else 1
    place, count = _places(kind * ranks + rank)
    counts = pl.DataFrame({"kind": kind, "count": count}).filter(pl.Series(place == 0))
    usual = counts.group_by("kind").agg(pl.col("count").mode().max())
    of_kind = np.zeros(2 * len(kinds) + 2, dtype=np.int64)
    of_kind[usual["kind"].to_numpy()] = usual["count"].to_numpy()
    alike = (sequence >= 0) | (count == of_kind[kind])
    key = np.where(sequence >= 0, sequence, place)
    same = _numbered(kind, key)
    # A number twice on one rank is of two kernels of one call: the k-th of each.
    same = _numbered(same, _places(same * ranks + rank)[0])
    members = np.bincount(same[alike], minlength=int(same.max()) + 1 if len(same) else 0)
    joined = alike & (members[same] > 1)
    part = rows["part"].to_numpy()
    fresh = _numbered(same[joined], np.zeros(int(joined.sum()), dtype=np.int64))
    alone = pl.DataFrame({"part": part[~joined]}).with_columns(
        why=pl.when(pl.Series(alike[~joined])).then(pl.lit("missing_rank")).otherwise(pl.lit("counts_differ"))
    )
    return pl.DataFrame({"collective": fresh, "part": part[joined]}), alone


def _places(key: Ints) -> tuple[Ints, Ints]:
    """Of each its place among those that are equal, and how many they are."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(key) else order
    counts = np.diff(np.append(first, len(key)))
    place, count = np.empty_like(order), np.empty_like(order)
    place[order] = np.arange(len(key)) - np.repeat(first, counts)
    count[order] = np.repeat(counts, counts)
    return place, count


def _numbered(one: Ints, other: Ints) -> Ints:
    """Pairs as numbers from 0."""
    # Sequence numbers may be so large that a product with them fits no 64 bits.
    places = np.unique(other, return_inverse=True)[1]
    numbers: Ints = np.unique(one * (len(other) + 1) + places, return_inverse=True)[1]
    return numbers


def _pairs(known: pl.DataFrame, talk: tuple[Talk, ...], recorded: list[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A kernel that exchanges with several ranks has a row for each of them."""
    ways = [
        (at, way, peer)
        for at, each in enumerate(talk)
        for way, peers in ((True, each.targets), (False, each.sources))
        for peer in (peers if each.exchange == "pairs" else ())
    ]
    groups: dict[str | None, int] = {}
    group = [groups.setdefault(each.group, len(groups)) for each in talk]
    schema = {"talk": pl.Int64, "sends": pl.Boolean, "peer": pl.Int64}
    peers = pl.DataFrame(ways, schema=schema, orient="row")
    known = known.select("part", "rank", "talk", group=pl.Series(group, dtype=pl.Int64).gather(known["talk"]))
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
