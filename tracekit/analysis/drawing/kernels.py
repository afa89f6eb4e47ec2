"""Tracks of what the GPUs did, stream by stream, of the groups it belongs to, and arrows from one side's to the
other's."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit.analysis.kernels import in_launch_order
from tracekit.analysis.window import Scope
from tracekit.model.groups import Label
from tracekit.model.matching import MatchedWork, Matching
from tracekit.model.picture import Panel, Track
from tracekit.model.sequence import Sequence
from tracekit.slices import ARROWS, Row, as_slices, details

#: What they are called in a viewer's list.
ARROWS_ARE = "eager work and its compiled counterpart"


class Known(Struct, frozen=True):
    """What is known of a side's work by position: the activity itself, and the piece it is in. `words` says what a
    group is called."""

    sequence: Sequence | None = None
    pieces: tuple[MatchedWork | None, ...] = ()
    words: Callable[[Label], str] = str

    def piece(self, position: int | None) -> MatchedWork | None:
        return self.pieces[position] if position is not None and self.pieces else None


def known_of(matching: Matching | None, side: str, words: Callable[[Label], str] = str) -> Known:
    """What is known of side `a` or `b`; `words` says what a group is called."""
    if matching is None:
        return Known()
    sequence = matching.a if side == "a" else matching.b
    found = {at: work for work in matching.work for at in (work.a if side == "a" else work.b)}
    return Known(sequence, tuple(found.get(at) for at in range(len(sequence.activities))), words)


def place_work(scope: Scope, sequence: Sequence | None) -> pl.DataFrame:
    """The window's activities in launch order, each with its `position` in the sequence and the `key` that sets it
    off from the same position of other steps. Both are None where the recording did other work than the sequence, which
    may be of another recording of the same form, and where there is no sequence.
    """
    work = in_launch_order(scope)
    wanted = [each.name for each in sequence.activities] if sequence else []
    names, steps = work["name"].to_list(), work["step"].to_numpy()
    positions, repeats = np.full(work.height, -1, dtype=np.int64), np.zeros(work.height, dtype=np.int64)
    if sequence is not None and sequence.per_step == 1:
        # Every step that did just what the sequence holds.
        for repeat, step in enumerate(np.unique(steps).tolist()):
            first, last = np.searchsorted(steps, [step, step + 1]).tolist()
            if names[first:last] == wanted:
                positions[first:last] = np.arange(last - first)
                repeats[first:last] = repeat
    else:
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(names, wanted, strict=False)))
        positions[:same] = np.arange(same)
    keys = np.where(positions >= 0, repeats * len(wanted) + positions, -1)
    placed = work.with_columns(position=pl.Series(positions), key=pl.Series(keys))
    return placed.with_columns(pl.when(pl.col("position", "key") >= 0).then(pl.col("position", "key")))


def draw_streams(placed: pl.DataFrame, scope: Scope, known: Known) -> tuple[Track, ...]:
    """One track a stream, in order of device and stream. What was launched outside the window's steps is there too."""
    outside = scope.linked.join(
        scope.activities.select("call", "start_ns", "name"), on=["start_ns", "name"], how="anti"
    )
    nothing = pl.lit(None, dtype=pl.Int64)
    outside = outside.with_columns(position=nothing, key=nothing)
    columns = ["kind", "name", "device", "stream", "start_ns", "end_ns", "bytes", "launched_by", "position", "key"]
    work = pl.concat([placed.select(columns), outside.select(columns)])
    streams = work.partition_by("device", "stream", as_dict=True)
    return tuple(
        Track(f"GPU {device}{'' if stream is None else f' stream {stream}'}", as_slices(_activity_rows(rows, known)))
        for (device, stream), rows in sorted(
            streams.items(), key=lambda item: [-1 if n is None else n for n in item[0]]
        )
    )


