"""How much longer do compute kernels take beside a collective than alone?

A collective holds SMs and bandwidth for as long as its kernel runs, also while it only waits. A kernel that ran beside
one is held against the same kernel where it ran alone: the one at the same place in another rank's recording, else
at its place in another step, else those of its name and grid where these take equally long. Ranks' GPUs differ in
speed; kernels that ran alone on both tell by how much. Those that nowhere ran alone are taken to be slowed as the
others are, within the differences among these.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from tracekit import interval
from tracekit.model.ranks import RankDigest

#: A kernel ran beside a collective if it shared this much of its time with one; alone, if none.
BESIDE = 0.5
#: At so many places of a step kernels that ran alone give a usual duration, if nine of ten differ from it by no more
#: than this, and most of their name and grid ran alone: shapes may share both.
LEAST_ALONE = 3
MOST_SPREAD = 0.05
MOSTLY_ALONE = 0.5
#: What makes a kernel the same as one of another rank, or of another step.
SAME_PLACE = ("name", "grid", "count", "place")
SAME_IN_STEP = ("name", "grid", "count_in_step", "place_in_step")
#: So many ranks' kernels a rank's are held against, at most.
MOST_ASKED = 16
#: Below this share of the time beside collectives with a usual duration, the price is not told.
LEAST_KNOWN = 0.5
#: A normal sample's deviation is 1.4826 times its median one.
NORMAL_DEVIATION = 1.4826
NORMAL_95 = 1.96
#: That of a median is so many times that of a mean; and of few pairs both are known less well, by this share of one.
OF_MEDIAN, OF_FEW = 1.2533, 3.0


@dataclass(frozen=True, slots=True)
class OverlapPrice:
    """What overlap cost one rank, with a 95 % interval."""

    price_us: float
    low_us: float
    high_us: float


def price_overlap(digests: dict[int, RankDigest]) -> dict[int, OverlapPrice | None]:
    """The price for each rank; None where nothing ran beside a collective, or too little of it alone too."""
    kernels = {rank: _kernels(digest) for rank, digest in digests.items()}
    ranks = [*digests]
    # Of many ranks some, spread over the job, stand for all others.
    asked = [ranks[at * len(ranks) // MOST_ASKED] for at in range(MOST_ASKED)] if len(ranks) > MOST_ASKED else ranks
    elsewhere: dict[tuple[int, ...], _Elsewhere] = {}
    prices: dict[int, OverlapPrice | None] = {}
    for rank, mine in kernels.items():
        others = tuple(each for each in asked if each != rank)
        if others not in elsewhere:
            elsewhere[others] = _look_elsewhere([mine.clear(), *(kernels[each] for each in others)])
        prices[rank] = _price(mine, elsewhere[others])
    return prices


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """What other ranks' kernels took, by the place of each: `other`, the median of those that ran alone; `partly`, of
    the one that was least beside a collective, and how much of it was, `part`."""

    alone: pl.DataFrame
    partly: pl.DataFrame


def _look_elsewhere(kernels: list[pl.DataFrame]) -> _Elsewhere:
    every = pl.concat(kernels)
    partly = every.filter((pl.col("beside") > 0) & (pl.col("beside") < BESIDE))
    least = partly.sort("beside").group_by(SAME_PLACE, maintain_order=True).first()
    return _Elsewhere(
        alone=every.filter(pl.col("beside") == 0).group_by(SAME_PLACE).agg(other=pl.col("ns").median()),
        partly=least.select(*SAME_PLACE, partly="ns", part="beside"),
    )


def _kernels(digest: RankDigest) -> pl.DataFrame:
    """The rank's compute kernels, the place of each among those of its kind, and how much of it ran beside a
    collective."""
    own = digest.activities.filter((pl.col("kind") == "kernel") & (pl.col("family") != "communication"))
    talk = interval.union(*(digest.collectives[column].to_numpy() for column in ("start_ns", "end_ns")))
    stretches = own.select("start_ns", "end_ns").to_numpy()
    lasting = np.maximum(stretches[:, 1] - stretches[:, 0], 1)
    beside = interval.covered_within(talk, stretches) / lasting
    kind = ["name", "grid"]
    return own.select("name", "step", pl.col("grid").fill_null("")).with_columns(
        ns=pl.Series(lasting),
        beside=pl.Series(beside),
        place=pl.int_range(pl.len()).over(kind),
        count=pl.len().over(kind),
        place_in_step=pl.int_range(pl.len()).over(*kind, "step"),
        count_in_step=pl.len().over(*kind, "step"),
    )


def _price(mine: pl.DataFrame, elsewhere: _Elsewhere) -> OverlapPrice | None:
    mine_alone = mine.filter(pl.col("beside") == 0)
    steps = mine_alone.group_by(SAME_IN_STEP).agg(in_step=pl.col("ns").median())
    # Of one rank with the others, where nothing ran beside either.
    pairs = mine_alone.join(elsewhere.alone, on=SAME_PLACE)
    ratios = (pairs["ns"] / pairs["other"]).to_numpy()
    speed = float(np.median(ratios)) if len(ratios) >= LEAST_ALONE else 1.0
    scatter = NORMAL_DEVIATION * float(np.median(np.abs(ratios - speed))) if len(ratios) >= LEAST_ALONE else MOST_SPREAD
    beside = mine.filter(pl.col("beside") >= BESIDE)
    found = (
        beside.join(elsewhere.alone, on=SAME_PLACE, how="left")
        .join(steps, on=SAME_IN_STEP, how="left")
        .join(_usual(mine), on=["name", "grid"], how="left")
        .join(elsewhere.partly, on=SAME_PLACE, how="left")
        .with_columns(usual=pl.coalesce(speed * pl.col("other"), "in_step", "of_name"))
    )
    sure, rest = found.drop_nulls("usual"), found.filter(pl.col("usual").is_null())
    if not sure.height or sure["ns"].sum() < LEAST_KNOWN * int(beside["ns"].sum()):
        return None
    usual = sure["usual"].to_numpy()
    slowed = float(sure["ns"].sum() / usual.sum())
    spread = float(np.sqrt(np.average((sure["ns"].to_numpy() / usual - slowed) ** 2, weights=usual)))
    # A kernel that ran partly beside a collective there was slowed for that part of it; one that nowhere ran alone is
    # taken to be slowed as the others are.
    partly = speed * pl.col("partly") / (1 + pl.col("part") * (slowed - 1))
    guessed = rest.select(usual=pl.coalesce(partly, pl.col("ns") / slowed), part=pl.col("part").fill_null(1.0))
    price = float(beside["ns"].sum() - usual.sum() - guessed["usual"].sum())
    by_name = sure.filter(pl.col("other").is_null() & pl.col("in_step").is_null())["usual"].sum()
    by_rank = sure.filter(pl.col("other").is_not_null())["usual"].sum()
    # Each usual duration scatters by itself; the ratio of the GPUs' speeds is wrong for all alike, and so may be what
    # is taken from kernels of the name alone, or from how others were slowed.
    wrong = [
        scatter * float(np.sqrt((usual**2).sum())),
        scatter * OF_MEDIAN * float(by_rank) / max(len(ratios), 1) ** 0.5,
        MOST_SPREAD * float(by_name),
        spread * float((guessed["usual"] * guessed["part"]).sum()),
    ]
    error = NORMAL_95 * (1 + OF_FEW / max(len(ratios), 1)) * float(np.linalg.norm(wrong))
    return OverlapPrice(price / 1e3, (price - error) / 1e3, (price + error) / 1e3)


def _usual(mine: pl.DataFrame) -> pl.DataFrame:
    """The usual duration of the rank's kernels of one name and grid, where they take equally long."""
    alone = pl.col("ns").filter(pl.col("beside") == 0)
    places = pl.col("place_in_step").filter(pl.col("beside") == 0).n_unique()
    spread = (alone / alone.median() - 1).abs().quantile(0.9)
    found = mine.group_by("name", "grid").agg(
        of_name=alone.median(), spread=spread, alone=alone.len(), all=pl.len(), places=places
    )
    often = (pl.col("places") >= LEAST_ALONE) & (pl.col("alone") >= MOSTLY_ALONE * pl.col("all"))
    return found.filter(often & (pl.col("spread") <= MOST_SPREAD)).select("name", "grid", "of_name")
