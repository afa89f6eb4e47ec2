"""What does one rank's recording tell that other ranks' recordings must know?"""

import numpy as np
import polars as pl

from tracekit.analysis.communication import communicates
from tracekit.analysis.gaps import cut_at, find_gaps
from tracekit.analysis.idle import divide_and_place
from tracekit.analysis.kernels import GRAPH_LAUNCH, with_families
from tracekit.analysis.window import Scope, columns, find_scope
from tracekit.errors import TracekitError
from tracekit.interval import NEVER
from tracekit.model.trace import Trace
from tracekit.ranks.activities import OUTSIDE, OUTSIDE_COMMUNICATION
from tracekit.ranks.digests import COLUMNS, RankDigest, schema_of
from tracekit.ranks.reading.recorded_collectives import describe_collectives

#: So many of the longest gaps have a place.
NAMED_GAPS = 200
ACTIVITIES = [*COLUMNS["activities"]]


def digest_rank(trace: Trace, *, window: str = "auto", steps: tuple[int, int] | None = None) -> RankDigest:
    """The rank's GPU activity, its collectives, and its idle time by cause.

    `trace` was read with collectives. Of several devices the one with most communication counts. Raises TracekitError
    where nothing ran on a GPU, or nothing matches `window`.
    """
    if not trace.activities.height:
        if trace.truncated:
            raise TracekitError(f"{trace.path} is cut off before any GPU activity; copy or record it again")
        raise TracekitError(
            f"{trace.path} has no GPU activity: `ranks` needs traces of GPUs (ProfilerActivity.CUDA): gloo, on a CPU,"
            " has no kernels that show when a rank came"
        )
    scope = find_scope(trace, window, steps)
    activities = with_families(scope.activities)
    if not activities.height:
        raise TracekitError(f"no GPU activity of {trace.path} belongs to the window; pass --window whole")
    # The device with most communication, else with most activity.
    counts = activities.group_by("device").agg(n=(pl.col("family") == "communication").sum(), all=pl.len())
    device = int(counts.sort("n", "all", "device", descending=[True, True, False])["device"][0])
    own = activities.filter(pl.col("device") == device).sort("start_ns", "end_ns")
    graphs = pl.col("launched_by").str.contains(GRAPH_LAUNCH, literal=True).fill_null(value=False)
    own = own.with_columns(in_graph=graphs, called_ns=pl.when(graphs).then(None).otherwise("called_ns"))
    linked = scope.linked.filter((pl.col("device") == device) & communicates(scope.linked))
    collectives = _collectives(trace, own, linked.with_columns(in_graph=graphs))
    whole = find_gaps(trace, scope, device)
    gaps = cut_at(whole, np.concatenate(columns(collectives, "start_ns", "ready_ns")))
    parts, placed = divide_and_place(trace, scope, whole, gaps, NAMED_GAPS)
    stated = trace.distributed
    return RankDigest(
        path=trace.path,
        rank=stated.rank if stated else None,
        world_size=stated.world_size if stated else None,
        host_name=trace.host_name,
        device_name=next((each.name for each in trace.devices if each.id == device), None),
        origin_ns=trace.origin_ns,
        first_ns=min(
            int(table["start_ns"][0]) for table in (trace.activities, trace.calls, trace.host) if table.height
        ),
        groups=stated.groups if stated else {},
        window=scope.kind,
        windows=tuple(map(tuple, scope.windows[device].tolist())),
        activities=pl.concat((own.select(ACTIVITIES), _outside(scope, own, device))).sort("start_ns", "end_ns"),
        collectives=collectives,
        gaps=pl.DataFrame([gaps.starts, gaps.ends, *parts.T], schema=schema_of("gaps"), orient="col"),
        places=pl.DataFrame(placed, schema=schema_of("places"), orient="row").sort("start_ns"),
        skipped=sum(trace.skipped.values()),
        truncated=trace.truncated,
        device=device,
        steps=tuple(span.index for span in scope.spans),
        purposes=stated.purposes if stated else {},
    )


def _outside(scope: Scope, own: pl.DataFrame, device: int) -> pl.DataFrame:
    """What runs on the device in the window and was launched outside of it, cut to the window: it is no idle time."""
    windows = scope.windows[device]
    begin, end = int(windows[:, 0].min()), int(windows[:, 1].max())
    found = scope.linked.filter(
        (pl.col("device") == device) & (pl.col("start_ns") < end) & (pl.col("end_ns") > begin)
    ).join(own, on=["stream", "start_ns", "end_ns", "name"], how="anti", nulls_equal=True)
    found = with_families(found).with_columns(pl.col("start_ns").clip(begin), pl.col("end_ns").clip(upper_bound=end))
    steps = scope.step_windows.get(device, windows)
    at = np.searchsorted(steps[:, 0], found["start_ns"].to_numpy(), side="right") - 1
    return found.with_columns(
        kind=pl.lit(OUTSIDE),
        family=pl.col("family").replace("communication", OUTSIDE_COMMUNICATION),
        step=pl.Series(np.clip(at, 0, len(steps) - 1), dtype=own["step"].dtype),
        in_graph=pl.lit(value=False),
    ).select(ACTIVITIES)


def _collectives(trace: Trace, own: pl.DataFrame, linked: pl.DataFrame) -> pl.DataFrame:
    """A row for each communication kernel, as `RankDigest.collectives` says."""
    found = own.filter(pl.col("family") == "communication")
    taken = found.select(
        "start_ns", "end_ns", "stream", "step", "in_graph", "sequence", kernel="name", ready_ns=_ready(own, found)
    )
    return pl.concat([taken, describe_collectives(trace, found, linked)], how="horizontal")


def _ready(own: pl.DataFrame, found: pl.DataFrame) -> pl.Series:
    """When each collective could have started, had the one before it on its stream been over: all compute that was
    launched before it is done and its own launch has begun. At most its start. Where launches are not recorded, or are
    a graph's, what ended before its start was before it."""
    compute = own.filter(pl.col("family") != "communication")
    starts, called = columns(found, "start_ns", "called_ns")
    launched = compute.filter(pl.col("called_ns").is_not_null()).sort("called_ns")
    moments, ends = columns(launched, "called_ns", "end_ns")
    last = np.maximum.accumulate(np.concatenate(([-NEVER], ends)))
    before = last[np.searchsorted(moments, called, side="left")]
    all_ends = np.sort(compute["end_ns"].to_numpy())
    ended = np.concatenate(([-NEVER], all_ends))[np.searchsorted(all_ends, starts, side="right")]
    ready = np.where(found["called_ns"].is_null().to_numpy(), ended, np.maximum(before, called))
    return pl.Series(np.where(ready == -NEVER, starts, np.minimum(ready, starts)), dtype=pl.Int64)
