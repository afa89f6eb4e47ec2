"""Which stretch of the trace is looked at, and what belongs to it?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis import interval
from tracekit.analysis.interval import Intervals
from tracekit.analysis.links import link_launches
from tracekit.errors import TracekitError
from tracekit.model.trace import Trace

WindowKind = Literal["steps", "span", "whole"]

#: Spans that mark steps, the first kind that is there counts: tracekit's own, then torch.profiler's schedule.
STEP_MARKS = ("tracekit.step#", "ProfilerStep#")
#: Profilers before 2023 wrote `ProfilerStep#N` as an operator.
MARKING_KINDS = ("annotation", "op")


@dataclass(frozen=True, slots=True)
class Span:
    """A step, or a span the user named: one host event."""

    index: int
    thread: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a trace that is analysed.

    `activities` are those that belong, with two columns more: `call`, the row of `calls` that launched it (None: not
    recorded), and `step`, the position in `spans`. `linked` are the activities of the whole trace with their `call`:
    what was launched outside the window may run inside it. `calls` is the trace's table with its row number. `windows`
    is the analysed time of each device and `step_windows[device][i]` that of step i (nanoseconds). `doubtful` counts
    the activities that could belong to several steps, because the spans of several threads overlap.
    """

    kind: WindowKind
    spans: tuple[Span, ...]
    activities: pl.DataFrame
    linked: pl.DataFrame
    calls: pl.DataFrame
    windows: dict[int, Intervals]
    step_windows: dict[int, Intervals]
    doubtful: int


def find_scope(trace: Trace, window: str, steps: tuple[int, int] | None = None) -> Scope:
    """What `window` names: `auto` (steps if any are marked, else whole), `steps`, `whole`, or the name or regular
    expression of a host span. `steps` are the first and the last number of the steps that count. Raises TracekitError
    when nothing in the trace matches."""
    linked, calls = link_launches(trace)
    kind, spans = find_named_or_steps(trace, window, steps)
    if kind == "whole":
        bounds = dict.fromkeys(_devices(linked), _extent(linked))
        return Scope("whole", (), linked.with_columns(step=pl.lit(0)), linked, calls, bounds, {}, doubtful=0)
    activities, doubtful = _with_steps(trace, linked, calls, spans)
    by_device = {device: _step_windows(activities, device, spans) for device in _devices(activities)}
    if len({_process(trace, span.thread) for span in spans}) > 1:
        own = {device: _launched_on(trace, activities, calls, spans, device) for device in by_device}
        by_device = {device: _only(each, own[device]) for device, each in by_device.items()}
    windows = {device: interval.union(each[:, 0], each[:, 1]) for device, each in by_device.items()}
    return Scope(kind, spans, activities, linked, calls, windows, by_device, doubtful)


def find_named_or_steps(
    trace: Trace, window: str, steps: tuple[int, int] | None = None
) -> tuple[WindowKind, tuple[Span, ...]]:
    """The spans that `window` names, and what they are. Raises TracekitError when nothing in the trace matches."""
    if not window:
        raise TracekitError("--window takes steps, whole, or the name of a span")
    if steps is not None:
        return "steps", _chosen_steps(trace, window, steps)
    if window == "whole":
        return "whole", ()
    if window in ("auto", "steps"):
        spans = find_steps(trace)
        if not spans and window == "steps":
            raise TracekitError(f"{trace.path} marks no steps; pass --window whole, or the name of a span in it")
        return ("steps", spans) if spans else ("whole", ())
    return "span", _find_named(trace, window)


def _chosen_steps(trace: Trace, window: str, steps: tuple[int, int]) -> tuple[Span, ...]:
    if window not in ("auto", "steps"):
        raise TracekitError(f"--steps chooses among marked steps: leave --window {window} out")
    marked = find_steps(trace)
    chosen = tuple(span for span in marked if steps[0] <= span.index <= steps[1])
    if not chosen:
        numbers = [span.index for span in marked]
        there = f"its steps are {min(numbers)} to {max(numbers)}" if marked else "it marks no steps"
        raise TracekitError(f"{trace.path} has no step {steps[0]} to {steps[1]}: {there}")
    return chosen


