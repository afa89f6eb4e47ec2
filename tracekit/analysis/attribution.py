"""Which operator, or which call of a compiled graph, launched each GPU activity of a step?

Answered from a recording in which the spans of `tracekit.op#N` (operators) or `## Call CompiledFxGraph KEY ##` (graphs,
torch's own) stand around the launches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis.launches import in_launch_order
from tracekit.analysis.nesting import nest
from tracekit.analysis.window import columns, find_scope
from tracekit.model.provenance import CompiledActivity, TaggedActivity
from tracekit.model.trace import Trace

Ints = NDArray[np.int64]

OPERATOR_SPAN = r"^tracekit\.op#(\d+)$"
GRAPH_CALL = re.compile(r"^## Call CompiledFxGraph (\S+) ##$")


def find_tagged(trace: Trace) -> tuple[TaggedActivity, ...]:
    """Every GPU activity of the step, in the order of launch, with the number of the operator around its launch."""
    launched = in_launch_order(find_scope(trace, "auto"))
    spans = trace.host.with_columns(number=pl.col("name").str.extract(OPERATOR_SPAN, 1).cast(pl.Int64))
    spans = spans.filter(pl.col("number").is_not_null())
    found = _containing(spans, launched)
    (numbers,) = columns(spans, "number")
    return tuple(
        TaggedActivity(name, int(numbers[row]) if row >= 0 else None)
        for name, row in zip(launched["name"], found.tolist(), strict=True)
    )


def find_graph_calls(trace: Trace) -> tuple[tuple[str, ...], tuple[CompiledActivity, ...]]:
    """The keys of the graphs that were called, in order, and every GPU activity of the step, in the order of launch,
    with the call around its launch and the operator directly in that call."""
    launched = in_launch_order(find_scope(trace, "auto"))
    spans = trace.host.filter(pl.col("kind").is_in(["op", "annotation"])).with_row_index("row")
    calls = spans.filter(pl.col("name").str.contains(GRAPH_CALL.pattern))
    keys = tuple(match[1] for name in calls["name"] if (match := GRAPH_CALL.match(name)))
    found = _containing(calls, launched)
    innermost = _directly_inside(spans, calls, launched)
    activities: list[CompiledActivity] = []
    ordinals: dict[int, dict[int, int]] = {}
    names = spans["name"]
    for name, call, child in zip(launched["name"], found.tolist(), innermost.tolist(), strict=True):
        if call < 0 or child < 0:
            activities.append(CompiledActivity(name, call if call >= 0 else None))
            continue
        order = ordinals.setdefault(call, {})
        activities.append(CompiledActivity(name, call, names[child], order.setdefault(child, len(order))))
    return keys, tuple(activities)


def _containing(spans: pl.DataFrame, launched: pl.DataFrame) -> Ints:
    """The position in `spans` of the one around each launch, on its own thread; -1 for none. Spans of one thread follow
    each other and never overlap."""
    starts, ends, threads = columns(spans, "start_ns", "end_ns", "thread")
    moments, launching = columns(launched, "launched_ns", "launched_on")
    found = np.full(len(moments), -1, dtype=np.int64)
    for thread in np.unique(threads):
        own = np.flatnonzero(threads == thread)
        some = np.flatnonzero(launching == thread)
        at = np.searchsorted(starts[own], moments[some], side="right") - 1
        row = own[np.maximum(at, 0)]
        inside = (at >= 0) & (moments[some] < ends[row])
        found[some] = np.where(inside, row, -1)
    return found


@dataclass(frozen=True)
class _Thread:
    """Host events of one thread and how they nest; `rows` are their rows among all."""

    rows: Ints
    parents: Ints
    starts: Ints
    ends: Ints
    innermost: Ints


def _directly_inside(spans: pl.DataFrame, calls: pl.DataFrame, launched: pl.DataFrame) -> Ints:
    """The row of the operator that stands directly in a graph call and around the launch; -1 for none."""
    moments, launching = columns(launched, "launched_ns", "launched_on")
    graph_rows = set(calls["row"].to_list())
    found = np.full(len(moments), -1, dtype=np.int64)
    for thread in sorted(set(calls["thread"].to_list())):
        nested = _nested(spans, thread)
        for i in np.flatnonzero(launching == thread):
            found[i] = _below_a_graph(nested, graph_rows, int(moments[i]))
    return found


def _nested(spans: pl.DataFrame, thread: int) -> _Thread:
    own = spans.filter(pl.col("thread") == thread)
    rows, starts, ends = columns(own, "row", "start_ns", "end_ns")
    nesting = nest(starts, ends)
    return _Thread(rows, nesting.parents, nesting.starts, nesting.ends, nesting.rows)


def _below_a_graph(nested: _Thread, graph_rows: set[int], moment: int) -> int:
    at = int(np.searchsorted(nested.starts, moment, side="right")) - 1
    if at < 0 or moment >= nested.ends[at]:
        return -1
    event = int(nested.innermost[at])
    below = -1
    while event >= 0 and int(nested.rows[event]) not in graph_rows:
        below, event = int(nested.rows[event]), int(nested.parents[event])
    return below if event >= 0 else -1
