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
from tracekit.analysis.devices import busy_intervals
from tracekit.analysis.nesting import make_line, nest
from tracekit.analysis.timeline import COLLECTING, COMPILED_REGION, ENTRY_OPS, INDUCTOR_CALL, LOOKUP
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
        pl.col("kind").is_in(["op", "annotation"]) & (graph | region | name.is_in((LOOKUP, *ENTRY_OPS, *COLLECTING)))
    )
    own = beginning_within(marked, spans)
    regions, guards_ns, entry_ns = _host_times(trace, own, scope)
    graph_count, lookups = own.filter(graph).height, own.filter(name == LOOKUP).height
    host = (regions, graph_count, lookups, guards_ns / 1e3, entry_ns / 1e3)
    if scope is None or not scope.activities["call"].count():
        return CompiledRegions(*host, None, None, None, None, None)
    # What waits for other ranks is no work that compiled code could do.
    work = scope.activities.filter(~communicates(scope.activities))
    threads, moments, starts, ends, devices = columns(work, "launched_on", "called_ns", "start_ns", "end_ns", "device")
    graphs = marked.filter(graph)
    compiled = graphs if graphs.height else marked.filter(region)
    (numbers, *bounds) = columns(compiled, "thread", "start_ns", "end_ns")
    line = make_line(trace, np.unique(numbers))
    placed = line.place(threads, moments)
    inside = interval.touching(placed, placed + 1, interval.union(*(line.place(numbers, each) for each in bounds)))
    lengths, known = ends - starts, work["call"].is_not_null().to_numpy()
    whole, all_, unlinked = (int(each.sum()) / 1e3 for each in (lengths[inside], lengths, lengths[~known]))
    idle_ns = 0
    for device, window in scope.windows.items():
        idle = interval.complement(busy_intervals(trace, device), window)
        idle_ns += interval.length(idle[np.isin(idle[:, 1], starts[inside & (devices == device)])])
    return CompiledRegions(*host, whole, all_, unlinked, int(inside.sum()), len(lengths), idle_ns / 1e3)


def _host_times(trace: Trace, events: pl.DataFrame, scope: Scope | None) -> tuple[tuple[RegionTime, ...], int, int]:
    """Regions by compilation, in the order of their first run, and the time of lookups and of entering, in nanoseconds.

    A moment belongs to the innermost of these events; a collection is no region's doing.
    """
    found: dict[str | None, list[tuple[int, int, int]]] = defaultdict(list)
    guards = entry = 0
    # Thread after thread, the one that began first before the others.
    table = events.sort(pl.col("start_ns").min().over("thread"), "thread", "start_ns", -pl.col("end_ns"))
    threads, starts, ends = columns(table, "thread", "start_ns", "end_ns")
    line = make_line(trace, np.unique(threads))
    placed = line.place(threads, starts)
    order = np.argsort(placed, kind="stable")
    nesting = nest(placed[order], line.place(threads, ends)[order])
    times, idle = np.zeros((2, len(starts)), dtype=np.int64)
    rows = order[nesting.rows]
    np.add.at(times, rows, nesting.ends - nesting.starts)
    if scope is not None:
        busy = interval.union(*columns(trace.activities, "start_ns", "end_ns"))
        # Back from the line of threads to the clock.
        own = np.stack((nesting.starts, nesting.ends), axis=1) - (placed - starts)[rows, np.newaxis]
        np.add.at(idle, rows, own[:, 1] - own[:, 0] - interval.covered_within(busy, own))
    lengths = zip(table["name"].to_list(), (ends - starts).tolist(), times.tolist(), idle.tolist(), strict=True)
    for name, whole, own_ns, idle_ns in lengths:
        if name.startswith(COMPILED_REGION):
            found[name.removeprefix(COMPILED_REGION).strip(": ") or None].append((whole, own_ns, idle_ns))
        elif name == LOOKUP:
            guards += own_ns
        elif name in ENTRY_OPS:
            entry += own_ns
    regions = []
    for id_, runs in found.items():
        whole_us, own_us, idle_us = (sum(times) / 1e3 for times in zip(*runs, strict=True))
        regions.append(RegionTime(id_, len(runs), whole_us, own_us, None if scope is None else idle_us))
    return tuple(regions), guards, entry


def with_break_costs(found: Diagnostics, regions: CompiledRegions, steps: int) -> Diagnostics:
    """Each break with the host time per step outside of graphs around it, as regions of so many steps show it, and how
    much of that the GPU was idle."""
    breaks = []
    for each in found.breaks:
        around = [region for region in regions.regions if region.id in each.frames]
        idle = [region.idle_us for region in around if region.idle_us is not None]
        host_us = sum(region.outside_us for region in around) / steps if around else None
        breaks.append(replace(each, per_step_us=host_us, idle_per_step_us=sum(idle) / steps if idle else None))
    return replace(found, breaks=tuple(breaks))
