"""Which of a digest's GPU activities compute, and which were launched outside of its window."""

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.interval import Intervals
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.digests import RankDigest

#: The kind of what was launched outside of the window and runs in it, and the family of it that communicates: nobody
#: knows which collectives of other ranks that belongs to.
OUTSIDE, OUTSIDE_COMMUNICATION = "outside", "outside communication"


def computing(digest: RankDigest) -> pl.DataFrame:
    """All but communication."""
    return digest.activities.filter(~pl.col("family").is_in(("communication", OUTSIDE_COMMUNICATION)))


def compute_of(digest: RankDigest) -> Intervals:
    """When the rank's GPU did anything but communicate."""
    own = computing(digest)
    return interval.union(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())


def whole_gaps(digest: RankDigest) -> pl.DataFrame:
    """The rank's idle gaps: start, end, and nanoseconds of each cause."""
    starts, ends = (digest.gaps[name].to_numpy() for name in ("start_ns", "end_ns"))
    begun = np.concatenate(([True], starts[1:] != ends[:-1]))[: len(starts)]
    parts = digest.gaps.with_columns(gap=np.cumsum(begun)).group_by("gap", maintain_order=True)
    return parts.agg(pl.col("start_ns").first(), pl.col("end_ns").last(), pl.col(IDLE_CAUSES).sum()).drop("gap")
