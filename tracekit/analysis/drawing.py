"""A picture of what is known of recordings: each a panel of findings, the GPU's streams, groups of work and the host's
threads; and arrows from one side's work to the other's."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from tracekit import interval
from tracekit.analysis.devices import busy_intervals, measure_steps, time_steps
from tracekit.analysis.idle import list_gaps, main_cause
from tracekit.analysis.kernels import in_launch_order
from tracekit.analysis.queue import waiting_over_time
from tracekit.analysis.window import Scope, Span, WindowKind, find_named_or_steps, find_scope
from tracekit.model.analysis import StepUse
from tracekit.model.groups import Label
from tracekit.model.matching import MatchedWork, Matching
from tracekit.model.picture import Counter, Panel, Track
from tracekit.model.sequence import Sequence
from tracekit.model.trace import Trace
from tracekit.slices import ARROWS, Row, as_slices, details, in_order

#: What they are called in a viewer's list.
ARROWS_ARE = "eager work and its compiled counterpart"
#: The shown time is cut into so many equal slices for the share in which a GPU was busy.
SLICES = 1000


class Known(Struct, frozen=True):
    """What is known of a side's work by position: the activity itself, and the piece it is in. `words` says what a
    group is called."""

    sequence: Sequence | None = None
    pieces: tuple[MatchedWork | None, ...] = ()
    words: Callable[[Label], str] = str

    def piece(self, position: int | None) -> MatchedWork | None:
        return self.pieces[position] if position is not None and self.pieces else None


def known_of(matching: Matching | None, side: str, words: Callable[[Label], str] = str) -> Known:
    """That of side `a` or `b`."""
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
    streams = work.sort("device", "stream", maintain_order=True).partition_by("device", "stream", as_dict=True)
    return tuple(
        Track(f"GPU {device}{'' if stream is None else f' stream {stream}'}", as_slices(_activity_rows(rows, known)))
        for (device, stream), rows in streams.items()
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
    pairs: list[tuple[str, int, int, int, int]] = []
    for work in matching.work:
        if work.a and work.b:
            others = work.b if len(work.a) == len(work.b) else work.b[:1] * len(work.a)
            pairs += [(work.group.kind, 0, one, 1, other) for one, other in zip(work.a, others, strict=True)]
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


def draw_panel(
    trace: Trace,
    name: str,
    *,
    window: str = "auto",
    steps: tuple[int, int] | None = None,
    known: Known = Known(),  # noqa: B008 (frozen)
    wall_us: float | None = None,
) -> Panel:
    """What the trace shows of its window, from the window's start to its end; what reaches over an edge is cut there.

    `known` are a sequence of the same form and the pieces its work was matched in. `wall_us` is what an unprofiled call
    takes. Without GPU activity only the host's tracks are there. Raises TracekitError when nothing matches `window`.
    """
    if not trace.activities.height:
        kind, spans = find_named_or_steps(trace, window, steps)
        edges = [moment for span in spans for moment in (span.start_ns, span.end_ns)] or [*_extent(trace)]
        tracks = (*_draw_steps(kind, time_steps(spans), spans, wall_us), *_draw_threads(trace))
        return _cut(Panel(name, tracks, ()), min(edges), max(edges))
    scope = find_scope(trace, window, steps)
    begin, end = _extent(trace)
    if scope.kind != "whole":
        begin, end = scope.origin_ns, max(int(each[-1, 1]) for each in scope.windows.values() if len(each))
    placed = place_work(scope, known.sequence)
    tracks = (
        *_draw_steps(scope.kind, measure_steps(trace, scope), scope.spans, wall_us),
        *draw_groups(placed, known),
        *_draw_gaps(trace, scope),
        *draw_streams(placed, scope, known),
        *_draw_threads(trace),
    )
    return _cut(Panel(name, tracks, _draw_curves(trace, scope, begin, end)), begin, end)


def _extent(trace: Trace) -> tuple[int, int]:
    tables = [each for each in (trace.activities, trace.calls, trace.host) if each.height]
    edges = [each.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0) for each in tables] or [(0, 0)]
    return min(first for first, _ in edges), max(last for _, last in edges)


def _cut(panel: Panel, begin_ns: int, end_ns: int) -> Panel:
    """Only what lies between the two moments, in time since the first; a curve begins with the value it had then."""
    tracks: list[Track] = []
    for track in panel.tracks:
        shown = track.slices.filter((pl.col("end_ns") >= begin_ns) & (pl.col("start_ns") <= end_ns))
        if shown.height:
            times = pl.col("start_ns", "end_ns").clip(begin_ns, end_ns) - begin_ns
            tracks.append(replace(track, slices=shown.with_columns(times)))
    counters: list[Counter] = []
    for curve in panel.counters:
        at = pl.col("at_ns")
        before = curve.points.filter(at <= begin_ns).tail(1).with_columns(at_ns=pl.lit(begin_ns, dtype=pl.Int64))
        points = pl.concat([before, curve.points.filter((at > begin_ns) & (at <= end_ns))])
        counters.append(replace(curve, points=points.with_columns(at - begin_ns)))
    return replace(panel, tracks=tuple(tracks), counters=tuple(counters))


def _draw_steps(
    kind: WindowKind, steps: tuple[StepUse, ...], spans: tuple[Span, ...], wall_us: float | None
) -> tuple[Track, ...]:
    """From the start of each step on the host to its end there or on the GPU; empty when the whole trace is the
    window."""
    rows: list[Row] = []
    word = "step" if kind == "steps" else "span"
    for step, span in zip(steps, spans, strict=True):
        facts = details(
            wall_us=step.wall_us,
            busy_us=step.busy_us,
            idle_us=step.idle_us,
            kernels=step.kernels,
            launches=step.launches,
            unprofiled_call_us=wall_us,
        )
        end = span.start_ns + round(step.wall_us * 1000)
        rows.append(("step", f"{word} {step.index}", span.start_ns, end, facts, None))
    return (Track("steps", as_slices(rows)),) if rows else ()


def _draw_gaps(trace: Trace, scope: Scope) -> tuple[Track, ...]:
    """One track a device: each idle gap, named after the cause that takes most of it."""
    rows: dict[int, list[Row]] = {}
    for gap in list_gaps(trace, scope):
        start = scope.origin_ns + round(gap.start_us * 1000)
        facts = details(
            causes_us=gap.causes,
            launched_by=gap.launched_by,
            exposed_by=gap.sync,
            host_us={each.name or "nothing recorded": each.us for each in gap.host},
            where=gap.where.words if gap.where else None,
        )
        end = start + round(gap.duration_us * 1000)
        rows.setdefault(gap.device, []).append(("idle", main_cause(gap), start, end, facts, None))
    return tuple(Track(f"idle, GPU {device}", as_slices(rows[device])) for device in sorted(rows))


def _draw_threads(trace: Trace) -> tuple[Track, ...]:
    """One track a thread: spans, operators, Python functions and API calls, as they nest."""
    shared = ["kind", "name", "start_ns", "end_ns", "thread", "details", "key"]
    # The column holds the JSON of a list.
    shaped = "dims" in trace.host.columns
    inputs = pl.concat_str(pl.lit('{"shapes":'), "dims", pl.lit("}")) if shaped else pl.lit(None, dtype=pl.String)
    correlation = pl.concat_str(pl.lit('{"correlation":'), pl.col("correlation").cast(pl.String), pl.lit("}"))
    key = pl.lit(None, dtype=pl.Int64)
    host = trace.host.with_columns(details=inputs, key=key)
    calls = trace.calls.with_columns(kind=pl.lit("call"), details=correlation, key=key)
    every = pl.concat([host.select(shared), calls.select(shared)])
    return tuple(
        Track(f"thread {trace.threads[thread].tid}", in_order(rows), nests=True, of_host=True)
        for (thread,), rows in sorted(every.partition_by("thread", as_dict=True).items())
    )


def _draw_curves(trace: Trace, scope: Scope, begin_ns: int, end_ns: int) -> tuple[Counter, ...]:
    """Two for each device: its busy share in equal slices of time, and the queue's length at each moment."""
    curves: list[Counter] = []
    edges = np.linspace(begin_ns, end_ns, SLICES + 1).astype(np.int64)
    slices = np.stack((edges[:-1], edges[1:]), axis=1)
    for device in scope.windows:
        busy = interval.covered_within(busy_intervals(trace, device), slices)
        share = np.round(100 * busy / np.maximum(slices[:, 1] - slices[:, 0], 1), 1)
        curves.append(Counter(f"GPU {device} busy", "%", pl.DataFrame({"at_ns": slices[:, 0], "value": share})))
        moments, counts = waiting_over_time(scope, device)
        queue = pl.DataFrame({"at_ns": moments, "value": counts.astype(np.float64)})
        # At one moment the last value counts.
        curves.append(Counter(f"GPU {device} queue", "items", queue.unique("at_ns", keep="last", maintain_order=True)))
    return tuple(curves)