def find_steps(trace: Trace) -> tuple[Span, ...]:
    """The marked steps in order of time; empty when none are marked."""
    for mark in STEP_MARKS:
        marked = trace.host.filter(trace.host["name"].str.starts_with(mark))
        spans = _outermost(
            marked.filter(pl.col("kind").is_in(MARKING_KINDS) & pl.col("name").str.contains(r"^[^#]*#\d+$"))
        )
        if spans.height:
            numbers = spans["name"].str.extract(r"#(\d+)$").cast(pl.Int64, strict=False)
            # A number that no column holds is no step's: the step is then called after its place.
            return _as_spans(spans, numbers.fill_null(pl.int_range(spans.height, eager=True)).to_list())
    return ()


def holds_window(trace: Trace, window: str) -> bool:
    """Whether the trace has a host span of that name; what is no name of a span every trace has."""
    return window in ("auto", "steps", "whole") or _named(trace, window).height > 0


def _find_named(trace: Trace, name: str) -> tuple[Span, ...]:
    named = _named(trace, name)
    if not named.height:
        host = _nameable(trace)
        there = host.filter(pl.col("kind") == "annotation")["name"].unique(maintain_order=True).head(8).to_list()
        listed = f"it has {', '.join(there)}" if there else "it has no annotations"
        raise TracekitError(
            f"no span of {trace.path} is called {name!r}, nor matches it as a pattern of the whole name"
            f"{_near(host, name)}: {listed}; or pass --window whole"
        )
    spans = _outermost(named)
    return _as_spans(spans, list(range(spans.height)))


def _nameable(trace: Trace) -> pl.DataFrame:
    return trace.host.filter(pl.col("kind").is_in(["annotation", "op", "python"]))


def _named(trace: Trace, name: str) -> pl.DataFrame:
    """The host events of this name, else those whose whole name matches it. Raises TracekitError for no pattern."""
    host = _nameable(trace)
    named = host.filter(pl.col("name") == name)
    if named.height:
        return named
    try:
        pattern = re.compile(name)
    except re.error as error:
        raise TracekitError(f"--window {name!r} is neither a span's name nor a regular expression ({error})") from None
    return host.filter(pl.col("name").is_in([each for each in host["name"].unique() if pattern.fullmatch(each)]))


def _near(host: pl.DataFrame, name: str) -> str:
    """A pattern that does match, where part of some name is what was asked for."""
    parts = host.filter(pl.col("name").str.contains(name, literal=True))
    return f" (--window {'.*' + re.escape(name) + '.*'!r} matches {parts['name'][0]})" if parts.height else ""


def _outermost(spans: pl.DataFrame) -> pl.DataFrame:
    """Without those that lie wholly inside an earlier one of their thread."""
    reach = pl.col("end_ns").cum_max().shift(1).over("thread")
    return spans.filter((pl.col("end_ns") > reach) | reach.is_null())


def _as_spans(spans: pl.DataFrame, indexes: list[int]) -> tuple[Span, ...]:
    rows = zip(indexes, spans["thread"], spans["start_ns"], spans["end_ns"], strict=True)
    return tuple(Span(*row) for row in rows)


