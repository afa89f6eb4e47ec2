"""One recording as a panel: findings first, then the GPU's streams, then the host's threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from tracekit.analysis.drawing.curves import draw_curves
from tracekit.analysis.drawing.findings import draw_gaps, draw_steps
from tracekit.analysis.drawing.host import draw_threads
from tracekit.analysis.drawing.kernels import Known, draw_groups, draw_streams
from tracekit.analysis.drawing.placing import place_work
from tracekit.analysis.steps import measure_steps
from tracekit.analysis.window import Scope, Span, WindowKind, find_named_or_steps, find_scope
from tracekit.model.analysis import StepUse
from tracekit.model.labels import Label
from tracekit.model.picture import Matching, Panel
from tracekit.model.trace import Trace


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
        return _host_alone(trace, name, *find_named_or_steps(trace, window, steps), wall_us)
    scope = find_scope(trace, window, steps)
    begin, end = _bounds(trace, scope)
    placed = place_work(scope, known.sequence)
    tracks = (
        *draw_steps(scope.kind, measure_steps(trace, scope), scope.spans, wall_us),
        *draw_groups(placed, known),
        *draw_gaps(trace, scope),
        *draw_streams(placed, scope, known),
        *draw_threads(trace),
    )
    return _cut(Panel(name, tracks, draw_curves(trace, scope, begin, end)), begin, end)


def _host_alone(trace: Trace, name: str, kind: WindowKind, spans: tuple[Span, ...], wall_us: float | None) -> Panel:
    edges = [moment for span in spans for moment in (span.start_ns, span.end_ns)] or [*_extent(trace)]
    walls = tuple(StepUse(span.index, (span.end_ns - span.start_ns) / 1e3, None, None, None, None) for span in spans)
    tracks = (*draw_steps(kind, walls, spans, wall_us), *draw_threads(trace))
    return _cut(Panel(name, tracks, ()), min(edges), max(edges))


def _cut(panel: Panel, begin_ns: int, end_ns: int) -> Panel:
    """Only what lies between the two moments, in time since the first."""
    tracks = (replace(track, slices=_within(track.slices, begin_ns, end_ns)) for track in panel.tracks)
    counters = (replace(curve, points=_points_within(curve.points, begin_ns, end_ns)) for curve in panel.counters)
    return replace(panel, tracks=tuple(track for track in tracks if track.slices.height), counters=tuple(counters))


def known_of(matching: Matching | None, side: str, words: Callable[[Label], str] = str) -> Known:
    """What is known of side `a` or `b`; `words` says what a group is called."""
    if matching is None:
        return Known()
    sequence = matching.a if side == "a" else matching.b
    found = {at: work for work in matching.work for at in (work.a if side == "a" else work.b)}
    return Known(sequence, tuple(found.get(at) for at in range(len(sequence.activities))), words)


def _bounds(trace: Trace, scope: Scope) -> tuple[int, int]:
    """The window's first moment and its last, of all devices; of a whole trace those of all it holds."""
    if scope.kind == "whole":
        return _extent(trace)
    windows = [window for window in scope.windows.values() if len(window)]
    return min(int(each[0, 0]) for each in windows), max(int(each[-1, 1]) for each in windows)


def _extent(trace: Trace) -> tuple[int, int]:
    """From the first start to the last end of anything."""
    tables = [each for each in (trace.activities, trace.calls, trace.host) if each.height]
    edges = [each.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0) for each in tables] or [(0, 0)]
    return min(first for first, _ in edges), max(last for _, last in edges)


def _within(slices: pl.DataFrame, begin_ns: int, end_ns: int) -> pl.DataFrame:
    touching = slices.filter((pl.col("end_ns") >= begin_ns) & (pl.col("start_ns") <= end_ns))
    return touching.with_columns(pl.col("start_ns", "end_ns").clip(begin_ns, end_ns) - begin_ns)


def _points_within(points: pl.DataFrame, begin_ns: int, end_ns: int) -> pl.DataFrame:
    """The curve from the first moment on, with the value it had then."""
    before = points.filter(pl.col("at_ns") <= begin_ns).tail(1).with_columns(at_ns=pl.lit(begin_ns, dtype=pl.Int64))
    inside = points.filter((pl.col("at_ns") > begin_ns) & (pl.col("at_ns") <= end_ns))
    return pl.concat([before, inside]).with_columns(pl.col("at_ns") - begin_ns)
