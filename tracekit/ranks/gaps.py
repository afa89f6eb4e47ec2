"""A digest's gaps are cut at collectives; some questions are about whole ones."""

import numpy as np
import polars as pl

from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.digests import RankDigest


def whole_gaps(digest: RankDigest) -> pl.DataFrame:
    """The rank's idle gaps: start, end, and nanoseconds of each cause."""
    starts, ends = (digest.gaps[name].to_numpy() for name in ("start_ns", "end_ns"))
    begun = np.concatenate(([True], starts[1:] != ends[:-1]))[: len(starts)]
    parts = digest.gaps.with_columns(gap=np.cumsum(begun)).group_by("gap", maintain_order=True)
    return parts.agg(pl.col("start_ns").first(), pl.col("end_ns").last(), pl.col(IDLE_CAUSES).sum()).drop("gap")
