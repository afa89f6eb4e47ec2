"""Which communication kernels of several ranks are one collective? By their names, unchecked.

The surest way first: the number in the group's sequence; equal signatures, the k-th of each, of those ranks that have
as many as most; the order of kernels of one name, likewise. Sends and receives are joined by their two ranks. What
names do not join, and what cannot be one, is left to the ends (`waits.py`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from tracekit.interval import Ints
from tracekit.ranks.digests import RankSummary, Talk
from tracekit.ranks.fleets.ends import Partitions, Split, split_by_ends
from tracekit.ranks.fleets.runs import Runs, in_order
from tracekit.ranks.job_figures import MatchedBy

#: Those that all of a group take part in.
OF_ALL = ("all", "from_root", "to_root")
MEMBERS = {"collective": pl.Int64, "part": pl.Int64}
ENDS = ("targets", "sources")


class Parts(Struct, frozen=True):
    """`every` has a row for each rank's part in each collective: `part` (its place), `rank`, `start`, `end` (as if all
    clocks were one), `step`, `talk`, `sequence` and `covered`. `members` are those that were joined: `collective` and
    `part`, in that order. `about` has a row for each collective, in order: `how` it was joined, its `group` (a place in
    `groups`), and whether it is `one_way`: then `flows` says which part gives to which. `left` has the others' `part`
    and `why`; None where counts differ, so that its end may tell."""

    talk: tuple[Talk, ...]
    every: pl.DataFrame
    members: pl.DataFrame
    about: pl.DataFrame
    flows: pl.DataFrame
    groups: tuple[tuple[int, ...], ...]
    left: pl.DataFrame


#: Ranks of groups, each once, with its number.
Groups = dict[tuple[int, ...], int]


def number_of(groups: Groups, ranks: tuple[int, ...]) -> int:
    return groups.setdefault(ranks, len(groups))


def join_parts(summaries: dict[int, RankSummary]) -> Parts:
    """The collectives that names alone join."""
    talk, every = _lay_out(summaries)
    groups: Groups = {}
    exchanges = pl.Series([each.exchange for each in talk], dtype=pl.String).gather(every["talk"])
    rows = every.filter(exchanges.is_in(OF_ALL))
    members, about, left = _by_names(rows, talk, summaries, groups)
    told = members.hstack(every.select("rank", "talk")[members["part"]])
    first = int(about["collective"].max()) + 1 if about.height else 0  # type: ignore[arg-type]
    pairs, unpaired = _pairs(every.filter(exchanges == "pairs"), talk, [*summaries], first)
    exchanged = sorted_members(*(pairs.select("collective", part=name) for name in ("giver", "taker")))
    exchanged = exchanged.unique(maintain_order=True)
    flows = pl.concat([_with_root(told, talk), _some_only(told, talk), pairs])
    # Also those of which the root was not recorded.
    with_root = [at for at, each in enumerate(talk) if each.exchange in OF_ALL[1:]]
    one_way = {*flows["collective"], *told.filter(pl.col("talk").is_in(with_root))["collective"]}
    about = pl.concat([about, _about_pairs(exchanged, every, talk, groups)])
    others = (
        every.filter(exchanges == exchange).select("part", why=pl.lit(why))
        for exchange, why in (("unknown", "peers_unknown"), ("one_sided", "one_sided"))
    )
    return Parts(
        talk,
        every,
        sorted_members(members, exchanged),
        about.with_columns(one_way=pl.col("collective").is_in([*one_way])),
        flows,
        tuple(groups),
        pl.concat([left, unpaired, *others]),
    )


def sorted_members(*tables: pl.DataFrame) -> pl.DataFrame:
    """All of them, in the order of collectives and of their ranks."""
    members = pl.concat(tables)
    return members[in_order(members["collective"].to_numpy(), members["part"].to_numpy())]


def _about_pairs(exchanged: pl.DataFrame, every: pl.DataFrame, talk: Sequence[Talk], groups: Groups) -> pl.DataFrame:
    """As `Parts.about`: the group is that of the first part, or of its ranks where nobody states any."""
    rank, kind = (every[name].to_numpy()[exchanged["part"].to_numpy()] for name in ("rank", "talk"))
    runs = Runs(exchanged["collective"].to_numpy())
    stated = [number_of(groups, each.ranks) if each.exchange == "pairs" and each.ranks else -1 for each in talk]
    of = np.array(stated, dtype=np.int64)[kind[runs.first]]
    for at in np.flatnonzero(of < 0).tolist():
        some = slice(runs.first[at], runs.first[at] + runs.counts[at])
        of[at] = number_of(groups, tuple(rank[some].tolist()))
    # A scalar beside empty columns would have no type.
    about = pl.DataFrame({"collective": runs.numbers, "group": of})
    return about.select("collective", pl.lit("pair").alias("how"), "group")


def _lay_out(summaries: dict[int, RankSummary]) -> tuple[tuple[Talk, ...], pl.DataFrame]:
    known: dict[Talk, int] = {}
    base = min(each.origin_ns for each in summaries.values())
    counts = [len(each.parts) for each in summaries.values()]
    since = np.repeat([each.origin_ns - base for each in summaries.values()], counts)
    start, end, step, number, sequence, covered = np.concatenate([each.parts for each in summaries.values()]).T
    # Kinds of communication are counted over all ranks.
    kinds = []
    for groups, one in ((each.groups, one) for each in summaries.values() for one in each.talk):
        whole = one if one.ranks else replace(one, ranks=groups.get(one.group or "", ()))
        kinds.append(known.setdefault(whole, len(known)))
    before = np.cumsum([0, *(len(each.talk) for each in summaries.values())])[:-1]
    talk = np.array(kinds, dtype=np.int64)[number + np.repeat(before, counts)]
    columns = {"part": np.arange(len(talk)), "rank": np.repeat([*summaries], counts)}
    columns |= {"start": start + since, "end": end + since, "step": step, "talk": talk}
    columns |= {"sequence": sequence, "covered": covered}
    return tuple(known), pl.DataFrame({name: np.ascontiguousarray(values) for name, values in columns.items()})


class _Kind(Struct, frozen=True):
    """Kernels that are told apart by nothing but their place, or their number."""

    ranks: tuple[int, ...]  #: Of its group; who has any, where nobody states them.
    stated: bool
    size: int | None
    recorded: int  #: Of the ranks.
    how: MatchedBy


def _with_kinds(
    table: pl.DataFrame, talk: Sequence[Talk], summaries: dict[int, RankSummary]
) -> tuple[pl.DataFrame, list[_Kind]]:
    """Parts that all of a group take part in, with their `kind`, how many ranks of its group were `recorded`, and
    whether its collectives are told apart `by_number`."""
    keys: dict[tuple[str | None, tuple[int, ...], int | None, str, bool], int] = {}
    known = [
        keys.setdefault(
            (each.group, each.ranks, None if each.ranks else each.size, each.signature, numbered), len(keys)
        )
        for each in talk
        for numbered in (False, True)
    ]
    kind = pl.Series(known, dtype=pl.Int64).gather(2 * table["talk"] + (table["sequence"] >= 0))
    unstated = [at for (_, ranks, *_), at in keys.items() if not ranks]
    of_kind = table.select("rank", kind=kind).filter(pl.col("kind").is_in(unstated)).group_by("kind")
    having = dict(of_kind.agg(pl.col("rank").unique().sort()).iter_rows())
    kinds: list[_Kind] = []
    for (group, stated, size, _, numbered), at in keys.items():
        ranks = stated or tuple(having.get(at, ()))
        recorded = sum(one in summaries for one in ranks)
        by_number = numbered and group is not None and recorded <= (size or recorded)
        how: MatchedBy = "sequence" if by_number else "order" if group is None else "signature"
        kinds.append(_Kind(ranks, bool(stated), size, recorded, how))
    recorded_of = pl.Series([each.recorded for each in kinds], dtype=pl.Int64).gather(kind)
    by_number_of = pl.Series([each.how == "sequence" for each in kinds], dtype=pl.Boolean).gather(kind)
    return table.with_columns(kind=kind, recorded=recorded_of, by_number=by_number_of), kinds


def _by_names(
    table: pl.DataFrame, talk: Sequence[Talk], summaries: dict[int, RankSummary], groups: Groups
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Members, what is known of each collective, and what is left."""
    rows, kinds = _with_kinds(table, talk, summaries)
    kind, collective = rows["kind"].to_numpy(), _by_occurrence(rows)
    kind_of = np.zeros(int(collective.max(initial=-1)) + 1, dtype=np.int64)
    kind_of[collective[collective >= 0]] = kind[collective >= 0]
    usual = [(each.how, number_of(groups, each.ranks)) for each in kinds]
    about = [usual[at] for at in kind_of.tolist()]
    unsure: list[int] = []
    hosts = {each.host_name for each in summaries.values()}
    split_at = partial(split_by_ends, partitions=_partitions(summaries), one_host=len(hosts) == 1 and None not in hosts)
    for at in (at for at, each in enumerate(kinds) if not each.stated and each.how != "sequence"):
        some = np.flatnonzero((kind == at) & (collective >= 0))
        if not len(some):
            continue
        split, unknown = _divide(rows, some, kinds[at].size, split_at)
        collective[some] = -1
        unsure += unknown
        for those, ranks in split:
            collective[those] = len(about)
            about.append((kinds[at].how, number_of(groups, ranks)) if ranks else usual[at])
    hows, numbers = zip(*about, strict=True) if about else ((), ())
    known = pl.DataFrame({"how": hows, "group": numbers}, schema={"how": pl.String, "group": pl.Int64})
    known = known.select(pl.int_range(pl.len()).alias("collective"), "how", "group")
    found = rows.select("part", collective=pl.Series(collective), row=pl.int_range(pl.len()))
    members = found.filter(pl.col("collective") >= 0).select("collective", "part")
    unknown_group = pl.when(pl.col("row").is_in(unsure)).then(pl.lit("group_unknown"))
    # Those that were divided have no members.
    known = known.join(members, on="collective", how="semi", maintain_order="left")
    return members, known, found.filter(pl.col("collective") < 0).select("part", why=unknown_group)


