"""Which of a digest's GPU activities compute, which communicate, and which were launched outside of its window."""

from collections import Counter
from collections.abc import Iterable, Mapping

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


def communication_of(digest: RankDigest) -> Intervals:
    """When any of the rank's collectives ran."""
    return interval.union(*(digest.collectives[name].to_numpy() for name in ("start_ns", "end_ns")))


def in_common_steps(digests: Mapping[int, RankDigest], ranks: Iterable[int]) -> dict[int, pl.DataFrame]:
    """The activities of each of these ranks in the steps that all of them recorded: a recording may hold some that
    others lack."""
    own = {rank: digests[rank] for rank in ranks}
    common = set.intersection(*({*each.steps} for each in own.values()))
    steps = {rank: [at for at, step in enumerate(each.steps) if step in common] for rank, each in own.items()}
    return {
        rank: each.activities.filter(pl.col("step").is_in(steps[rank])) if common else each.activities
        for rank, each in own.items()
    }


def usual_place(places: pl.DataFrame) -> str | None:
    """Where most of these gaps are, of those that have a place."""
    found = Counter(places["where"].drop_nulls().to_list()).most_common(1)
    return found[0][0] if found else None


def whole_gaps(digest: RankDigest) -> pl.DataFrame:
    """The rank's idle gaps: start, end, and nanoseconds of each cause."""
    starts, ends = (digest.gaps[name].to_numpy() for name in ("start_ns", "end_ns"))
    begun = np.concatenate(([True], starts[1:] != ends[:-1]))[: len(starts)]
    parts = digest.gaps.with_columns(gap=np.cumsum(begun)).group_by("gap", maintain_order=True)
    return parts.agg(pl.col("start_ns").first(), pl.col("end_ns").last(), pl.col(IDLE_CAUSES).sum()).drop("gap")
