"""What does one rank's recording tell that other ranks' recordings must know?"""

import re
from typing import Any

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.analysis.gaps import Gaps, find_gaps
from tracekit.analysis.idle import divide_gaps, name_gaps
from tracekit.analysis.kernels import GRAPH_LAUNCH, family_of
from tracekit.analysis.window import Scope, columns, find_scope
from tracekit.errors import TracekitError
from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.ranks import RankDigest
from tracekit.model.trace import CollectiveSignature, Trace

#: So many of the longest gaps have a place.
NAMED_GAPS = 200

#: The names that `record_param_comms` and c10d's annotations give to what is one collective.
NAMES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "_allgather_base": "all_gather",
    "_all_gather_base": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_allv": "all_to_all",
    "all_to_all_base": "all_to_all",
}
#: What a kernel's own name says, of those that nothing else names.
BY_KERNEL = {
    "all_reduce": "all_?reduce|one_shot|two_shot|cross_device_reduce",
    "all_gather": "all_?gather",
    "reduce_scatter": "reduce_?scatter",
    "send_recv": "send_?recv",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
#: Bytes of an element, by the names that c10 gives to types.
ELEMENT_BYTES = {
    **dict.fromkeys(("Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2"), 1),
    **dict.fromkeys(("Half", "BFloat16", "Short"), 2),
    **dict.fromkeys(("Float", "Int"), 4),
    **dict.fromkeys(("Double", "Long", "ComplexFloat"), 8),
    "ComplexDouble": 16,
}


def digest_rank(trace: Trace, *, window: str = "auto", steps: tuple[int, int] | None = None) -> RankDigest:
    """The rank's GPU activity, its collectives, and its idle time by cause.

    `trace` was read with collectives. Of several devices the one with most communication counts. Raises TracekitError
    where nothing ran on a GPU, or nothing matches `window`.
    """
    if not trace.activities.height:
        raise TracekitError(f"{trace.path} has no GPU activity: record it with ProfilerActivity.CUDA")
    scope = find_scope(trace, window, steps)
    names = scope.activities.select("name", "kind").unique()
    families = names.with_columns(family=pl.Series([family_of(*each) for each in names.iter_rows()], dtype=pl.String))
    activities = scope.activities.join(families, on=["name", "kind"], how="left", maintain_order="left")
    if not activities.height:
        raise TracekitError(f"no GPU activity of {trace.path} belongs to the window; pass --window whole")
    # The device with most communication, else with most activity.
    counts = activities.group_by("device").agg(n=(pl.col("family") == "communication").sum(), all=pl.len())
    device = int(counts.sort("n", "all", "device", descending=[True, True, False])["device"][0])
    own = activities.filter(pl.col("device") == device).sort("start_ns", "end_ns")
    graphs = pl.col("launched_by").str.contains(GRAPH_LAUNCH, literal=True).fill_null(value=False)
    own = own.with_columns(in_graph=graphs, called_ns=pl.when(graphs).then(None).otherwise("called_ns"))
    collectives = _collectives(trace, own)
    gaps = _cut(find_gaps(trace, scope, device), collectives)
    parts = divide_gaps(trace, scope, gaps)
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
        windows=tuple((int(start), int(end)) for start, end in scope.windows[device].tolist()),
        activities=own.select(
            *("kind", "name", "family", "stream", "step", "start_ns", "end_ns", "called_ns", "grid", "in_graph")
        ),
        collectives=collectives,
        gaps=pl.DataFrame({"start_ns": gaps.starts, "end_ns": gaps.ends}).with_columns(
            pl.Series(cause, parts[:, code], dtype=pl.Int64) for code, cause in enumerate(IDLE_CAUSES)
        ),
        places=_places(trace, scope, device),
        skipped=sum(trace.skipped.values()),
        truncated=trace.truncated,
        device=device,
        steps=tuple(span.index for span in scope.spans),
    )


def _collectives(trace: Trace, own: pl.DataFrame) -> pl.DataFrame:
    """A row for each communication kernel, as `RankDigest.collectives` says."""
    found = own.filter(pl.col("family") == "communication")
    stated = _signatures(trace, found)
    annotated = _annotations(trace, found)
    rows = [
        _describe(kernel, signature, annotation)
        for kernel, signature, annotation in zip(found["name"], stated, annotated, strict=True)
    ]
    schema: dict[str, Any] = {
        "collective": pl.String,
        "group": pl.String,
        "ranks": pl.List(pl.Int64),
        "size": pl.Int64,
        "dtype": pl.String,
        "bytes": pl.Int64,
        "signature": pl.String,
    }
    described = pl.DataFrame(rows, schema=schema, orient="row")
    taken = found.select(
        "start_ns", "end_ns", "stream", "step", "in_graph", "sequence", kernel="name", ready_ns=_ready(own, found)
    )
    return pl.concat([taken, described], how="horizontal")