def _by_occurrence(rows: pl.DataFrame) -> Ints:
    """Of each part the number of its collective; -1: none. The k-th of each rank together, of those ranks that have as
    many as most; where no two ranks have equally many, or most have none, none are."""
    names = ("kind", "rank", "sequence", "recorded", "by_number")
    kind, rank, sequence, recorded, by_number = (rows[name].to_numpy() for name in names)
    # A number twice on one rank is of two kernels of one call: the k-th of each.
    key = _numbered(kind, np.where(by_number, sequence, -1))
    place, count = _places(key, rank)
    usual, alike = _usual_counts(key, rank, count, place)
    most = by_number | (2 * alike >= recorded)
    sure = (count == usual) & (((alike > 1) & most) | (alike == recorded))
    collective = np.full(rows.height, -1, dtype=np.int64)
    collective[sure] = _numbered(key[sure], place[sure])
    return collective


def _divide(
    rows: pl.DataFrame, some: Ints, size: int | None, split_at: Callable[..., tuple[list[Split], list[int]]]
) -> tuple[list[tuple[Ints, tuple[int, ...] | None]], list[int]]:
    """The rows `some`, of a kind of which nobody knows the group, as collectives, each with its group where that is not
    the kind's; and rows of which the ends do not tell whose they are."""
    rank, start, end = (rows[name].to_numpy() for name in ("rank", "start", "end"))
    some = some[np.lexsort((start[some], rank[some]))]
    ranks = tuple(np.unique(rank[some]).tolist())
    # Rank by rank, of which each has as many.
    table = some.reshape(len(ranks), -1).T
    split, unknown = split_at(start[table].astype(np.float64), end[table].astype(np.float64), ranks)
    if any(len(columns) > (size or len(ranks)) for _, columns, _ in split):
        return [], some.tolist()
    return [(table[row, columns], group) for row, columns, group in split], table[unknown].ravel().tolist()


