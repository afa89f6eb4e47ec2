"""How much longer do compute kernels take beside a collective than alone?

A collective holds SMs and bandwidth for as long as its kernel runs, also while it only waits. A kernel that ran beside
one is held against the same kernel where it ran alone, on its own rank or another: the same is what has the same name
and grid, and the same kernels before and after it; else what has that name and grid, where these take equally long.
Ranks' GPUs differ in speed; kernels that ran alone on several tell by how much. Those that nowhere ran alone are taken
to be slowed as the others are, within the differences among these.
"""

import math

import numpy as np
import polars as pl
from msgspec import Struct
from polars.dataframe.group_by import GroupBy

from tracekit import interval
from tracekit.model.digests import RankDigest

#: A kernel ran beside a collective if it shared this much of its time with one; alone, if none.
BESIDE = 0.5
#: Kernels of a name and grid that ran alone give a usual duration, if they did among so many different ones, nine of
#: ten differ from it by no more than this, and most of them ran alone: shapes may share both.
LEAST_ALONE = 3
MOST_SPREAD = 0.05
MOSTLY_ALONE = 0.5
#: The same of kernels that are the same in all that is known of them; short ones scatter more.
MOST_APART = 0.1
#: What makes a kernel the same as another, of this rank or of one more: also what ran so many kernels before it and
#: after it on its stream. Where in a step it is would say as much, were steps marked and begun alike on all ranks.
SAME = ("name", "grid", "around")
AROUND = 3
#: So many ranks' kernels a rank's are held against, at most.
MOST_ASKED = 16
#: Below this share of the time beside collectives with a usual duration, the price is not told.
LEAST_KNOWN = 0.5
#: How often speeds are told anew from durations, and these from speeds.
TURNS = 4
NORMAL_95 = 1.96
#: That of a median is so many times that of a mean; and of few pairs both are known less well, by this share of one.
OF_MEDIAN, OF_FEW = 1.2533, 3.0


class OverlapPrice(Struct, frozen=True):
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
    usual = _usual_speed({rank: _by_kind(kernels[rank]) for rank in asked})
    speeds = {rank: _measure_speed(_by_kind(each), usual) for rank, each in kernels.items()}
    some = [kernels[rank].with_columns(ns=pl.col("ns") / speeds[rank].times) for rank in asked]
    elsewhere = _look_elsewhere(pl.concat(some))
    return {rank: _price(each, speeds[rank], elsewhere) for rank, each in kernels.items()}


class _Speed(Struct, frozen=True):
    """How many times as long a rank's GPU takes as the job's usual one, told by so many kernels that ran alone on both;
    1 where these are too few."""

    times: float
    kernels: int


class _Elsewhere(Struct, frozen=True):
    """What kernels take on a GPU of usual speed, for each kind: `usual`, the median of the `n` that ran alone;
    `partly`, the one that was least beside a collective, and how much of it was, `part`. `scatter` is the deviation of
    one, with so many degrees of `freedom`."""

    alone: pl.DataFrame
    partly: pl.DataFrame
    scatter: float
    freedom: int


def _alone(kernels: pl.DataFrame) -> pl.DataFrame:
    return kernels.filter(pl.col("beside") == 0).select(*SAME, "ns")


def _by_kind(kernels: pl.DataFrame) -> pl.DataFrame:
    return _alone(kernels).group_by(SAME, maintain_order=True).agg(pl.col("ns").median())


def _usual_speed(alone: dict[int, pl.DataFrame]) -> pl.DataFrame:
    """What kernels take on a GPU of usual speed, of those that ran alone on at least two ranks. Not on all: so ranks'
    speeds and kernels' durations are told by turns."""
    every = pl.concat(each.with_columns(rank=pl.lit(rank)) for rank, each in alone.items())
    every = every.filter(pl.col("rank").n_unique().over(SAME) > 1).with_columns(speed=pl.lit(1.0))
    for _ in range(TURNS):
        every = every.with_columns(usual=(pl.col("ns") / pl.col("speed")).median().over(SAME))
        every = every.with_columns(speed=(pl.col("ns") / pl.col("usual")).median().over("rank"))
    return every.select(*SAME, usual=(pl.col("ns") / pl.col("speed")).median().over(SAME)).unique(maintain_order=True)


def _measure_speed(mine: pl.DataFrame, usual: pl.DataFrame) -> _Speed:
    ratios = mine.join(usual, on=SAME, maintain_order="left").select(pl.col("ns") / pl.col("usual")).to_series()
    return _Speed(float(np.median(ratios)), len(ratios)) if len(ratios) >= LEAST_ALONE else _Speed(1.0, 0)


def _look_elsewhere(every: pl.DataFrame) -> _Elsewhere:
    alone = _agreed(_alone(every).group_by(SAME, maintain_order=True))
    apart = _alone(every).join(alone.filter(pl.col("n") > 1), on=SAME, maintain_order="left")
    freedom = int(apart["n"].len() - apart.select(SAME).n_unique())
    partly = every.filter((pl.col("beside") > 0) & (pl.col("beside") < BESIDE))
    return _Elsewhere(
        alone=alone,
        partly=partly.sort("beside")
        .group_by(SAME, maintain_order=True)
        .first()
        .select(*SAME, partly="ns", part="beside"),
        scatter=math.sqrt(np.square(apart["ns"] / apart["usual"] - 1).sum() / freedom)
        if freedom >= LEAST_ALONE
        else MOST_SPREAD,
        freedom=freedom,
    )


