"""What does a recording without a GPU show?"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from tracekit.analysis import interval
from tracekit.analysis.regions import find_regions
from tracekit.analysis.timeline import lay_flat
from tracekit.analysis.window import Span, columns
from tracekit.errors import TracekitError
from tracekit.model.analysis import CpuUse, OperatorTime
from tracekit.model.trace import Trace

#: Inductor names its C++ kernels after the graph they are in; the same kernel of two graphs is one name here.
GRAPH_PREFIX = re.compile(r"^graph_\d+_(?=cpp_fused_)")
FUSED = "cpp_fused_"


def measure_cpu(trace: Trace, spans: tuple[Span, ...]) -> CpuUse:
    """Operators by their own time, in the given spans or the whole trace. Raises TracekitError without operators."""
    if not trace.host.filter(pl.col("kind") == "op").height:
        raise TracekitError(f"{trace.path} has neither GPU activity nor operators; record it again with torch.profiler")
    names, times = _self_times(trace, spans)
    by_name: dict[str, list[int]] = {}
    for name, ns in zip(names, times, strict=True):
        by_name.setdefault(GRAPH_PREFIX.sub("", name), []).append(ns)
    top = [OperatorTime(name, len(each), sum(each) / 1e3) for name, each in by_name.items()]
    top.sort(key=lambda each: (-each.self_us, each.name))
    fused = [each for each in top if each.name.startswith(FUSED)]
    told = bool(fused) or _would_show_fused(trace, spans)
    return CpuUse(
        span_us=_span_ns(trace, spans) / 1e3,
        operator_count=len(names),
        operator_us=sum(times) / 1e3,
        fused_count=sum(each.count for each in fused) if told else None,
        fused_us=sum(each.self_us for each in fused) if told else None,
        top=tuple(top),
    )


def _would_show_fused(trace: Trace, spans: tuple[Span, ...]) -> bool:
    """Whether C++ kernels would stand in the recording, had there been any: they record no event unless they were
    compiled to (`cpp.enable_kernel_profile`), as `tracekit profile` does. Where no compiled code ran there are none."""
    if trace.metadata.get("form") == "compiled":
        return True
    regions = find_regions(trace, spans)
    return regions is None or not (regions.count or regions.graphs)


def _self_times(trace: Trace, spans: tuple[Span, ...]) -> tuple[list[str], list[int]]:
    """Each operator's name and its time outside the operators it called, in nanoseconds."""
    names: list[str] = []
    times: list[int] = []
    for thread in trace.host["thread"].unique().sort():
        timeline = lay_flat(trace, thread)
        spent = np.zeros(timeline.table.height, dtype=np.int64)
        np.add.at(spent, timeline.events, timeline.ends - timeline.starts)
        table = timeline.table.with_columns(spent=pl.Series(spent)).filter(pl.col("kind") == "op")
        if spans:
            table = table.filter(_within(table, spans))
        names += table["name"].to_list()
        times += table["spent"].to_list()
    return names, times


def _within(table: pl.DataFrame, spans: tuple[Span, ...]) -> pl.Series:
    (moments,) = columns(table, "start_ns")
    return pl.Series(interval.touching(moments, moments + 1, _union_of(spans)), dtype=pl.Boolean)


def _union_of(spans: tuple[Span, ...]) -> interval.Intervals:
    starts = np.array([span.start_ns for span in spans], dtype=np.int64)
    ends = np.array([span.end_ns for span in spans], dtype=np.int64)
    return interval.union(starts, ends)


def _span_ns(trace: Trace, spans: tuple[Span, ...]) -> int:
    if spans:
        return interval.length(_union_of(spans))
    starts, ends = columns(trace.host.filter(pl.col("kind") == "op"), "start_ns", "end_ns")
    return int(ends.max() - starts.min())