def _usual_counts(key: Ints, rank: Ints, count: Ints, place: Ints) -> tuple[Ints, Ints]:
    """Of each row how many of its key most ranks have, of those that have any, and how many ranks these are."""
    cells = pl.DataFrame({"key": key, "rank": rank, "count": count}).filter(pl.Series(place == 0))
    counts = cells.group_by("key", usual="count").agg(pl.col("rank").min(), alike=pl.len().cast(pl.Int64))
    most = counts.sort("key", "alike", "rank", descending=[False, True, False]).unique("key", keep="first")
    of_row = pl.DataFrame({"key": key}).join(most, on="key", how="left", maintain_order="left")
    return of_row["usual"].to_numpy(), of_row["alike"].to_numpy()


def _partitions(summaries: dict[int, RankSummary]) -> Partitions:
    by_size: dict[int, list[tuple[int, ...]]] = {}
    for ranks in sorted({ranks for each in summaries.values() for ranks in each.groups.values() if len(ranks) > 1}):
        by_size.setdefault(len(ranks), []).append(ranks)
    apart = (tuple(some) for some in by_size.values() if len(set(chain(*some))) == sum(map(len, some)))
    return tuple(each for each in apart if len(each) > 1)


def _places(key: Ints, rank: Ints) -> tuple[Ints, Ints]:
    """Of each its place among those of its rank that are equal, and how many they are. Ranks are in order."""
    order = in_order(key, np.arange(len(key)))
    runs = Runs(np.cumsum((np.diff(key[order], prepend=-1) != 0) | (np.diff(rank[order], prepend=-1) != 0)))
    place, count = np.empty_like(order), np.empty_like(order)
    place[order] = np.arange(len(key)) - runs.first[runs.of_row]
    count[order] = runs.counts[runs.of_row]
    return place, count


