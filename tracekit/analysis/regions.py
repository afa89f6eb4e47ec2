"""How much of the work did compiled code do, and what did entering it cost?

Dynamo records `Torch-Compiled Region: F/C` around each run of a compiled frame, `TorchDynamo Cache Lookup` around the
search for code whose guards hold; Inductor `## Call CompiledFxGraph` around each graph. Where a graph breaks, the
resumed frame's region lies inside the one that broke.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis import interval
from tracekit.analysis.nesting import nest
from tracekit.analysis.timeline import COMPILED_REGION, GUARD_OPS, INDUCTOR_CALL
from tracekit.analysis.window import Scope, Span
from tracekit.model.regions import CompiledRegions, RegionTime
from tracekit.model.trace import Trace

LOOKUP = GUARD_OPS[0]
ENTRY = GUARD_OPS[1:]

Bools = NDArray[np.bool_]


def find_regions(trace: Trace, spans: tuple[Span, ...], scope: Scope | None = None) -> CompiledRegions | None:
    """What ran in compiled code in the spans (everywhere, without any); `scope` is the GPU's part of the window.

    None where the recording holds no operators at all: it could not show a region.
    """
    if not (trace.host["kind"] == "op").any():
        return None
    marked = _marked(trace)
    own = marked.filter(_within(marked, spans))
    regions, guards_ns, entry_ns = _host_times(own)
    gpu = _gpu_times(scope, marked) if scope is not None else (None,) * 5
    return CompiledRegions(
        regions=regions,
        graphs=own.filter(pl.col("graph")).height,
        lookups=own.filter(pl.col("name") == LOOKUP).height,
        guards_us=guards_ns / 1e3,
        entry_us=entry_ns / 1e3,
        gpu_us=gpu[0],
        all_gpu_us=gpu[1],
        unlinked_us=gpu[2],
        activities=gpu[3],
        all_activities=gpu[4],
    )


def _marked(trace: Trace) -> pl.DataFrame:
    """The events that tell of compiled code, in the order of their start; `graph` and `region` say which are those."""
    name = pl.col("name")
    found = trace.host.filter(
        name.str.starts_with(COMPILED_REGION) | name.str.starts_with(INDUCTOR_CALL) | name.is_in(GUARD_OPS)
    )
    # Spans on the GPU's own lanes bear the same names and are none of the host's.
    return found.filter(pl.col("kind").is_in(["op", "annotation"])).with_columns(
        graph=name.str.starts_with(INDUCTOR_CALL), region=name.str.starts_with(COMPILED_REGION)
    )


def _within(events: pl.DataFrame, spans: tuple[Span, ...]) -> pl.Series:
    """Which events begin in one of the spans, on whatever thread."""
    if not spans:
        return pl.Series(values=[True] * events.height, dtype=pl.Boolean)
    windows = interval.union(*(np.array(each, dtype=np.int64) for each in _bounds(spans)))
    starts = events["start_ns"].to_numpy()
    return pl.Series(values=_inside(starts, windows), dtype=pl.Boolean)


def _bounds(spans: tuple[Span, ...]) -> tuple[list[int], list[int]]:
    return [span.start_ns for span in spans], [span.end_ns for span in spans]


def _inside(moments: NDArray[np.int64], windows: NDArray[np.int64]) -> Bools:
    """Which moments lie in one of the windows, which are in order and do not overlap."""
    at = np.searchsorted(windows[:, 0], moments, side="right") - 1
    found: Bools = (at >= 0) & (moments < windows[np.maximum(at, 0), 1])
    return found


def _host_times(events: pl.DataFrame) -> tuple[tuple[RegionTime, ...], int, int]:
    """Regions by compilation, in the order of their first run, and the time of lookups and of entering, in nanoseconds.

    A moment belongs to the innermost of these events.
    """
    counts: dict[str | None, int] = defaultdict(int)
    host: dict[str | None, int] = defaultdict(int)
    outside: dict[str | None, int] = defaultdict(int)
    guards = entry = 0
    for name, length, own in _own_times(events):
        if name.startswith(COMPILED_REGION):
            id_ = name.removeprefix(COMPILED_REGION).strip(": ") or None
            counts[id_] += 1
            host[id_] += length
            outside[id_] += own
        elif name == LOOKUP:
            guards += own
        elif name in ENTRY:
            entry += own
    regions = (RegionTime(id_, count, host[id_] / 1e3, outside[id_] / 1e3) for id_, count in counts.items())
    return tuple(regions), guards, entry


def _own_times(events: pl.DataFrame) -> Iterator[tuple[str, int, int]]:
    """The name of each event, its length, and how long it is the innermost, in nanoseconds."""
    for _, each in events.group_by("thread", maintain_order=True):
        table = each.sort(["start_ns", "end_ns"], descending=[False, True], maintain_order=True)
        starts, ends = table["start_ns"].to_numpy(), table["end_ns"].to_numpy()
        nesting = nest(starts, ends)
        own = np.zeros(len(starts), dtype=np.int64)
        np.add.at(own, nesting.rows, nesting.ends - nesting.starts)
        yield from zip(table["name"].to_list(), (ends - starts).tolist(), own.tolist(), strict=True)


def _gpu_times(
    scope: Scope, marked: pl.DataFrame
) -> tuple[float | None, float | None, float | None, int | None, int | None]:
    """GPU time of what compiled code launched, all of it, that without a known launch, in microseconds; and the numbers
    of activities of the first two."""
    launched = scope.activities.join(
        scope.calls.select("call", launch_ns="start_ns", thread="thread"), on="call", how="left", maintain_order="left"
    )
    known = launched["launch_ns"].is_not_null().to_numpy()
    if not known.any():
        return None, None, None, None, None
    lengths = (launched["end_ns"] - launched["start_ns"]).to_numpy()
    compiled = _launched_inside(launched, marked.filter(pl.col("graph" if marked["graph"].any() else "region")))
    sums = (lengths[compiled].sum(), lengths.sum(), lengths[~known].sum())
    whole, all_, unlinked = (int(each) / 1e3 for each in sums)
    return whole, all_, unlinked, int(compiled.sum()), len(lengths)


def _launched_inside(launched: pl.DataFrame, events: pl.DataFrame) -> Bools:
    """Which activities were launched within one of the events, on its thread."""
    found = np.zeros(launched.height, dtype=bool)
    threads = launched["thread"].fill_null(-1).to_numpy()
    moments = launched["launch_ns"].fill_null(-1).to_numpy()
    for (thread,), own in events.group_by("thread"):
        mine = threads == thread
        windows = interval.union(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())
        found[mine] = _inside(moments[mine], windows)
    return found