def _kernels(digest: RankDigest) -> pl.DataFrame:
    """The rank's compute kernels, what ran around each on its stream, and how much of it ran beside a collective."""
    own = digest.activities.filter((pl.col("kind") == "kernel") & (pl.col("family") != "communication"))
    talk = interval.union(*(digest.collectives[column].to_numpy() for column in ("start_ns", "end_ns")))
    stretches = own.select("start_ns", "end_ns").to_numpy()
    lasting = np.maximum(stretches[:, 1] - stretches[:, 0], 1)
    beside = interval.covered_within(talk, stretches) / lasting
    kinds = own.select("stream", "name", pl.col("grid").fill_null("")).with_columns(
        kind=pl.struct("name", "grid").hash()
    )
    near = [at for at in range(-AROUND, AROUND + 1) if at]
    around = [pl.col("kind").shift(at).over("stream").alias(str(at)) for at in near]
    return kinds.select(
        "name",
        "grid",
        around=pl.struct(around).hash(),
        # Not at the recording's ends.
        surrounded=pl.all_horizontal(each.is_not_null() for each in around),
        ns=pl.Series(lasting.astype(np.float64)),
        beside=pl.Series(beside),
    )


def _price(mine: pl.DataFrame, speed: _Speed, elsewhere: _Elsewhere) -> OverlapPrice | None:
    mine = mine.with_columns(ns=pl.col("ns") / speed.times)
    beside = mine.filter(pl.col("beside") >= BESIDE)
    own = _agreed(_alone(mine).group_by(SAME, maintain_order=True)).rename({"usual": "own", "n": "own_n"})
    found = (
        beside.join(own, on=SAME, how="left", maintain_order="left")
        .join(elsewhere.alone, on=SAME, how="left", maintain_order="left")
        .join(_of_name(mine), on=["name", "grid"], how="left", maintain_order="left")
        .join(elsewhere.partly, on=SAME, how="left", maintain_order="left")
        .with_columns(known=pl.coalesce("own", "usual", "of_name"))
    )
    sure, rest = found.drop_nulls("known"), found.filter(pl.col("known").is_null())
    if not sure.height or sure["ns"].sum() < LEAST_KNOWN * float(beside["ns"].sum()):
        return None
    known = sure["known"].to_numpy()
    slowed = float(sure["ns"].sum() / known.sum())
    spread = float(np.sqrt(np.average((sure["ns"].to_numpy() / known - slowed) ** 2, weights=known)))
    # A kernel that ran partly beside a collective there was slowed for that part of it; one that nowhere ran alone is
    # taken to be slowed as the others are.
    partly = pl.col("partly") / (1 + pl.col("part") * (slowed - 1))
    guessed = rest.select(usual=pl.coalesce(partly, pl.col("ns") / slowed), part=pl.col("part").fill_null(1.0))
    price = float(beside["ns"].sum() - known.sum() - guessed["usual"].sum())
    by_rank = sure.filter(pl.col("own").is_null() & pl.col("usual").is_not_null())["known"].sum()
    by_name = sure.filter(pl.col("own").is_null() & pl.col("usual").is_null())["known"].sum()
    # Each kernel scatters by itself; the usual duration is wrong for all kernels that are the same, the ratio of the
    # GPUs' speeds for all. So may be what is taken from kernels of the name alone, or from how others were slowed.
    same = sure.group_by(SAME, maintain_order=True).agg(
        pl.col("known").sum(), pl.len(), n=pl.coalesce("own_n", "n", pl.lit(1)).first()
    )
    wrong = [
        elsewhere.scatter * math.sqrt((same["known"] ** 2 * (1 / same["len"] + OF_MEDIAN**2 / same["n"])).sum()),
        (elsewhere.scatter * OF_MEDIAN / speed.kernels**0.5 if speed.kernels else MOST_SPREAD) * float(by_rank),
        MOST_SPREAD * float(by_name),
        spread * float((guessed["usual"] * guessed["part"]).sum()),
    ]
    error = NORMAL_95 * (1 + OF_FEW / max(elsewhere.freedom, 1)) * float(np.linalg.norm(wrong))
    return OverlapPrice(*(each * speed.times / 1e3 for each in (price, price - error, price + error)))


def _agreed(same: GroupBy) -> pl.DataFrame:
    """The usual duration of each kind, where those of a kind take equally long: else something more tells them
    apart."""
    found = same.agg(usual=pl.col("ns").median(), n=pl.len(), spread=_spread(pl.col("ns")))
    return found.filter(pl.col("spread") <= MOST_APART).select(*SAME, "usual", "n")


def _of_name(mine: pl.DataFrame) -> pl.DataFrame:
    """The usual duration of the rank's kernels of one name and grid, where they take equally long."""
    alone = pl.col("beside") == 0
    places = pl.col("around").filter(alone & pl.col("surrounded")).n_unique()
    ns = pl.col("ns").filter(alone)
    found = mine.group_by("name", "grid", maintain_order=True).agg(
        of_name=ns.median(), spread=_spread(ns), alone=ns.len(), all=pl.len(), places=places
    )
    often = (pl.col("places") >= LEAST_ALONE) & (pl.col("alone") >= MOSTLY_ALONE * pl.col("all"))
    return found.filter(often & (pl.col("spread") <= MOST_SPREAD)).select("name", "grid", "of_name")


def _spread(ns: pl.Expr) -> pl.Expr:
    """Nine of ten differ from the median by no more than this share."""
    return (ns / ns.median() - 1).abs().quantile(0.9)