def _numbered(one: Ints, other: Ints) -> Ints:
    """Pairs as numbers from 0."""
    if not len(one):
        return one
    places, width = other - other.min(), int(other.max()) - int(other.min()) + 1
    if width * (int(one.max()) + 1) >= 1 << 62:
        # Sequence numbers may be so large that a product with them fits no 64 bits.
        places, width = np.unique(other, return_inverse=True)[1], len(other)
    numbers: Ints = np.unique(one * width + places, return_inverse=True)[1]
    return numbers


def _with_root(told: pl.DataFrame, talk: Sequence[Talk]) -> pl.DataFrame:
    """A root gives to all others, or they to it."""
    roots = pl.DataFrame(
        [(at, each.root, each.exchange == "from_root") for at, each in enumerate(talk) if each.exchange in OF_ALL[1:]],
        schema={"talk": pl.Int64, "root": pl.Int64, "from": pl.Boolean},
        orient="row",
    )
    rows = told.join(roots, on="talk")
    own = rows.filter(pl.col("rank") == pl.col("root")).select("collective", other="part")
    found = rows.filter(pl.col("rank") != pl.col("root")).join(own, on="collective")
    giver = pl.when("from").then("other").otherwise("part")
    return found.select("collective", giver=giver, taker=pl.when("from").then("part").otherwise("other"))


