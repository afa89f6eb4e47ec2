"""Which stretch of the trace is looked at, and what belongs to it?"""

import re
from typing import Literal, NoReturn

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit import interval
from tracekit.analysis.links import find_queued, link_launches
from tracekit.analysis.nesting import make_line, nest
from tracekit.errors import TracekitError
from tracekit.interval import NEVER, Bools, Intervals, Ints
from tracekit.model.trace import Trace

WindowKind = Literal["steps", "span", "whole"]

#: Spans that mark steps, the first kind that is there counts: tracekit's own, then torch.profiler's schedule.
STEP_MARKS = ("tracekit.step#", "ProfilerStep#")
#: Profilers before 2023 wrote `ProfilerStep#N` as an operator.
MARKING_KINDS = ("annotation", "op")
#: Each step has a window on each device.
MOST_WINDOWS = 100_000
#: What `--window` can name.
NAMEABLE_KINDS = ("annotation", "op", "python")
NO_NUMBER = pl.lit(None, dtype=pl.Int64)


class Span(Struct, frozen=True):
    """A step, or a span the user named: one host event."""

    index: int
    thread: int
    start_ns: int
    end_ns: int


class Scope(Struct, frozen=True):
    """The part of a trace that is analysed.

    `linked` are the activities of the whole trace as `link_launches` gives them, with their launches, and with a column
    `queued` more: what was launched outside the window may run inside it. `activities` are those that belong, with a
    column `step` more, the position in `spans`. `calls` is the trace's table with its row number. `windows` is the
    analysed time of each device and `step_windows[device][i]` that of step i (nanoseconds). `doubtful` counts
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

    @property
    def origin_ns(self) -> int:
        """The first moment of the window, of all devices."""
        return min((int(window[0, 0]) for window in self.windows.values() if len(window)), default=0)


def find_scope(trace: Trace, window: str, steps: tuple[int, int] | None = None) -> Scope:
    """What `window` names: `auto` (steps if any are marked, else whole), `steps`, `whole`, or the name or regular
    expression of a host span. `steps` are the first and the last number of the steps that count. Raises TracekitError
    when nothing in the trace matches."""
    linked, calls = link_launches(trace)
    linked = linked.with_columns(queued=find_queued(linked))
    kind, spans = find_named_or_steps(trace, window, steps)
    if kind == "whole":
        extent = np.array([[linked["start_ns"].min(), linked["end_ns"].max()]], dtype=np.int64)
        windows = dict.fromkeys(sorted(linked["device"].unique()), extent)
        return Scope("whole", (), linked.with_columns(step=pl.lit(0)), linked, calls, windows, {}, doubtful=0)
    activities, doubtful = _with_steps(trace, linked, spans)
    devices = sorted(activities["device"].unique())
    if len(devices) * len(spans) > MOST_WINDOWS:
        raise TracekitError(
            f"{trace.path} has {len(spans):,} steps on {len(devices):,} GPUs, more than are analyzed together; pass"
            f" --steps N-M with at most {MOST_WINDOWS // len(devices):,} steps"
        )
    processes = [trace.threads[span.thread].pid for span in spans]
    by_device: dict[int, Intervals] = {}
    for device in devices:
        # From the start of a step's host span to its end, or to the end of its last activity where that is later. Of
        # several processes those that launched nothing on the device take no time of it.
        own = activities.filter(pl.col("device") == device)
        edges = _edges(spans)
        np.maximum.at(edges[:, 1], *columns(own, "step", "end_ns"))
        launching = {trace.threads[thread].pid for thread in own["launched_on"].drop_nulls().unique()}
        if len(set(processes)) > 1 and launching:
            edges[:, 1] = np.where([each in launching for each in processes], edges[:, 1], edges[:, 0])
        by_device[device] = edges
    windows = {device: interval.union(each[:, 0], each[:, 1]) for device, each in by_device.items()}
    return Scope(kind, spans, activities, linked, calls, windows, by_device, doubtful)


def find_named_or_steps(
    trace: Trace, window: str, steps: tuple[int, int] | None = None
) -> tuple[WindowKind, tuple[Span, ...]]:
    """The spans that `window` names, and what they are. Raises TracekitError when nothing in the trace matches."""
    if not window:
        raise TracekitError("--window takes steps, whole, or the name of a span")
    if steps is not None:
        first, last = steps
        if window not in ("auto", "steps"):
            raise TracekitError(f"--steps selects marked steps: leave --window {window} out")
        marked = find_steps(trace)
        if not marked:
            raise TracekitError(f"{trace.path} has no marked steps: leave --steps out, or pass --window NAME")
        numbers = [span.index for span in marked]
        if not any(first <= number <= last for number in numbers):
            asked = f"step {first}" if first == last else f"steps {first} to {last}"
            raise TracekitError(f"{trace.path} has no {asked}: its steps are {min(numbers)} to {max(numbers)}")
        return "steps", tuple(span for span in marked if first <= span.index <= last)
    if window == "whole":
        return "whole", ()
    if window in ("auto", "steps"):
        spans = find_steps(trace)
        if not spans and window == "steps":
            raise TracekitError(f"{trace.path} has no marked steps; pass --window whole, or the name of a span")
        return ("steps", spans) if spans else ("whole", ())
    spans = _outermost(_named(trace, window))
    if not spans:
        _refuse_name(trace, window)
    return "span", spans


def find_steps(trace: Trace) -> tuple[Span, ...]:
    """The marked steps in order of time; empty when none are marked."""
    for mark in STEP_MARKS:
        marked = trace.host.filter(trace.host["name"].str.starts_with(mark))
        marked = marked.filter(pl.col("kind").is_in(MARKING_KINDS) & pl.col("name").str.contains(r"^[^#]*#\d+$"))
        if marked.height:
            # A number that no column holds is no step's: the step is then called after its place.
            return _outermost(marked, pl.col("name").str.extract(r"#(\d+)$").cast(pl.Int64, strict=False))
    return ()


def holds_window(trace: Trace, window: str) -> bool:
    """Whether the trace has a host span of that name; what is no name of a span every trace has."""
    return window in ("auto", "steps", "whole") or _named(trace, window).height > 0


def _named(trace: Trace, name: str) -> pl.DataFrame:
    """The host events of this name, else those whose whole name matches it. Raises TracekitError for no pattern."""
    host = trace.host.filter(pl.col("kind").is_in(NAMEABLE_KINDS))
    named = host.filter(pl.col("name") == name)
    if named.height:
        return named
    try:
        pattern = re.compile(name)
    except re.error as error:
        raise TracekitError(
            f"{trace.path}: --window {name!r} is neither the name of a span nor a regular expression ({error})"
        ) from None
    return host.filter(pl.col("name").is_in([each for each in host["name"].unique() if pattern.fullmatch(each)]))


def _refuse_name(trace: Trace, name: str) -> NoReturn:
    host = trace.host.filter(pl.col("kind").is_in(NAMEABLE_KINDS))
    there = host.filter(pl.col("kind") == "annotation")["name"].unique(maintain_order=True).head(8).to_list()
    listed = f"it has {', '.join(there)}" if there else "it has no annotations"
    # A pattern that does match, where part of some name is what was asked for.
    parts = host.filter(pl.col("name").str.contains(name, literal=True))["name"].head(1)
    near = f" (--window {'.*' + re.escape(name) + '.*'!r} matches {parts[0]})" if len(parts) else ""
    raise TracekitError(
        f"{trace.path} has no span named {name!r}, and none matches it as a regular expression{near}: {listed}; or pass"
        " --window whole"
    )


def _outermost(spans: pl.DataFrame, number: pl.Expr = NO_NUMBER) -> tuple[Span, ...]:
    """Without those that lie wholly inside an earlier one of their thread. They are numbered by their place where
    `number` gives none."""
    reach = pl.col("end_ns").cum_max().shift(1).over("thread")
    outer = spans.filter((pl.col("end_ns") > reach) | reach.is_null())
    numbered = outer.select(pl.coalesce(number, pl.int_range(pl.len())), "thread", "start_ns", "end_ns")
    return tuple(Span(*row) for row in numbered.iter_rows())


def union_of(spans: tuple[Span, ...]) -> Intervals:
    """The time of all the spans."""
    return interval.union(*_edges(spans).T)


def _edges(spans: tuple[Span, ...]) -> Intervals:
    return np.array([(span.start_ns, span.end_ns) for span in spans], dtype=np.int64).reshape(-1, 2)


def beginning_within(events: pl.DataFrame, spans: tuple[Span, ...]) -> pl.DataFrame:
    """The events that begin in one of the spans, on whatever thread; all of them where there are no spans."""
    (starts,) = columns(events, "start_ns")
    return events.filter(interval.touching(starts, starts + 1, union_of(spans))) if spans else events


def _with_steps(trace: Trace, linked: pl.DataFrame, spans: tuple[Span, ...]) -> tuple[pl.DataFrame, int]:
    """Only the activities that belong to a step, and how many of them could belong to several.

    An activity is of the step whose host span contains the start of its launch or, where that is not recorded, its own.
    A span of the launching thread comes before those of other threads; of these the one that began last counts. Spans
    of another process count only where the launching one has none.
    """
    moments = linked.select(pl.coalesce("called_ns", "start_ns")).to_series().to_numpy()
    (threads,) = columns(linked, "launched_on")
    starts, ends, marking = np.array([(span.start_ns, span.end_ns, span.thread) for span in spans], dtype=np.int64).T
    # First the thread's own spans.
    line = make_line(trace, np.unique(marking))
    placed = line.place(marking, starts)
    order = np.argsort(placed, kind="stable")
    at = interval.containing(placed[order], line.place(marking, ends)[order], line.place(threads, moments))
    own = np.where(at >= 0, order[at], -1)
    # Of one thread's spans that overlap the later one counts.
    following = np.append(np.where(np.diff(marking[order]) == 0, starts[order[1:]], NEVER), NEVER)
    until = ends.copy()
    until[order] = np.minimum(ends[order], following)
    # Then those of the process, by its number; where it has none, and for launches that were not recorded, of all.
    numbers = {pid: number for number, pid in enumerate(dict.fromkeys(trace.threads[each].pid for each in marking))}
    of_thread = np.array([*(numbers.get(each.pid, -1) for each in trace.threads), -1], dtype=np.int64)
    line = make_line(trace, range(-1, len(numbers)))
    lanes = np.concatenate((np.full(len(spans), -1), of_thread[marking]))
    begins, overs = (line.place(lanes, np.tile(each, 2)) for each in (starts, until))
    order = np.lexsort((-overs, begins))
    nesting = nest(begins[order], overs[order])
    asked = line.place(of_thread[threads], moments)
    at = interval.containing(nesting.starts, nesting.ends, asked)
    step = np.where(own >= 0, own, np.where(at >= 0, order[nesting.rows[at]] % len(spans), -1))
    open_ = np.searchsorted(begins[order], asked, side="right") - np.searchsorted(np.sort(overs), asked, side="right")
    several = (own < 0) & (open_ > 1)
    return linked.with_columns(step=pl.Series(step)).filter(pl.col("step") >= 0), int(several.sum())


def touching(scope: Scope, starts: Ints, ends: Ints) -> Bools:
    """Which of these stretches lie at least partly in the window of some device."""
    found = np.zeros(len(starts), dtype=bool)
    for window in scope.windows.values():
        found |= interval.touching(starts, ends, window)
    return found


def columns(table: pl.DataFrame, *names: str) -> tuple[Ints, ...]:
    """Integer columns as arrays; missing values become -1."""
    # Filling nothing takes polars a hundred microseconds.
    every = (each.fill_null(-1) if each.null_count() else each for each in (table[name] for name in names))
    return tuple(each.to_numpy().astype(np.int64, copy=False) for each in every)
