"""Which parts are sure to be one collective, and who waited for whom in it, and how long?

A rank waits from its kernel's start to the start of the last that it takes something from, at most for as long as the
kernel runs; the rest is transfer. For those that it only gives something to, it waited if it was still there when they
came: what is small is sent without them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from tracekit.interval import Ints
from tracekit.ranks.digests import RankRecording
from tracekit.ranks.fleets.clocks import Clocks
from tracekit.ranks.fleets.ends import APART_SHARE, Times, grow_by_ends, meet_by_ends
from tracekit.ranks.fleets.parts import MEMBERS, Parts, number_of, sorted_members
from tracekit.ranks.fleets.runs import Runs, in_order


class FleetWaits(Struct, frozen=True):
    """`parts` is `Parts.every` with `start` and `end` on the common clock, `collective` (-1: joined to none), `waiting`
    (-1: unknown) and `late`, the rank waited for (-1: none). `members` has the same of each joined part, in the order
    of collectives and ranks. `collectives` has a row for each, in the order in which they began: `how` and in which
    `group` (a place in `groups`) it was joined, its `first` and `last` start, `last_rank` (that came last, or was
    waited for longest), and `spread`. `left` has the other parts and `why`."""

    parts: pl.DataFrame
    members: pl.DataFrame
    collectives: pl.DataFrame
    groups: tuple[tuple[int, ...], ...]
    left: pl.DataFrame


def settle(parts: Parts, clocks: Clocks, recordings: Mapping[int, RankRecording]) -> Parts:
    """On the common clock, what clocks do not contradict, and what ends join: nobody is done before those have come
    that it takes something from, and all leave a barrier together."""
    rank, start, end = (parts.every[name].to_numpy() for name in ("rank", "start", "end"))
    every = parts.every.with_columns(
        start=pl.Series(clocks.common_of(rank, start)), end=pl.Series(clocks.common_of(rank, end))
    )
    # With nobody else to communicate with.
    of_two = len(recordings) == 2 and all(each.world_size == 2 for each in recordings.values())
    about = _with_fault(parts, every, clocks, of_two=of_two)
    unsound = about.filter(pl.col("why").is_not_null())
    wrong = parts.members.join(unsound.select("collective", "why", "how"), on="collective")
    # Order was wrong about it; its end may tell.
    again = (pl.col("why") != "missing_rank") & pl.col("how").is_in(("signature", "order"))
    loose = [parts.left.filter(pl.col("why").is_null()), wrong.filter(again).select("part", "why")]
    sound = about.filter(pl.col("why").is_null())
    members, flows = (
        table.join(sound.select("collective"), on="collective", how="semi", maintain_order="left")
        for table in (parts.members, parts.flows)
    )
    left = pl.concat([parts.left.filter(pl.col("why").is_not_null()), wrong.filter(~again).select("part", "why")])
    sound = sound.select(parts.about.columns)
    settled = replace(parts, every=every, members=members, about=sound, flows=flows, left=left)
    return _join_by_ends(settled, pl.concat(loose), clocks, frozenset(recordings))


def _with_fault(parts: Parts, every: pl.DataFrame, clocks: Clocks, *, of_two: bool) -> pl.DataFrame:
    """`Parts.about` with `why` it cannot be one collective, or tells nothing; None of a sound one. A job `of_two` ranks
    has one group."""
    runs = Runs(parts.members["collective"].to_numpy())
    start, end = (every[name].to_numpy()[parts.members["part"].to_numpy()] for name in ("start", "end"))
    # When the last part began, and the soonest and the last were over.
    spans = {"last": runs.most(start), "soonest": runs.least(end), "end": runs.most(end)}
    about = parts.about.hstack(pl.DataFrame(spans | {"shortest": runs.least(end - start), "parts": runs.counts}))
    # By how much one who takes was done before one who gives came, at most.
    early = every["start"].gather(parts.flows["giver"]) - every["end"].gather(parts.flows["taker"])
    over = parts.flows.select("collective", over=early).group_by("collective").agg(pl.col("over").max())
    about = about.join(over, on="collective", how="left", maintain_order="left")
    widths = pl.Series([len(ranks) for ranks in parts.groups], dtype=pl.Int64).gather(about["group"])
    alone = (pl.col("parts") < 2) | (pl.col("one_way") & pl.col("over").is_null())
    by_order = pl.col("how") == "order"
    none = alone & by_order & (widths > pl.col("parts"))
    why = pl.when(none).then(pl.lit("ends_disagree")).when(alone).then(pl.lit("missing_rank"))
    if clocks.known:
        # A number in the sequence is sure, however far apart its ends; so is a place among equally many of one group
        # where nothing that was joined so ended before it had begun elsewhere. Processes that share a GPU take turns,
        # and their kernels end as far apart as these are long.
        by_place = (pl.col("how") == "signature") | (by_order & of_two)
        sure = (pl.col("how") == "sequence") | (by_place & clocks.at_once) | pl.col("one_way")
        most = pl.max_horizontal(pl.lit(clocks.tolerance_ns), APART_SHARE * pl.col("shortest"))
        impossible = pl.when("one_way").then("over").otherwise(pl.col("last") - pl.col("soonest"))
        why = why.when(impossible > clocks.tolerance_ns).then(pl.lit("not_at_once"))
        why = why.when(~sure & (pl.col("end") - pl.col("soonest") > most)).then(pl.lit("ends_disagree"))
    else:
        # Durations are compared, which says nothing of who came when: not all that is joined waits for the last.
        why = why.when("one_way").then(pl.lit("clocks_unknown"))
    return about.with_columns(why=why.otherwise(None))


def _join_by_ends(settled: Parts, loose: pl.DataFrame, clocks: Clocks, recorded: frozenset[int]) -> Parts:
    """Where ranks recorded unequally many, what ends at once: with a collective that others were joined to, else with
    each other."""
    if not loose.height:
        return settled
    rank, start, end, sequence = (settled.every[name].to_numpy() for name in ("rank", "start", "end", "sequence"))
    times = Times(rank, start, end, sequence, clocks.tolerance_ns)
    why = dict(loose.iter_rows())
    talk = {part: settled.talk[number] for part, number in zip(why, settled.every["talk"][[*why]], strict=True)}
    kinds: dict[object, list[int]] = defaultdict(list)
    for part in sorted(talk):
        one = talk[part]
        kinds[one.group, one.ranks or one.size, one.signature, sequence[part] >= 0].append(part)
    grown: dict[int, list[int]] = {}
    fresh: list[list[int]] = []
    if clocks.known:
        # Of which all give to all.
        barriers = [[part for part in some if talk[part].exchange == "all"] for some in kinds.values()]
        grown = _grown(settled, chain.from_iterable(barriers), times)
        taken = {row for rows in grown.values() for row in rows}
        for some in barriers:
            if left := [part for part in some if part not in taken]:
                fresh += meet_by_ends(left, talk[left[0]].ranks, recorded, times)
    joined = {row for rows in (*grown.values(), *fresh) for row in rows}
    rest: list[tuple[int, str]] = []
    for some in kinds.values():
        ranks = {*talk[some[0]].ranks} or {*rank[some].tolist()}
        others = "counts_differ" if len(ranks & recorded) > 1 else "missing_rank"
        rest += [(part, why[part] or others) for part in some if part not in joined]
    left_over = pl.DataFrame(rest, schema=settled.left.schema, orient="row")
    groups = [talk[rows[0]].ranks or tuple(sorted(rank[rows].tolist())) for rows in fresh]
    return _with_joined(replace(settled, left=pl.concat([settled.left, left_over])), grown, fresh, groups)


def _grown(settled: Parts, loose: Iterable[int], times: Times) -> dict[int, list[int]]:
    """Of barriers that `loose` ends at once with, all parts."""
    barriers = settled.about.filter(~pl.col("one_way"))
    members = settled.members.join(barriers.select("collective"), on="collective", how="semi", maintain_order="left")
    sound = dict(members.group_by("collective", maintain_order=True).agg("part").iter_rows())
    ends = members.select("collective", end=settled.every["end"].gather(members["part"])).group_by("collective")
    by_end = ends.agg(pl.col("end").median().cast(pl.Int64)).select("end", "collective").sort("end", "collective")
    groups = {number: settled.groups[at] for number, at in barriers.select("collective", "group").iter_rows()}
    return {number: sound[number] for number in sorted(grow_by_ends(sound, by_end.rows(), groups, loose, times))}


def _with_joined(
    settled: Parts, grown: dict[int, list[int]], fresh: list[list[int]], groups: list[tuple[int, ...]]
) -> Parts:
    """With collectives that ends have `grown` to all these parts, and `fresh` ones, of these groups."""
    known = {ranks: at for at, ranks in enumerate(settled.groups)}
    first = int(settled.about["collective"].max() or 0) + 1  # type: ignore[arg-type]
    about = [(first + at, "ends", number_of(known, ranks), False) for at, ranks in enumerate(groups)]
    found = [(number, row) for number, rows in (*grown.items(), *enumerate(fresh, first)) for row in rows]
    ends = pl.when(pl.col("collective").is_in([*grown])).then(pl.lit("ends")).otherwise("how")
    kept = settled.members.filter(~pl.col("collective").is_in([*grown]))
    return replace(
        settled,
        members=sorted_members(kept, pl.DataFrame(found, schema=MEMBERS, orient="row")),
        about=pl.concat(
            [settled.about.with_columns(how=ends), pl.DataFrame(about, schema=settled.about.schema, orient="row")]
        ),
        groups=tuple(known),
    )


def measure_waits(settled: Parts, clocks: Clocks) -> FleetWaits:
    """On unknown clocks the shortest kernel of a collective is taken for its transfer: what others took longer they
    waited at least; who was waited for nobody knows."""
    about, number, part = _by_begin(settled)
    runs, one_way = Runs(number), about["one_way"].to_numpy()
    rank, start, end = (settled.every[name].to_numpy()[part] for name in ("rank", "start", "end"))
    if not clocks.known:
        # As if all had left at once.
        start, end = start - end, np.zeros_like(end)
    last = runs.most(start)
    came_last = runs.most(np.where(start == last[number], rank, -1))
    waiting = np.where(one_way[number], 0, np.minimum(last[number], end) - start)
    late = np.where(waiting > 0, came_last[number], -1)
    if settled.flows.height:
        _wait_along_flows(settled, part, waiting, late)
    if not clocks.known:
        late, came_last = np.full_like(late, -1), np.full_like(came_last, -1)
    longest = runs.most(waiting)
    # Of several that waited as long the first.
    whom = late[runs.least(np.where(waiting == longest[number], np.arange(len(part)), len(part)))]
    first = runs.least(start)
    collectives = about.select(
        pl.Series("collective", np.arange(len(first))),
        "how",
        "group",
        "one_way",
        first=pl.Series(first),
        last=pl.Series(last),
        last_rank=pl.Series(np.where(whom >= 0, whom, came_last)),
        spread=pl.Series(np.where(one_way, longest, last - first)),
    )
    members = pl.DataFrame({"collective": number, "part": part, "waiting": waiting, "late": late})
    columns: dict[str, Ints] = {}
    for name in ("collective", "waiting", "late"):
        columns[name] = np.full(settled.every.height, -1, dtype=np.int64)
        columns[name][part] = members[name].to_numpy()
    parts = settled.every.with_columns(**{name: pl.Series(values) for name, values in columns.items()})
    return FleetWaits(parts, members, collectives, settled.groups, settled.left)


def _by_begin(settled: Parts) -> tuple[pl.DataFrame, Ints, Ints]:
    """What is known of the collectives in the order in which they began, and, in that order, each part with its
    collective's place."""
    members = settled.members["part"].to_numpy()
    runs = Runs(settled.members["collective"].to_numpy())
    order = np.lexsort((runs.numbers, runs.least(settled.every["start"].to_numpy()[members])))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    number = place[runs.of_row]
    rows = in_order(number, members)
    return settled.about[order], number[rows], members[rows]


def _wait_along_flows(settled: Parts, part: Ints, waiting: Ints, late: Ints) -> None:
    """Writes how long those parts waited that give or take along flows, and for whom: of several the rank that came
    last."""
    needed, given = pl.lit(value=True), pl.lit(value=False)
    ways = pl.concat(
        [
            settled.flows.select(part="taker", other="giver", needed=needed),
            settled.flows.select(part="giver", other="taker", needed=given),
        ]
    )
    ways = ways.group_by("part", "other").agg(pl.col("needed").any())
    own, there = (settled.every.select("rank", "start", "end")[ways[name]] for name in ("part", "other"))
    ways = ways.with_columns(
        waiting=pl.min_horizontal(there["start"], own["end"]) - own["start"], late=there["rank"], came=there["start"]
    ).filter((pl.col("waiting") > 0) & (pl.col("needed") | (pl.col("came") <= own["end"])))
    longest = ways.sort("part", "waiting", "late", descending=[False, True, False]).unique("part", keep="first")
    row_of = np.zeros(settled.every.height, dtype=np.int64)
    row_of[part] = np.arange(len(part))
    rows = row_of[longest["part"].to_numpy()]
    waiting[rows], late[rows] = longest["waiting"].to_numpy(), longest["late"].to_numpy()