def _some_only(told: pl.DataFrame, talk: Sequence[Talk]) -> pl.DataFrame:
    """Of all-to-alls in which some give some others nothing who gives to whom."""
    some = [at for at, each in enumerate(talk) if each.exchange == "all" and (each.targets or each.sources)]
    if not some:
        return told.clear().select("collective", giver="part", taker="part")
    rows = told.filter(pl.col("talk").is_in(some).any().over("collective"))
    ends = {name: pl.Series([getattr(each, name) for each in talk], dtype=pl.List(pl.Int64)) for name in ENDS}
    rows = rows.with_columns(column.gather(rows["talk"]).alias(name) for name, column in ends.items())
    ways = rows.join(rows, on="collective", suffix="_there").filter(pl.col("rank") != pl.col("rank_there"))
    gives = (pl.col("targets").list.len() == 0) | pl.col("targets").list.contains(pl.col("rank_there"))
    takes = (pl.col("sources_there").list.len() == 0) | pl.col("sources_there").list.contains(pl.col("rank"))
    return ways.filter(gives & takes).select("collective", giver="part", taker="part_there")


def _pairs(
    known: pl.DataFrame, talk: Sequence[Talk], recorded: list[int], first: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The k-th send of one rank to another is the k-th receive there, where both recorded equally many; kernels that
    send and receive at once, to and from several, are one exchange. `first` is the first one's number."""
    ways = [
        (at, way, peer)
        for at, each in enumerate(talk)
        for way, peers in ((True, each.targets), (False, each.sources))
        for peer in (peers if each.exchange == "pairs" else ())
    ]
    names: dict[str | None, int] = {}
    group = pl.Series([names.setdefault(each.group, len(names)) for each in talk], dtype=pl.Int64)
    peers = pl.DataFrame(ways, schema={"talk": pl.Int64, "sends": pl.Boolean, "peer": pl.Int64}, orient="row")
    own = known.select("part", "rank", "talk", group=group.gather(known["talk"]))
    rows = own.join(peers, on="talk", maintain_order="left").with_columns(
        source=pl.when("sends").then("rank").otherwise("peer"),
        target=pl.when("sends").then("peer").otherwise("rank"),
    )
    link = ("group", "source", "target")
    # A group's name is one to all its ranks; who is in it is known to each.
    rows = rows.with_columns(
        k=pl.int_range(pl.len()).over(*link, "sends"),
        even=pl.col("sends").sum().over(link) == (~pl.col("sends")).sum().over(link),
    )
    even = rows.filter("even")
    found = even.filter("sends").join(even.filter(~pl.col("sends")), on=[*link, "k"], suffix="_there")
    pairs = found.select(giver="part", taker="part_there")
    label = np.arange(int(known["part"].max() or 0) + 1)  # type: ignore[arg-type]
    one, other = (pairs[name].to_numpy() for name in ("giver", "taker"))
    while len(one) and (label[one] != label[other]).any():
        least = np.minimum(label[one], label[other])
        np.minimum.at(label, one, least)
        np.minimum.at(label, other, least)
    pairs = pairs.select(pl.Series("collective", label[one]), "giver", "taker")
    # One rank needs two kernels for what another does in one: that they are one exchange is not sure.
    parts = pl.concat([pairs.select("collective", part=name) for name in ("giver", "taker")]).unique()
    parts = parts.join(own.select("part", "rank"), on="part")
    twice = parts.filter(pl.len().over("collective", "rank") > 1)["collective"].unique()
    pairs = pairs.filter(~pl.col("collective").is_in(twice.implode()))
    taken = pl.concat([pairs["giver"], pairs["taker"]]).unique()
    here = pl.col("source").is_in(recorded) & pl.col("target").is_in(recorded)
    why = pl.when(~pl.col("even") & ~here).then(pl.lit("missing_rank")).otherwise(pl.lit("counts_differ"))
    told = rows.select("part", why=why).sort("part", "why").unique("part", keep="first")
    left = own.filter(~pl.col("part").is_in(taken.implode())).join(told, on="part", how="left", maintain_order="left")
    numbers = pl.col("collective").rank("dense").cast(pl.Int64) - 1 + first
    return pairs.with_columns(numbers), left.select("part", pl.col("why").fill_null("peers_unknown"))
