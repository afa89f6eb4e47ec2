"""What is each communication kernel of a rank a part of: which collective, of which group, who sends to whom?"""

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl
from msgspec.structs import astuple, replace

from tracekit import interval
from tracekit.analysis.window import columns
from tracekit.model.bounded import MOST
from tracekit.model.dtypes import C10_ELEMENT_BYTES
from tracekit.model.trace import CollectiveSignature, Trace
from tracekit.ranks.digests import Exchange, Talk, schema_of

#: The names that `record_param_comms` and c10d's annotations give to what is one collective.
NAMES = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "all_reduce_barrier": "barrier",
    "allgather": "all_gather",
    "_allgather_base": "all_gather",
    "_all_gather_base": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_allv": "all_to_all",
    "all_to_all_base": "all_to_all",
    "_broadcast_oop": "broadcast",
    "_reduce_oop": "reduce",
    "send": "send_recv",
    "recv": "send_recv",
}
#: What a kernel's own name says, of those that nothing else names. DeepEP's kernels that only put or signal, and wait
#: for nobody, stand first.
BY_KERNEL = {
    "put": "internode_ll|nvshmem\\w*_(?:put|signal)|rocshmem\\w*_put",
    "all_reduce": "all_?reduce|one_shot|two_shot|cross_device_reduce",
    "all_gather": "all_?gather",
    "reduce_scatter": "reduce_?scatter",
    "send_recv": "send_?recv",
    "all_to_all": "all_?to_?all",
    "broadcast": "broadcast",
    "notify": "notify_(?:dispatch|combine)",
    "dispatch": "dispatch",
    "combine": "combine",
    "barrier": "barrier",
    "reduce": "reduce",
}
#: Of the others every rank gives to and takes from every other.
FROM_ROOT, TO_ROOT = ("broadcast", "scatter"), ("reduce", "gather")
#: What c10d's annotation of a send or a receive says of its ends, counted in the group: `send 0->1`, `recv 1<-0`.
ENDS = re.compile(r"(send|recv) (\d{1,6})(?:->|<-)(\d{1,6})$")
#: Records of what is no transfer.
NO_TRANSFER = ("wait", "init", "end", "")


def describe_collectives(trace: Trace, found: pl.DataFrame, linked: pl.DataFrame) -> pl.DataFrame:
    """A row of `Talk` for each of the communication kernels `found`. `linked` are those of the whole trace, by which a
    CUDA graph's are counted."""
    stated, calls = _stated(trace, found), _annotations(trace, found)
    batches = _batches(trace, found)
    rows: list[Talk] = []
    for at, kernel in enumerate(found["name"]):
        records = stated[at]
        if not records and "ccl" in kernel.lower():
            records = batches.get(at, ())
        rows.append(_describe(trace, kernel, records, calls[at]))
    schema = {name: kind for name, kind in schema_of("collectives").items() if name in Talk.__struct_fields__}
    described = pl.DataFrame(list(map(astuple, rows)), schema=schema, orient="row")
    # A CUDA graph's kernels state nothing but their place in a launch, and graphs are replayed unequally often.
    key = ["call", "start_ns", "stream"]
    order = pl.int_range(pl.len()).over("call")
    graphed = linked.filter(pl.col("in_graph")).sort("start_ns", "stream")
    placed = graphed.select(*key, place=pl.format(" #{}/{}", order, pl.len().over("call"))).unique(key, keep="first")
    places = found.join(placed, on=key, how="left", maintain_order="left")["place"].fill_null("")
    return described.with_columns(signature=pl.col("signature") + places)


def _stated(trace: Trace, found: pl.DataFrame) -> list[tuple[CollectiveSignature, ...]]:
    """What each kernel states and what the host's `record_param_comms` around its launch does, which alone knows a
    root; empty where neither says anything."""
    host = trace.host.filter(pl.col("signature").is_not_null() & pl.col("external").is_not_null())
    by_operator = dict(zip(host["external"], host["signature"], strict=True))
    records: list[tuple[CollectiveSignature, ...]] = []
    for number, external in zip(found["signature"], found["external"], strict=True):
        around = by_operator.get(external)
        some = [trace.signatures[each] for each in (number, around) if each is not None]
        records.append(tuple(some[:1]) if len(some) < 2 or some[1].rank is None else (some[0].with_rank(some[1].rank),))
    return records


def _batches(trace: Trace, found: pl.DataFrame) -> dict[int, tuple[CollectiveSignature, ...]]:
    """Of kernels that state nothing: what their thread had recorded since it last launched one, and no kernel is of. So
    calls that c10d gathers and launches as one kernel look."""
    bare = np.flatnonzero((found["signature"].is_null() & ~found["called_ns"].is_null()).to_numpy())
    host = trace.host.filter(pl.col("signature").is_not_null() & (pl.col("name") == "record_param_comms"))
    if not len(bare) or not host.height:
        return {}
    launched = set(found["external"].drop_nulls())
    moments, threads = columns(found, "called_ns", "launched_on")
    batches: dict[int, tuple[CollectiveSignature, ...]] = {}
    for thread in np.unique(threads[bare]).tolist():
        own = host.filter((pl.col("thread") == thread) & ~pl.col("external").is_in(launched)).sort("start_ns")
        begun = own["start_ns"].to_numpy()
        some = np.flatnonzero(threads == thread)
        some = some[np.argsort(moments[some], kind="stable")]
        since = np.searchsorted(begun, np.concatenate(([np.iinfo(np.int64).min], moments[some][:-1])))
        until = np.searchsorted(begun, moments[some])
        for at, first, last in zip(some.tolist(), since.tolist(), until.tolist(), strict=True):
            records = (trace.signatures[number] for number in own["signature"][first:last])
            batches[at] = tuple(each for each in records if (each.collective or "") not in NO_TRANSFER)
    return {at: batches[at] for at in bare.tolist() if batches.get(at)}


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


