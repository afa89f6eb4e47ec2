"""Tracks of what the GPUs did, stream by stream, and of the groups it belongs to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from tracekit.analysis.drawing.slices import Row, as_slices, details
from tracekit.analysis.window import Scope
from tracekit.model.labels import Label
from tracekit.model.picture import MatchedWork, Track
from tracekit.model.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a side's work by position: the activity itself, and the piece it is in. `words` says what a
    group is called."""

    sequence: Sequence | None = None
    pieces: tuple[MatchedWork | None, ...] = ()
    words: Callable[[Label], str] = str

    def piece(self, position: int | None) -> MatchedWork | None:
        return self.pieces[position] if position is not None and self.pieces else None


def draw_streams(placed: pl.DataFrame, scope: Scope, known: Known) -> tuple[Track, ...]:
    """One track a stream, in order of device and stream. What was launched outside the window's steps is there too."""
    calls = scope.calls.select("call", launched_by="name", launched_ns="start_ns")
    outside = scope.linked.join(
        scope.activities.select("call", "start_ns", "name"), on=["start_ns", "name"], how="anti"
    )
    outside = outside.join(calls, on="call", how="left").with_columns(
        position=pl.lit(None, dtype=pl.Int64), key=pl.lit(None, dtype=pl.Int64)
    )
    columns = ["kind", "name", "device", "stream", "start_ns", "end_ns", "bytes", "launched_by", "position", "key"]
    work = pl.concat([placed.select(columns), outside.select(columns)])
    return tuple(
        Track(_stream_name(*key), as_slices(_activity_rows(rows, known)))
        for key, rows in sorted(work.partition_by("device", "stream", as_dict=True).items(), key=_numbers)
    )


def _numbers(item: tuple[tuple[Any, ...], pl.DataFrame]) -> tuple[int, ...]:
    return tuple(-1 if each is None else each for each in item[0])


def _stream_name(device: int, stream: int | None) -> str:
    return f"GPU {device} stream {stream}" if stream is not None else f"GPU {device}"


def _activity_rows(work: pl.DataFrame, known: Known) -> Iterator[Row]:
    for row in work.iter_rows(named=True):
        yield row["kind"], row["name"], row["start_ns"], row["end_ns"], _tell(row, known), row["key"]


def _tell(row: dict[str, Any], known: Known) -> str | None:
    position = row["position"]
    activity = known.sequence.activities[position] if known.sequence and position is not None else None
    operator = activity.operator if activity else None
    piece = known.piece(position)
    return details(
        operator=operator.name if operator else None,
        shapes=[list(each) for each in operator.dims] if operator else None,
        where=piece.where if piece else None,
        group=known.words(piece.group.label) if piece else None,
        what_became_of_it=piece.group.kind if piece else None,
        matched_by=piece.group.how if piece else None,
        launched_by=row["launched_by"],
        bytes=row["bytes"],
    )


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
    length = max(len(known.pieces), 1)

    def piece_and_step(row: dict[str, Any]) -> tuple[Any, ...]:
        if row["key"] is None:
            return (None,)
        return row["stream"], numbers[id(known.piece(row["position"]))], row["key"] // length

    in_time = work.sort("stream", "start_ns", maintain_order=True).iter_rows(named=True)
    for key, run in itertools.groupby(in_time, key=piece_and_step):
        rows = list(run)
        piece = known.piece(rows[0]["position"])
        if key == (None,) or piece is None:
            continue
        group = piece.group
        told = details(
            matched_by=group.how,
            where=piece.where,
            kernels_here=len(rows),
            kernels_of_A_per_step=sum(each.count for each in group.a),
            kernels_of_B_per_step=sum(each.count for each in group.b),
            change_in_us_per_step=round(group.delta_us, 3),
        )
        end = max(row["end_ns"] for row in rows)
        yield "group", f"{group.kind}: {known.words(group.label)}", rows[0]["start_ns"], end, told, None
