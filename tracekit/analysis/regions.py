"""How much of the work did compiled code do, and what did entering it, and each graph break, cost?

Dynamo records `Torch-Compiled Region: F/C` around each run of a compiled frame, `TorchDynamo Cache Lookup` around the
search for code whose guards hold; Inductor `## Call CompiledFxGraph` around each graph. Where a graph breaks, the
resumed frame's region lies inside the one that broke.
"""

from collections import defaultdict

import numpy as np
import polars as pl
from msgspec.structs import replace

from tracekit import interval
from tracekit.analysis.communication import communicates
from tracekit.analysis.line import make_line
from tracekit.analysis.nesting import nest
from tracekit.analysis.timeline import COMPILED_REGION, ENTRY_OPS, INDUCTOR_CALL, LOOKUP
from tracekit.analysis.window import Scope, Span, beginning_within, columns
from tracekit.model.compilation import CompiledRegions, Diagnostics, RegionTime
from tracekit.model.trace import Trace


def find_regions(trace: Trace, spans: tuple[Span, ...], scope: Scope | None = None) -> CompiledRegions | None:
    """What ran in compiled code in the spans (everywhere, without any); `scope` is the GPU's part of the window.

    None where the recording holds no operators at all: it could not show a region.
    """
    if not (trace.host["kind"] == "op").any():
        return None
    name = pl.col("name")
    graph, region = name.str.starts_with(INDUCTOR_CALL), name.str.starts_with(COMPILED_REGION)
    # Spans on the GPU's own lanes bear the same names and are none of the host's.
    marked = trace.host.filter(
        pl.col("kind").is_in(["op", "annotation"]) & (graph | region | name.is_in((LOOKUP, *ENTRY_OPS)))
    )
    own = beginning_within(marked, spans)
    regions, guards_ns, entry_ns = _host_times(trace, own)
    graph_count, lookups = own.filter(graph).height, own.filter(name == LOOKUP).height
    host = (regions, graph_count, lookups, guards_ns / 1e3, entry_ns / 1e3)
    if scope is None or not scope.activities["call"].count():
        return CompiledRegions(*host, None, None, None, None, None)
    # What waits for other ranks is no work that compiled code could do.
    work = scope.activities.filter(~communicates(scope.activities))
    threads, moments, starts, ends = columns(work, "launched_on", "called_ns", "start_ns", "end_ns")
    graphs = marked.filter(graph)
    compiled = graphs if graphs.height else marked.filter(region)
    (numbers, *bounds) = columns(compiled, "thread", "start_ns", "end_ns")
    line = make_line(trace, np.unique(numbers))
    placed = line.place(threads, moments)
    inside = interval.touching(placed, placed + 1, interval.union(*(line.place(numbers, each) for each in bounds)))
    lengths, known = ends - starts, work["call"].is_not_null().to_numpy()
    whole, all_, unlinked = (int(each.sum()) / 1e3 for each in (lengths[inside], lengths, lengths[~known]))
    return CompiledRegions(*host, whole, all_, unlinked, int(inside.sum()), len(lengths))


def _host_times(trace: Trace, events: pl.DataFrame) -> tuple[tuple[RegionTime, ...], int, int]:
    """Regions by compilation, in the order of their first run, and the time of lookups and of entering, in nanoseconds.

    A moment belongs to the innermost of these events.
    """
    found: dict[str | None, list[tuple[int, int]]] = defaultdict(list)
    guards = entry = 0
    # Thread after thread, the one that began first before the others.
    table = events.sort(pl.col("start_ns").min().over("thread"), "thread", "start_ns", -pl.col("end_ns"))
    threads, starts, ends = columns(table, "thread", "start_ns", "end_ns")
    line = make_line(trace, np.unique(threads))
    placed = line.place(threads, starts)
    order = np.argsort(placed, kind="stable")
    nesting = nest(placed[order], line.place(threads, ends)[order])
    times = np.zeros(len(starts), dtype=np.int64)
    np.add.at(times, order[nesting.rows], nesting.ends - nesting.starts)
    for name, whole, own in zip(table["name"].to_list(), (ends - starts).tolist(), times.tolist(), strict=True):
        if name.startswith(COMPILED_REGION):
            found[name.removeprefix(COMPILED_REGION).strip(": ") or None].append((whole, own))
        elif name == LOOKUP:
            guards += own
        elif name in ENTRY_OPS:
            entry += own
    regions = (
        RegionTime(id_, len(runs), sum(whole for whole, _ in runs) / 1e3, sum(own for _, own in runs) / 1e3)
        for id_, runs in found.items()
    )
    return tuple(regions), guards, entry


def with_break_costs(found: Diagnostics, regions: CompiledRegions, steps: int) -> Diagnostics:
    """Each break with the host time per step outside of graphs around it, as regions of so many steps show it."""
    breaks = []
    for each in found.breaks:
        outside = [region.outside_us for region in regions.regions if region.id in each.frames]
        breaks.append(replace(each, per_step_us=sum(outside) / steps if outside else None))
    return replace(found, breaks=tuple(breaks))
