"""How much longer do compute kernels take beside a collective than alone?

A collective holds SMs and bandwidth for as long as its kernel runs, also while it only waits. A kernel that ran beside
one is held against the same kernel where it ran alone: the one at the same place in another rank's recording, else
those of its name and grid where these take equally long. Ranks' GPUs differ in speed; kernels that ran alone on both
tell by how much.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.model.ranks import RankDigest

#: A kernel ran beside a collective if it shared this much of its time with one; alone, if none.
BESIDE = 0.5
#: So many that ran alone give a usual duration, if half of them differ from it by no more than this.
LEAST_ALONE = 3
MOST_SPREAD = 0.05
#: Below this share of the time beside collectives with a usual duration, the price is not told.
LEAST_KNOWN = 0.5
#: A normal sample's deviation is 1.4826 times its median one.
NORMAL_DEVIATION = 1.4826
NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class OverlapPrice:
    """What overlap cost one rank, with a 95 % interval."""

    price_us: float
    low_us: float
    high_us: float
    beside_us: float  #: Compute time beside collectives that the price is of.
    known_share: float  #: Of all compute time beside collectives.


def price_overlap(digests: dict[int, RankDigest]) -> dict[int, OverlapPrice | None]:
    """The price for each rank; None where nothing ran beside a collective, or too little of it alone too."""
    every = pl.concat([_kernels(rank, digest) for rank, digest in digests.items()])
    return {rank: _price(every, rank) for rank in digests}


def _kernels(rank: int, digest: RankDigest) -> pl.DataFrame:
    """The rank's compute kernels, the place of each among those of its kind, and how much of it ran beside a
    collective."""
    own = digest.activities.filter((pl.col("kind") == "kernel") & (pl.col("family") != "communication"))
    talk = interval.union(*(digest.collectives[column].to_numpy() for column in ("start_ns", "end_ns")))
    stretches = own.select("start_ns", "end_ns").to_numpy()
    lasting = np.maximum(stretches[:, 1] - stretches[:, 0], 1)
    beside = interval.covered_within(talk, stretches) / lasting
    kind = ["name", "grid"]
    return own.select("name", pl.col("grid").fill_null("")).with_columns(
        rank=pl.lit(rank),
        ns=pl.Series(lasting),
        beside=pl.Series(beside),
        place=pl.int_range(pl.len()).over(kind),
        count=pl.len().over(kind),
    )


def _price(every: pl.DataFrame, rank: int) -> OverlapPrice | None:
    alone, mine = every.filter(pl.col("beside") == 0), every.filter(pl.col("rank") == rank)
    same_place = ["name", "grid", "count", "place"]
    others = alone.filter(pl.col("rank") != rank).group_by(same_place).agg(usual=pl.col("ns").median())
    pairs = mine.filter(pl.col("beside") == 0).join(others, on=same_place)
    # Of one rank with the others, where nothing ran beside either.
    ratios = (pairs["ns"] / pairs["usual"]).to_numpy()
    speed = float(np.median(ratios)) if len(ratios) >= LEAST_ALONE else 1.0
    scatter = NORMAL_DEVIATION * float(np.median(np.abs(ratios - speed))) if len(ratios) >= LEAST_ALONE else MOST_SPREAD
    beside = mine.filter(pl.col("beside") >= BESIDE)
    known = beside.join(others, on=same_place, how="left").join(_usual(alone, rank), on=["name", "grid"], how="left")
    known = known.with_columns(usual=pl.coalesce(speed * pl.col("usual"), "usual_own")).filter(
        pl.col("usual").is_not_null()
    )
    total, all_ns = int(known["ns"].sum()), int(beside["ns"].sum())
    if not total or total < LEAST_KNOWN * all_ns:
        return None
    price = float((known["ns"] - known["usual"]).sum())
    usual = known["usual"].to_numpy()
    # Each usual duration scatters by itself, the ratio of the GPUs' speeds is wrong for all alike.
    error = NORMAL_95 * scatter * float(np.sqrt((usual**2).sum() + usual.sum() ** 2 / max(len(ratios), 1)))
    return OverlapPrice(price / 1e3, (price - error) / 1e3, (price + error) / 1e3, total / 1e3, total / all_ns)


def _usual(alone: pl.DataFrame, rank: int) -> pl.DataFrame:
    """The usual duration of the rank's kernels of one name and grid, where they take equally long."""
    spread = (pl.col("ns") / pl.col("ns").median() - 1).abs().quantile(0.9)
    grouped = alone.filter(pl.col("rank") == rank).group_by("name", "grid")
    found = grouped.agg(usual_own=pl.col("ns").median(), spread=spread, alone=pl.len())
    return found.filter((pl.col("alone") >= LEAST_ALONE) & (pl.col("spread") <= MOST_SPREAD)).select(
        "name", "grid", "usual_own"
    )