def _with_steps(
    trace: Trace, activities: pl.DataFrame, calls: pl.DataFrame, spans: tuple[Span, ...]
) -> tuple[pl.DataFrame, int]:
    """Only the activities that belong to a step, and how many of them could belong to several.

    An activity is of the step whose host span contains the start of its launch or, where that is not recorded, its own.
    A span of the launching thread comes before those of other threads; of these the one that began last counts. Spans
    of another process count only where the launching one has none.
    """
    launched = calls.select("call", launch_ns="start_ns", launched_on="thread")
    joined = activities.join(launched, on="call", how="left", maintain_order="left")
    moments = joined.select(pl.coalesce("launch_ns", "start_ns")).to_series().to_numpy()
    (threads,) = columns(joined, "launched_on")
    by_thread = {thread: _containing(spans, thread, moments) for thread in sorted({span.thread for span in spans})}
    marking = {_process(trace, thread) for thread in by_thread}
    if len(marking) > 1:
        for thread, own in by_thread.items():
            others = marking - {_process(trace, thread)}
            # The last stands for launches that were not recorded, whose thread is -1.
            foreign = np.array([*(each.pid in others for each in trace.threads), False], dtype=bool)
            own[foreign[threads]] = -1
    every = np.stack(list(by_thread.values()))
    # Spans are in order of their start, so the largest number is the one that began last.
    step = every.max(axis=0)
    several = (every >= 0).sum(axis=0) > 1
    for thread, own in by_thread.items():
        mine = (threads == thread) & (own >= 0)
        step[mine] = own[mine]
        several[mine] = False
    inside = pl.Series(step >= 0)
    return joined.drop("launch_ns", "launched_on").with_columns(step=pl.Series(step)).filter(inside), int(several.sum())


def _containing(spans: tuple[Span, ...], thread: int, moments: NDArray[np.int64]) -> NDArray[np.int64]:
    """The thread's span, by its position in `spans`, in which each moment lies; -1 where it lies in none."""
    own = np.array([i for i, span in enumerate(spans) if span.thread == thread], dtype=np.int64)
    starts = np.array([spans[i].start_ns for i in own], dtype=np.int64)
    ends = np.array([spans[i].end_ns for i in own], dtype=np.int64)
    # None lies inside another, so the one that began last also ends last.
    at = np.searchsorted(starts, moments, side="right") - 1
    inside = (at >= 0) & (moments < ends[at])
    return np.where(inside, own[at], -1)


def _process(trace: Trace, thread: int) -> str:
    return trace.threads[thread].pid


def _launched_on(
    trace: Trace, activities: pl.DataFrame, calls: pl.DataFrame, spans: tuple[Span, ...], device: int
) -> NDArray[np.bool_]:
    """Which of the spans are of a process that launched on the device; all where no launch is recorded."""
    launchers = activities.filter(pl.col("device") == device).join(calls.select("call", "thread"), on="call")["thread"]
    processes = {_process(trace, thread) for thread in launchers.unique()}
    return np.array([not processes or _process(trace, span.thread) in processes for span in spans], dtype=bool)


def _only(windows: Intervals, some: NDArray[np.bool_]) -> Intervals:
    """The others take no time of the device."""
    return np.where(some[:, None], windows, windows[:, :1])


def _step_windows(activities: pl.DataFrame, device: int, spans: tuple[Span, ...]) -> Intervals:
    """From the start of a step's host span to its end, or to the end of its last activity where that is later."""
    own = activities.filter(pl.col("device") == device)
    last: dict[int, int] = dict(own.group_by("step").agg(pl.col("end_ns").max()).iter_rows())
    bounds = [(span.start_ns, max(span.end_ns, last.get(i, span.end_ns))) for i, span in enumerate(spans)]
    return np.array(bounds, dtype=np.int64).reshape(-1, 2)


def _extent(activities: pl.DataFrame) -> Intervals:
    return np.array([[activities["start_ns"].min(), activities["end_ns"].max()]], dtype=np.int64)


def _devices(activities: pl.DataFrame) -> list[int]:
    return sorted(activities["device"].unique())


def touching(scope: Scope, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these stretches lie at least partly in the window of some device."""
    found = np.zeros(len(starts), dtype=bool)
    for window in scope.windows.values():
        found |= interval.touching(starts, ends, window)
    return found


def columns(table: pl.DataFrame, *names: str) -> tuple[NDArray[np.int64], ...]:
    """Integer columns as arrays; missing values become -1."""
    return tuple(_column(table[name]) for name in names)


def _column(series: pl.Series) -> NDArray[np.int64]:
    known = series.fill_null(-1) if series.null_count() else series
    return known.to_numpy().astype(np.int64, copy=False)
