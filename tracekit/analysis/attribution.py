"""Which operator, or which call of a compiled graph, launched each GPU activity of a step?

Answered from a recording in which the spans of `tracekit.op#N` (operators) or `## Call CompiledFxGraph KEY ##` (graphs,
torch's own) stand around the launches.
"""

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.analysis.kernels import in_launch_order
from tracekit.analysis.nesting import nest
from tracekit.analysis.window import columns, find_scope
from tracekit.interval import Ints
from tracekit.model.provenance import CompiledActivity, TaggedActivity
from tracekit.model.trace import Trace

OPERATOR_SPAN = r"^tracekit\.op#(\d+)$"
GRAPH_CALL = r"^## Call CompiledFxGraph (\S+) ##$"


def find_tagged(trace: Trace) -> tuple[TaggedActivity, ...]:
    """Every activity of the step, in the order of launch, with the number of the operator around its launch."""
    launched = in_launch_order(find_scope(trace, "auto"))
    spans = trace.host.with_columns(number=pl.col("name").str.extract(OPERATOR_SPAN, 1).cast(pl.Int64))
    spans = spans.filter(pl.col("number").is_not_null())
    (numbers,) = columns(spans, "number")
    return tuple(
        TaggedActivity(name, int(numbers[row]) if row >= 0 else None)
        for name, row in zip(launched["name"], _spans_around(spans, launched).tolist(), strict=True)
    )


def find_graph_calls(trace: Trace) -> tuple[tuple[str, ...], tuple[CompiledActivity, ...]]:
    """The keys of the graphs that were called, in order, and every GPU activity of the step, in the order of launch,
    with the call around its launch and the operator directly in that call."""
    launched = in_launch_order(find_scope(trace, "auto"))
    spans = trace.host.filter(pl.col("kind").is_in(["op", "annotation"])).with_row_index("row")
    calls = spans.filter(pl.col("name").str.contains(GRAPH_CALL))
    keys = tuple(calls["name"].str.extract(GRAPH_CALL, 1).to_list())
    activities: list[CompiledActivity] = []
    ordinals: dict[int, dict[int, int]] = {}
    # The row of the operator that stands directly in a graph call and around the launch; -1 for none.
    moments, launching = columns(launched, "called_ns", "launched_on")
    graph_rows = set(calls["row"].to_list())
    operators = np.full(len(moments), -1, dtype=np.int64)
    for thread in calls["thread"].unique().sort():
        rows, starts, ends = columns(spans.filter(pl.col("thread") == thread), "row", "start_ns", "end_ns")
        nesting = nest(starts, ends)
        some = np.flatnonzero(launching == thread)
        at = interval.containing(nesting.starts, nesting.ends, moments[some])
        for launch, stretch in zip(some[at >= 0].tolist(), at[at >= 0].tolist(), strict=True):
            event, below = int(nesting.rows[stretch]), -1
            while event >= 0 and int(rows[event]) not in graph_rows:
                below, event = int(rows[event]), int(nesting.parents[event])
            operators[launch] = below if event >= 0 else -1
    around = _spans_around(calls, launched)
    for name, call, operator in zip(launched["name"], around.tolist(), operators.tolist(), strict=True):
        if call < 0 or operator < 0:
            activities.append(CompiledActivity(name, call if call >= 0 else None))
            continue
        order = ordinals.setdefault(call, {})
        ordinal = order.setdefault(operator, len(order))
        activities.append(CompiledActivity(name, call, spans["name"][operator], ordinal))
    return keys, tuple(activities)


def _spans_around(spans: pl.DataFrame, launched: pl.DataFrame) -> Ints:
    """The position in `spans` of the one around each launch, on its own thread; -1 for none. Spans of one thread follow
    each other and never overlap."""
    starts, ends, threads = columns(spans, "start_ns", "end_ns", "thread")
    moments, launching = columns(launched, "called_ns", "launched_on")
    found = np.full(len(moments), -1, dtype=np.int64)
    for thread in np.unique(threads):
        own, some = np.flatnonzero(threads == thread), np.flatnonzero(launching == thread)
        at = interval.containing(starts[own], ends[own], moments[some])
        found[some] = np.where(at >= 0, own[at], -1)
    return found
