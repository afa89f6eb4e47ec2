"""The recordings of many ranks as one picture on one clock: a panel a rank, and arrows from the last to arrive at each
collective to those that waited for it."""

from collections.abc import Iterator
from typing import Any, TypeVar

import polars as pl

from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.picture import Panel, Picture, Track
from tracekit.ranks.activities import whole_gaps
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.joined import Joined
from tracekit.ranks.listing import parts_of_ranks
from tracekit.slices import ARROWS, SCHEMA, Row, as_slices, details, in_order

#: The number of a rank's collective, or a column of them.
Number = TypeVar("Number", int, pl.Expr)

#: What arrows are called in a viewer's list.
ARROWS_ARE = "the last rank to arrive and those that waited for it"
NO_CLOCK = "the clocks of ranks are unknown: each rank begins at 0, waiting is a lower bound, and there are no arrows"
#: Of two times that are one, both rounded from microseconds.
ROUNDED_NS = 2


def draw_ranks(joined: Joined) -> Picture:
    """What all ranks did, from the first window's start."""
    parts = parts_of_ranks(joined)
    panels = tuple(_panel(joined, rank, part) for rank, part in parts.items())
    if not joined.clocks.known:
        return Picture(panels, pl.DataFrame(schema=ARROWS), ARROWS_ARE, (NO_CLOCK,))
    return Picture(panels, _arrows(parts), ARROWS_ARE)


def _arrows(parts: dict[int, pl.DataFrame]) -> pl.DataFrame:
    """From where a rank arrived to where those that waited for it went on, which is at one moment: viewers let arrows
    lead to what began later, and kernels that wait began earlier."""
    every = pl.concat(
        part.select("collective", "name", "waited_for", "transfer_ns", row=pl.int_range(pl.len()), rank=pl.lit(rank))
        .with_columns(panel=pl.lit(number))
        .cast({"row": pl.Int64, "rank": pl.Int64, "panel": pl.Int64})
        for number, (rank, part) in enumerate(parts.items())
    )
    waits = every.filter(pl.col("waited_for").is_not_null() & (pl.col("transfer_ns") > 0)).sort("collective", "rank")
    own = every.select("collective", waited_for="rank", a_panel="panel", a_key=arrival(pl.col("row")))
    found = waits.join(own, on=["collective", "waited_for"], maintain_order="left")
    return found.select("name", "a_panel", "a_key", b_panel="panel", b_key=release(pl.col("row")))


def arrival(row: Number) -> Number:
    """The key of the slice that begins where the rank arrives at a collective: it waits, or transfers at once."""
    return 2 * row


def release(row: Number) -> Number:
    """The key of the transfer of a rank that has waited."""
    return 2 * row + 1


def _panel(joined: Joined, rank: int, part: pl.DataFrame) -> Panel:
    digest = joined.digests[rank]
    activities, gaps, places = (
        joined.on_one_clock(rank, table) for table in (digest.activities, whole_gaps(digest), digest.places)
    )
    talk = part.with_columns(row=pl.int_range(pl.len()), details=pl.Series(map(_facts, part.iter_rows(named=True))))
    device = None if digest.device is None else f"GPU {digest.device}"
    # Each collective, below it how long the rank waited and how long the transfer took.
    streams = _by_stream(talk)
    tracks = (
        *_steps(digest, activities),
        *(
            Track(
                f"collectives{f', stream {stream}' if len(streams) > 1 else ''}", as_slices(_divided(rows)), nests=True
            )
            for stream, rows in streams.items()
        ),
        *_idle(gaps, places),
        *_streams(activities, talk),
    )
    about = ", ".join(each for each in (digest.host_name, device, digest.device_name) if each)
    return Panel(f"rank {rank}", tracks, (), about)


def _facts(part: dict[str, Any]) -> str | None:
    """What is known of a rank's part in a collective."""
    shown = (
        *("collective", "group", "group_size", "dtype", "bytes", "sequence"),
        *("waited_for", "last_rank", "matched_by", "not_matched"),
    )
    us = {f"{name}_us": None if (ns := part[f"{name}_ns"]) is None else ns / 1e3 for name in ("waiting", "transfer")}
    return details(**{name: part[name] for name in shown}, **us)


def _steps(digest: RankDigest, activities: pl.DataFrame) -> tuple[Track, ...]:
    """From the first start to the last end of what a step launched; steps may overlap on the GPU."""
    if digest.window == "whole":
        return ()
    word = "step" if digest.window == "steps" else "span"
    found = activities.group_by("step").agg(pl.col("start_ns").min(), pl.col("end_ns").max()).sort("step")
    rows: list[Row] = [
        ("step", f"{word} {digest.steps[step] if step < len(digest.steps) else step}", start, end, None, None)
        for step, start, end in found.iter_rows()
    ]
    return (Track("steps", as_slices(rows)),)


def _divided(talk: pl.DataFrame) -> Iterator[Row]:
    for row in talk.iter_rows(named=True):
        start, end, waited, late = row["start_ns"], row["end_ns"], row["waiting_ns"], row["waited_for"]
        kind = f" {row['dtype']}" if row["dtype"] else ""
        yield "collective", f"{row['name']}{kind}", start, end, row["details"], None
        if waited:
            whom = f" for rank {late}" if late is not None else ""
            yield "waiting", f"waiting{whom}", start, start + waited, None, arrival(row["row"])
        if waited is not None and (not waited or start + waited < end):
            key = release(row["row"]) if waited else arrival(row["row"])
            yield "transfer", "transfer", start + waited, end, None, key


def _idle(gaps: pl.DataFrame, places: pl.DataFrame) -> tuple[Track, ...]:
    """Each idle gap, named after the cause that takes most of it."""
    if not gaps.height:
        return ()
    where = places.select("start_ns", "where").sort("start_ns")
    found = gaps.join_asof(where, on="start_ns", strategy="nearest", tolerance=ROUNDED_NS)
    rows: list[Row] = []
    for row in found.iter_rows(named=True):
        causes = {cause: row[cause] / 1e3 for cause in IDLE_CAUSES if row[cause]}
        name = max(causes, key=lambda cause: causes[cause], default="unattributed")
        rows.append(("idle", name, row["start_ns"], row["end_ns"], details(causes_us=causes, where=row["where"]), None))
    return (Track("idle", as_slices(rows)),)


def _streams(activities: pl.DataFrame, talk: pl.DataFrame) -> tuple[Track, ...]:
    """What ran on each stream, with what is known of each collective."""
    known = talk.select("start_ns", "end_ns", "stream", name="kernel", facts="details")
    on = ["start_ns", "end_ns", "stream", "name"]
    every = activities.join(known.unique(on), on=on, how="left", nulls_equal=True)
    facts = pl.coalesce("facts", pl.struct("family", "grid").struct.json_encode())
    every = every.with_columns(details=facts, key=pl.lit(None, dtype=pl.Int64)).select("stream", *SCHEMA)
    return tuple(
        Track("GPU" if stream is None else f"GPU stream {stream}", in_order(rows))
        for stream, rows in _by_stream(every).items()
    )


def _by_stream(table: pl.DataFrame) -> dict[int | None, pl.DataFrame]:
    """In order of the streams' numbers, what has none first."""
    streams = table.sort("stream", maintain_order=True).partition_by("stream", as_dict=True, maintain_order=True)
    return {stream: rows for (stream,), rows in streams.items()}
