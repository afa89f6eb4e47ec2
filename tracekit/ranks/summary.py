"""What is kept of a rank's digest where a thousand of them are reduced: its account step by step, and its collectives
without its kernels. A digest's file has it in its footer, so that a fleet is read without reading tables."""

from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
import zstandard
from msgspec.structs import replace

from tracekit import interval
from tracekit.interval import Intervals, Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.bounded import Count
from tracekit.ranks.activities import OUTSIDE, communication_of, compute_of
from tracekit.ranks.digests import RankDigest, RankSummary, Talk

#: Of which ranks may give and take unequally much.
VARYING = "all_to_all"
#: Of a summary, unpacked: one of 50,000 collectives has 2.5 MB.
MOST_BYTES = 1 << 24
#: An array's shape and its bytes.
_Packed = tuple[Annotated[tuple[Count, ...], msgspec.Meta(min_length=1, max_length=2)], bytes]


def summarise(digest: RankDigest) -> RankSummary:
    """The digest's summary."""
    windows, measured = _stretches(digest)
    compute = compute_of(digest)
    table = digest.collectives
    stretches = table.select("start_ns", "end_ns").to_numpy()
    within = _both(compute, measured)
    starts = digest.gaps["start_ns"].to_numpy()
    at = np.clip(np.searchsorted(windows[:, 0], starts, side="right") - 1, 0, len(windows) - 1)
    idle = np.zeros((len(windows), len(IDLE_CAUSES)), dtype=np.int64)
    np.add.at(idle, at, digest.gaps.select(IDLE_CAUSES).to_numpy())
    talk: dict[Talk, int] = {}
    numbers = [
        talk.setdefault(_talk(row, digest.groups), len(talk))
        for row in table.select(Talk.__struct_fields__).iter_rows(named=True)
    ]
    parts = table.select(
        *("start_ns", "end_ns", "step"),
        talk=pl.Series(numbers, dtype=pl.Int64),
        sequence=pl.col("sequence").fill_null(-1),
        covered=pl.Series(interval.covered_within(compute, stretches)),
    )
    both = _both(_both(compute, communication_of(digest)), measured)
    return RankSummary(
        **digest.stated() | {"windows": tuple(map(tuple, windows.tolist()))},
        spans_ns=interval.covered_within(measured, windows),
        compute_ns=interval.covered_within(within, windows),
        idle_ns=idle,
        beside_ns=interval.covered_within(both, windows),
        talk=tuple(talk),
        parts=parts.to_numpy(),
    )


def _both(some: Intervals, others: Intervals) -> Intervals:
    """What is in both."""
    return interval.complement(interval.complement(some, others), others)


def _stretches(digest: RankDigest) -> tuple[Intervals, Intervals]:
    """When each step began and was over on the GPU, and all that was measured. Steps that follow on each other are one
    window: a step begins where all before it are over, or with its first kernel where that is sooner."""
    measured = np.array(digest.windows, dtype=np.int64).reshape(-1, 2)
    count = len(digest.steps)
    if len(measured) >= count:
        return measured, measured
    own = digest.activities.filter(pl.col("kind") != OUTSIDE)
    steps = own.group_by("step").agg(pl.col("start_ns").min(), pl.col("end_ns").max()).sort("step")
    at, first, last = (steps[name].to_numpy() for name in ("step", "start_ns", "end_ns"))
    begins = np.full(count + 1, measured[-1, 1])
    over = np.concatenate((measured[:1, 0], np.maximum.accumulate(last)[:-1]))
    begins[at] = np.minimum(first, over)
    # A step without kernels takes no time.
    edges = np.maximum(np.minimum.accumulate(begins[::-1])[::-1], measured[0, 0])
    edges[0] = measured[0, 0]
    return np.stack((edges[:-1], edges[1:]), axis=1), measured


def _talk(row: dict[str, Any], groups: dict[str, tuple[int, ...]]) -> Talk:
    row |= {name: tuple(each) for name, each in row.items() if isinstance(each, list)}
    if row["collective"] != VARYING:
        row |= {"sent_bytes": None, "received_bytes": None}
    # Those of a named group are told once.
    if row["ranks"] == groups.get(row["group"] or ""):
        row["ranks"] = ()
    return Talk(**row)


def begin_summary(summary: RankSummary, moment_ns: int) -> RankSummary:
    """The summary without what came before this moment, at which the rank was in a collective. Of the step that it is
    in the share of compute and idle time that lay before is taken to be that of all but communication."""
    windows = np.array(summary.windows, dtype=np.int64)
    kept = np.flatnonzero(windows[:, 1] > moment_ns)
    at, begin = int(kept[0]), int(windows[kept[0], 0])
    parts = summary.parts
    before = parts[(parts[:, 2] == at) & (parts[:, 0] < moment_ns)]
    busy = interval.length(interval.union(before[:, 0], np.minimum(before[:, 1], moment_ns)))
    own = int(summary.compute_ns[at] + summary.idle_ns[at].sum())
    share = 1 - min(max(moment_ns - begin - busy, 0) / max(own, 1), 1.0)
    tables = {name: getattr(summary, name)[kept] for name in ("spans_ns", "compute_ns", "idle_ns", "beside_ns")}
    for name in ("compute_ns", "idle_ns", "beside_ns"):
        tables[name][0] = np.floor(tables[name][0] * share)
    tables["spans_ns"][0] -= max(moment_ns - begin, 0)
    parts = parts[parts[:, 1] > moment_ns]
    parts[:, 0] = np.maximum(parts[:, 0], moment_ns)
    parts[:, 2] -= at
    windows[at, 0] = max(begin, moment_ns)
    return replace(
        summary,
        windows=tuple(map(tuple, windows[kept].tolist())),
        steps=tuple(summary.steps[each] for each in kept) if summary.steps else (),
        parts=parts,
        **tables,
    )


def pack(summary: RankSummary) -> bytes:
    """Of arrays the differences from row to row."""
    content = msgspec.msgpack.encode(summary, enc_hook=_as_differences)
    return zstandard.ZstdCompressor(9, write_checksum=True).compress(content)


def unpack(packed: bytes) -> RankSummary:
    """Raises msgspec.MsgspecError, zstandard.ZstdError or ValueError where it is none."""
    return msgspec.msgpack.decode(unzipped(packed, MOST_BYTES), type=RankSummary, dec_hook=_as_rows)


def unzipped(packed: bytes, most: int) -> bytes:
    """What was packed by zstd as one frame, which states its size. Raises ValueError where that is more than `most`
    bytes, or is not stated."""
    size = zstandard.frame_content_size(packed)
    if not 0 <= size <= most:
        raise ValueError("too large to be unpacked")
    return zstandard.ZstdDecompressor().decompress(packed, allow_extra_data=False)


def _as_differences(rows: Ints) -> tuple[tuple[int, ...], bytes]:
    return rows.shape, np.diff(rows, axis=0, prepend=0).T.tobytes()


def _as_rows(_type: type, packed: object) -> Ints:
    shape, data = msgspec.convert(packed, _Packed)
    columns = np.frombuffer(data, dtype="<i8").reshape(shape[::-1])
    return np.cumsum(columns.T, axis=0)