def _activity_rows(work: pl.DataFrame, known: Known) -> Iterator[Row]:
    for row in work.iter_rows(named=True):
        position, piece = row["position"], known.piece(row["position"])
        activity = known.sequence.activities[position] if known.sequence and position is not None else None
        operator = activity.operator if activity else None
        facts = details(
            operator=operator.name if operator else None,
            shapes=[list(each) for each in operator.dims] if operator else None,
            where=piece.where if piece else None,
            group=known.words(piece.group.label) if piece else None,
            what_became_of_it=piece.group.kind if piece else None,
            matched_by=piece.group.how if piece else None,
            launched_by=row["launched_by"],
            bytes=row["bytes"],
        )
        yield row["kind"], row["name"], row["start_ns"], row["end_ns"], facts, row["key"]


def draw_groups(placed: pl.DataFrame, known: Known) -> tuple[Track, ...]:
    """One track a device: kernels of one piece of work that follow one another on a stream are one slice, named after
    its group, and so of the same colour on both sides. Empty where nothing was matched."""
    if not known.pieces:
        return ()
    return tuple(
        Track(f"kernel groups, GPU {device}", as_slices(_piece_rows(rows, known)))
        for (device,), rows in sorted(placed.partition_by("device", as_dict=True).items())
    )


def _piece_rows(work: pl.DataFrame, known: Known) -> Iterator[Row]:
    numbers = {id(piece): number for number, piece in enumerate(known.pieces)}

    def piece_and_step(row: dict[str, Any]) -> tuple[Any, ...]:
        if row["key"] is None:
            return (None,)
        return row["stream"], numbers[id(known.piece(row["position"]))], row["key"] // len(known.pieces)

    in_time = work.sort("stream", "start_ns", maintain_order=True).iter_rows(named=True)
    for key, run in itertools.groupby(in_time, key=piece_and_step):
        rows = list(run)
        piece = known.piece(rows[0]["position"])
        if key == (None,) or piece is None:
            continue
        group = piece.group
        facts = details(
            matched_by=group.how,
            where=piece.where,
            kernels_here=len(rows),
            kernels_of_A_per_step=sum(each.count for each in group.a),
            kernels_of_B_per_step=sum(each.count for each in group.b),
            change_in_us_per_step=round(group.delta_us, 3),
        )
        end = max(row["end_ns"] for row in rows)
        yield "group", f"{group.kind}: {known.words(group.label)}", rows[0]["start_ns"], end, facts, None


def draw_arrows(matching: Matching | None, a: Panel, b: Panel) -> pl.DataFrame:
    """From each kernel of A to the kernel of B that does its work; an arrow's name is the kind of its group. None
    without a matching.

    Where a piece has as many kernels on both sides they are paired in their order; else every kernel of A leads to the
    first of B, as which of them does what nobody knows. The first step of A is tied to the first of B, and so on.
    """
    if matching is None:
        return pl.DataFrame(schema=ARROWS)
    pairs = [
        (work.group.kind, 0, one, 1, other)
        for work in matching.work
        if work.a and work.b
        for one, other in zip(
            work.a, work.b if len(work.a) == len(work.b) else itertools.repeat(work.b[0]), strict=False
        )
    ]
    table = pl.DataFrame(pairs, schema=ARROWS, orient="row")
    lengths = len(matching.a.activities), len(matching.b.activities)
    keys = [
        pl.concat([pl.Series("key", [], dtype=pl.Int64), *(track.slices["key"].drop_nulls() for track in side.tracks)])
        for side in (a, b)
    ]
    lasts = [(own.max(), length) for own, length in zip(keys, lengths, strict=True)]
    repeats = min(last // length + 1 if isinstance(last, int) and length else 0 for last, length in lasts)
    every = [
        table.with_columns(pl.col("a_key") + repeat * lengths[0], pl.col("b_key") + repeat * lengths[1])
        for repeat in range(repeats)
    ]
    arrows = pl.concat([table.clear(), *every])
    return arrows.filter(pl.col("a_key").is_in(keys[0].implode()) & pl.col("b_key").is_in(keys[1].implode()))
