"""One recording as a panel: findings first, then the GPU's streams, then the host's threads."""

import numpy as np
import polars as pl
from msgspec.structs import replace

from tracekit import interval
from tracekit.analysis.devices import busy_intervals, measure_steps
from tracekit.analysis.drawing.kernels import Known, draw_groups, draw_streams, place_work
from tracekit.analysis.idle import list_gaps, main_cause
from tracekit.analysis.queue import waiting_over_time
from tracekit.analysis.window import Scope, Span, WindowKind, find_named_or_steps, find_scope
from tracekit.model.analysis import StepUse
from tracekit.model.picture import Counter, Panel, Track
from tracekit.model.trace import Trace
from tracekit.slices import Row, as_slices, details, in_order

#: The shown time is cut into so many equal slices for the share in which a GPU was busy.
SLICES = 1000


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
        walls = tuple(
            StepUse(span.index, (span.end_ns - span.start_ns) / 1e3, None, None, None, None) for span in spans
        )
        tracks = (*_draw_steps(kind, walls, spans, wall_us), *_draw_threads(trace))
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
    """From the first start to the last end of anything."""
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
    """From the start of each step on the host to its end there or on the GPU. `wall_us` is an unprofiled call's median.
    Empty when the whole trace is the window."""
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