def _ready(own: pl.DataFrame, found: pl.DataFrame) -> pl.Series:
    """When each collective could have started, had the one before it on its stream been over: all compute that was
    launched before it is done and its own launch has begun. At most its start. Where launches are not recorded, or are
    a graph's, what ended before its start was before it."""
    compute = own.filter(pl.col("family") != "communication")
    starts, called = columns(found, "start_ns", "called_ns")
    launched = compute.filter(pl.col("called_ns").is_not_null()).sort("called_ns")
    moments, ends = columns(launched, "called_ns", "end_ns")
    last = np.maximum.accumulate(np.concatenate(([np.iinfo(np.int64).min], ends)))
    known = ~found["called_ns"].is_null().to_numpy()
    before = last[np.searchsorted(moments, called, side="left")]
    all_ends = np.sort(compute["end_ns"].to_numpy())
    at = np.searchsorted(all_ends, starts, side="right")
    ended = np.concatenate(([np.iinfo(np.int64).min], all_ends))[at]
    ready = np.where(known, np.maximum(before, called), ended)
    first = np.iinfo(np.int64).min
    return pl.Series(np.where(ready == first, starts, np.minimum(ready, starts)), dtype=pl.Int64)


def _signatures(trace: Trace, found: pl.DataFrame) -> list[CollectiveSignature | None]:
    """What each kernel states, else what the host's `record_param_comms` around its launch does."""
    host = trace.host.filter(pl.col("signature").is_not_null() & pl.col("external").is_not_null())
    by_operator = dict(zip(host["external"], host["signature"], strict=True))
    numbers = [
        number if number is not None else by_operator.get(external)
        for number, external in zip(found["signature"], found["external"], strict=True)
    ]
    return [trace.signatures[number] if number is not None else None for number in numbers]


def _annotations(trace: Trace, found: pl.DataFrame) -> list[str | None]:
    """The name of c10d's annotation (`nccl:all_reduce`) around each launch."""
    spans = trace.host.filter(pl.col("name").str.contains(r"^(?:nccl|rccl|c10d|xccl):"))
    names: list[str | None] = [None] * found.height
    moments, threads = columns(found, "called_ns", "launched_on")
    for thread in spans["thread"].unique().sort():
        own = spans.filter(pl.col("thread") == thread).sort("start_ns")
        starts, ends = columns(own, "start_ns", "end_ns")
        some = np.flatnonzero(threads == thread)
        at = interval.containing(starts, ends, moments[some])
        for row, span in zip(some[at >= 0].tolist(), at[at >= 0].tolist(), strict=True):
            names[row] = str(own["name"][span]).partition(":")[2]
    return names


def _describe(
    kernel: str, stated: CollectiveSignature | None, annotation: str | None
) -> tuple[str, str | None, list[int], int | None, str | None, int | None, str]:
    """Its collective, group, ranks, their number, type, bytes of the larger side, and a text that equal ones share."""
    if stated is None:
        begin = kernel.lower()
        named = annotation or next((name for name, part in BY_KERNEL.items() if re.search(part, begin)), "collective")
        name = NAMES.get(named, named)
        # Kernels of one collective may differ over ranks in algorithm, hardly in what they do.
        return name, None, [], None, None, None, name
    name = NAMES.get(stated.collective or annotation or "", stated.collective or annotation or "collective")
    elements = [each for each in (stated.elements_in, stated.elements_out) if each is not None]
    width = ELEMENT_BYTES.get(stated.dtype or "")
    size = max(elements) * width if elements and width else None
    # What an all-to-all sends differs from rank to rank.
    counted = () if name == "all_to_all" else tuple(elements)
    told = f"{name} {stated.dtype} {counted}"
    ranks = list(stated.group_ranks)
    return name, stated.group, ranks, stated.group_size or len(ranks) or None, stated.dtype, size, told


def _cut(gaps: Gaps, collectives: pl.DataFrame) -> Gaps:
    """The gaps, cut wherever a collective starts or is ready."""
    moments = np.unique(np.concatenate(columns(collectives, "start_ns", "ready_ns")))
    first = np.searchsorted(moments, gaps.starts, side="right")
    counts = np.maximum(np.searchsorted(moments, gaps.ends, side="left") - first, 0)
    rows = np.repeat(np.arange(len(gaps.starts)), counts + 1)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts + 1) - counts - 1, counts + 1)
    cuts: Ints = np.concatenate((moments, [0]))
    starts = np.where(place == 0, gaps.starts[rows], cuts[np.minimum(first[rows] + place - 1, len(moments))])
    ends = np.where(place == counts[rows], gaps.ends[rows], cuts[np.minimum(first[rows] + place, len(moments))])
    return gaps.within(rows, starts, ends)


def _places(trace: Trace, scope: Scope, device: int) -> pl.DataFrame:
    named = name_gaps(trace, scope, find_gaps(trace, scope, device), NAMED_GAPS)
    origin = scope.origin_ns
    rows = [
        (
            origin + round(each.start_us * 1e3),
            origin + round((each.start_us + each.duration_us) * 1e3),
            max(each.causes, key=lambda cause: each.causes[cause], default="unattributed"),
            each.where.words if each.where else next((work.name for work in each.host if work.name), None),
        )
        for each in named
    ]
    schema = {"start_ns": pl.Int64, "end_ns": pl.Int64, "cause": pl.String, "where": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("start_ns")