def _describe(trace: Trace, kernel: str, records: tuple[CollectiveSignature, ...], annotation: str | None) -> Talk:
    if not records:
        return _by_name(trace, kernel, annotation)
    kinds = [each.collective or annotation or "collective" for each in records]
    names = list(dict.fromkeys(NAMES.get(each, each) for each in kinds))
    first = records[0]
    ranks = next((each.group_ranks for each in records if each.group_ranks), ())
    told = Talk(names[0], first.group, ranks, first.group_size or len(ranks) or None, first.dtype)
    if names == ["send_recv"]:
        return _pairs(told, records, kinds)
    sent, received = _total(records, "elements_in"), _total(records, "elements_out")
    elements = tuple(each for each in (first.elements_in, first.elements_out) if each is not None)
    # What an all-to-all sends differs from rank to rank.
    varies = told.collective == "all_to_all"
    text = f"{told.collective} {told.dtype} {() if varies else elements}"
    exchange, root = _exchange(told, first, len(names))
    return replace(
        told,
        bytes=_larger(sent, received),
        signature=text + (f" x{len(records)}" if len(records) > 1 else ""),
        exchange=exchange,
        root=root,
        targets=_some_only(first.split_in, ranks) if varies else (),
        sources=_some_only(first.split_out, ranks) if varies else (),
        sent_bytes=sent,
        received_bytes=received,
    )


def _larger(sent: int | None, received: int | None) -> int | None:
    return max((size for size in (sent, received) if size is not None), default=None)


def _by_name(trace: Trace, kernel: str, annotation: str | None) -> Talk:
    """What is known where nothing is recorded: kernels of one collective may differ over ranks in algorithm, hardly in
    what they do."""
    begin = kernel.lower()
    by_kernel = next((name for name, part in BY_KERNEL.items() if re.search(part, begin)), "collective")
    ends = ENDS.match(annotation or "")
    if ends is not None:
        way, own, other = ends[1], int(ends[2]), int(ends[3])
        rank = trace.distributed.rank if trace.distributed else None
        # Counted in a group that is not all of the job, nobody knows who that is.
        known: Exchange = "pairs" if rank == own else "unknown"
        targets, sources = ((other,), ()) if way == "send" else ((), (other,))
        return Talk("send_recv", signature="send_recv", exchange=known, targets=targets, sources=sources)
    named = by_kernel if annotation in (None, "coalesced") else annotation
    name = NAMES.get(named or "", named or "collective")
    exchange: Exchange = "all"
    if name in ("send_recv", *FROM_ROOT, *TO_ROOT):
        exchange = "unknown"
    elif name == "put":
        exchange = "one_sided"
    return Talk(name, signature=name, exchange=exchange)


def _pairs(told: Talk, records: tuple[CollectiveSignature, ...], kinds: list[str]) -> Talk:
    """Sends and receives, of one kernel."""
    sends, receives = (
        [each for each, kind in zip(records, kinds, strict=True) if kind == way] for way in ("send", "recv")
    )
    targets = [_peer(each, each.target, told.ranks) for each in sends]
    sources = [_peer(each, each.source, told.ranks) for each in receives]
    sent, received = _total(sends, "elements_in"), _total(receives, "elements_out")
    return replace(
        told,
        bytes=_larger(sent, received),
        signature=f"send_recv {told.dtype}",
        exchange="unknown" if None in (*targets, *sources) else "pairs",
        targets=tuple(each for each in targets if each is not None),
        sources=tuple(each for each in sources if each is not None),
        sent_bytes=sent if targets else 0,
        received_bytes=received if sources else 0,
    )


def _peer(record: CollectiveSignature, stated: int | None, ranks: tuple[int, ...]) -> int | None:
    """The rank at the other end, counted in the job."""
    if stated is not None or record.rank is None:
        return stated
    return ranks[record.rank] if record.rank < len(ranks) else None


def _exchange(told: Talk, record: CollectiveSignature, kinds: int) -> tuple[Exchange, int | None]:
    """Who gives to whom, and the root's rank in the job, of those that have one."""
    if kinds > 1:
        return "unknown", None
    if told.collective not in (*FROM_ROOT, *TO_ROOT):
        return "all", None
    root = record.rank
    if root is None or (told.ranks and not 0 <= root < len(told.ranks)):
        return "unknown", None
    return "from_root" if told.collective in FROM_ROOT else "to_root", told.ranks[root] if told.ranks else root


def _some_only(split: tuple[int, ...], ranks: tuple[int, ...]) -> tuple[int, ...]:
    """The ranks that an all-to-all gives something to, or takes from; empty where that is all of them, or unknown."""
    if len(split) != len(ranks) or all(split):
        return ()
    return tuple(rank for rank, count in zip(ranks, split, strict=True) if count)


def _total(records: Sequence[CollectiveSignature], side: Literal["elements_in", "elements_out"]) -> int | None:
    """Bytes of that side of all of them; None where one does not say, or they are more than there can be."""
    total = 0
    for each in records:
        count, width = getattr(each, side), C10_ELEMENT_BYTES.get(each.dtype or "")
        if count is None or width is None:
            return None
        total += int(count) * width
    return total if records and total <= MOST else None
