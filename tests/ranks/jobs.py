"""Jobs of many ranks made by hand: digests as `tracekit.ranks.reading.rank_digest` makes them of recordings."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from tracekit.interval import complement, union
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.digests import RankDigest

#: Nanoseconds of a microsecond.
US = 1000
NAMES = ("start_ns", "end_ns")
Stretch = tuple[float, float]


def make_digest(
    rank: int | None,
    size: int | None,
    *,
    talk: Sequence[Stretch],
    kernels: Iterable[tuple[float, float, str]] = (),
    until_us: float | None = None,
    cause: str = "python",
    origin_us: float = 0.0,
    sequenced: bool = False,
    group: str | None = "0",
    **more: Any,
) -> RankDigest:
    """A rank's digest, of times in microseconds: `talk` are its collectives, all alike, launched one after the other
    where the kernel before them ends; what is idle has one `cause`."""
    kernels = sorted(kernels)
    starts, ends = (np.array([round(each[at] * US) for each in talk], dtype=np.int64) for at in (0, 1))
    begun, over = (np.array([round(each[at] * US) for each in kernels], dtype=np.int64) for at in (0, 1))
    everything = union(np.concatenate((starts, begun)), np.concatenate((ends, over)))
    last = round(until_us * US) if until_us is not None else int(everything[-1, 1]) if len(everything) else 0
    window = np.array([[0, last]], dtype=np.int64)
    idle = complement(everything, window)
    ready = [max([int(end) for end in over if end <= start], default=0) for start in starts]
    cuts = np.unique(np.concatenate((starts, np.array(ready, dtype=np.int64), idle.ravel())))
    pieces = [(int(a), int(b)) for a, b in pairwise(cuts) if ((idle[:, 0] <= a) & (b <= idle[:, 1])).any()]
    lasting = [b - a for a, b in pieces]
    gaps = pl.DataFrame(
        {name: [piece[at] for piece in pieces] for at, name in enumerate(NAMES)}, schema=dict.fromkeys(NAMES, pl.Int64)
    )
    gaps = gaps.with_columns(
        pl.Series(each, lasting if each == cause else [0] * len(pieces), dtype=pl.Int64) for each in IDLE_CAUSES
    )
    count = len(talk)
    told: dict[str, Any] = {
        "start_ns": starts,
        "end_ns": ends,
        "stream": [7] * count,
        "step": [0] * count,
        "in_graph": [False] * count,
        "sequence": list(range(count)) if sequenced else [None] * count,
        "kernel": ["ncclDevKernel_AllReduce"] * count,
        "ready_ns": ready,
        "collective": ["all_reduce"] * count,
        "group": [group] * count,
        "ranks": [[]] * count,
        "size": [size] * count,
        "dtype": ["BFloat16"] * count,
        "bytes": [1 << 20] * count,
        "signature": ["all_reduce BFloat16"] * count,
        "exchange": ["all"] * count,
        "root": [None] * count,
        "targets": [[]] * count,
        "sources": [[]] * count,
        "sent_bytes": [1 << 20] * count,
        "received_bytes": [1 << 20] * count,
    }
    types: dict[str, Any] = {
        **dict.fromkeys(("start_ns", "end_ns", "stream", "step", "sequence", "ready_ns", "size", "bytes"), pl.Int64),
        **dict.fromkeys(("root", "sent_bytes", "received_bytes"), pl.Int64),
        **dict.fromkeys(("kernel", "collective", "group", "dtype", "signature", "exchange"), pl.String),
        "in_graph": pl.Boolean,
        **dict.fromkeys(("ranks", "targets", "sources"), pl.List(pl.Int64)),
    }
    rows = [("kernel", name, "gemm", a, b) for a, b, name in kernels]
    rows += [("kernel", "ncclDevKernel_AllReduce", "communication", a, b) for a, b in talk]
    activities = pl.DataFrame(
        [
            (kind, name, family, 7, 0, round(a * US), round(b * US), "[1, 1, 1]", False)
            for kind, name, family, a, b in rows
        ],
        schema={
            **dict.fromkeys(("kind", "name", "family"), pl.String),
            **dict.fromkeys(("stream", "step", "start_ns", "end_ns"), pl.Int64),
            "grid": pl.String,
            "in_graph": pl.Boolean,
        },
        orient="row",
    )
    fields: dict[str, Any] = {
        "path": f"rank{rank}.json",
        "rank": rank,
        "world_size": size,
        "host_name": None,
        "device_name": "NVIDIA H200",
        "origin_ns": round(origin_us * US),
        "first_ns": 0,
        "groups": {"0": tuple(range(size))} if size and group else {},
        "window": "whole",
        "windows": ((0, last),),
        "activities": activities.sort("start_ns"),
        "collectives": pl.DataFrame(told, schema=types),
        "gaps": gaps,
        "places": pl.DataFrame(
            [(a, b, cause, "train.py(12): step") for a, b in pieces],
            schema={"start_ns": pl.Int64, "end_ns": pl.Int64, "cause": pl.String, "where": pl.String},
            orient="row",
        ),
        "skipped": 0,
        "truncated": False,
    }
    return RankDigest(**(fields | more))


def simulate(
    size: int,
    steps: int,
    work_us: Callable[[int, int], float],
    *,
    transfer_us: float = 100.0,
    clock: Callable[[int, float], float] = lambda rank, us: us,
    **more: Any,
) -> list[RankDigest]:
    """A job in which each step is a kernel of `work_us(rank, step)` and then a collective of all; a rank writes down
    `clock(rank, moment)`."""
    talk: list[list[Stretch]] = [[] for _ in range(size)]
    kernels: list[list[tuple[float, float, str]]] = [[] for _ in range(size)]
    now = [10.0] * size
    for step in range(steps):
        arrivals = [now[rank] + work_us(rank, step) for rank in range(size)]
        over = max(arrivals) + transfer_us
        for rank in range(size):
            kernels[rank].append((clock(rank, now[rank]), clock(rank, arrivals[rank]), "gemm"))
            talk[rank].append((clock(rank, arrivals[rank]), clock(rank, over)))
            now[rank] = over + 20.0
    return [make_digest(rank, size, talk=talk[rank], kernels=kernels[rank], **more) for rank in range(size)]
