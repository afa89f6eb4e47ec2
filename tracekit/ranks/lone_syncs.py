"""Does a rank's host wait for its GPU where others' hosts do not: `.item()` on one rank?"""

from collections.abc import Iterator, Sequence
from statistics import median

import polars as pl

from tracekit.ranks.activities import computing, in_common_steps, usual_place, whole_gaps
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.statements.findings import LoneSync

#: What a copy to the host is called.
TO_HOST = "Memcpy DtoH"
#: Of the window: less idle time after them is not told; less than the second saves nothing.
LEAST_SHARE, LEAST_SAVED = 0.001, 0.01


def find_lone_syncs(digests: dict[int, RankDigest], parts: Sequence[Sequence[int]]) -> Iterator[LoneSync]:
    """A rank's copies to the host that others do not make, and its GPU's idle time after them. Ranks are held against
    others of their part: those of one pipeline stage."""
    for part in parts:
        to_host = pl.col("name").str.starts_with(TO_HOST)
        copies = {rank: own.filter(to_host) for rank, own in in_common_steps(digests, part).items()}
        for rank in part if len(part) > 1 else ():
            usual = median(each.height for other, each in copies.items() if other != rank)
            if (more := copies[rank].height - usual) <= 0:
                continue
            waited = _waited(digests[rank], copies[rank])
            idle_us = sum(waited["idle_ns"]) / 1e3 * more / copies[rank].height
            share = idle_us * 1e3 / sum(end - start for start, end in digests[rank].windows)
            if share >= LEAST_SHARE:
                yield LoneSync(
                    rank,
                    idle_us if share >= LEAST_SAVED else None,
                    count=copies[rank].height,
                    usual_count=usual,
                    idle_us=idle_us,
                    share=share,
                    where=usual_place(digests[rank].places.join(waited, on="start_ns")),
                )


def _waited(digest: RankDigest, copies: pl.DataFrame) -> pl.DataFrame:
    """The gaps that begin while the host waits for one of them, or for what communicates beside it."""
    compute = computing(digest).select(begun="start_ns")
    gaps = whole_gaps(digest).filter(pl.col("sync_wait") > 0)
    after = gaps.join_asof(compute.sort("begun"), left_on="start_ns", right_on="begun")
    waited = after.filter(pl.col("begun").is_in(copies["start_ns"].to_list()))
    return waited.select("start_ns", idle_ns=pl.col("end_ns") - pl.col("start_ns"))
