"""How much longer do compute kernels take beside a collective than alone?

A collective holds SMs and bandwidth for as long as its kernel runs, also while it only waits. A kernel that ran beside
one is held against the same kernel where it ran alone, on its own rank or another: the same is what has the same name
and grid, and the same kernels before and after it; else what has that name and grid, where these take equally long.
GPUs differ in speed, and a GPU's clock from step to step; kernels that ran alone in several steps tell by how much. Of
what nowhere ran alone it is taken that it was slowed as the others are, within the differences among these.
"""

import math

import numpy as np
import polars as pl
from msgspec import Struct
from polars.dataframe.group_by import GroupBy

from tracekit import interval
from tracekit.ranks.activities import communication_of
from tracekit.ranks.digests import RankDigest

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
#: So many kernels that ran alone tell the clock of a step; fewer are mostly short ones, which tell little of it.
LEAST_IN_STEP, ELSEWHERE = 10, -1
#: How often speeds are told anew from durations, and these from speeds; the first of these by medians.
TURNS, ROUGH_TURNS = 24, 4
NORMAL_95, WITHIN_ONE_DEVIATION = 1.96, (0.16, 0.5, 0.84)
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
    if not any((each["beside"] >= BESIDE).any() for each in kernels.values()):
        return dict.fromkeys(digests)
    ranks = [*digests]
    # Of many ranks some, spread over the job, stand for all others.
    asked = [ranks[at * len(ranks) // MOST_ASKED] for at in range(MOST_ASKED)] if len(ranks) > MOST_ASKED else ranks
    usual = _usual_durations(pl.concat(kernels[rank].with_columns(rank=pl.lit(rank)) for rank in asked))
    paced = {rank: _at_usual_speed(each, usual) for rank, each in kernels.items()}
    elsewhere = _look_elsewhere(pl.concat(paced[rank].with_columns(rank=pl.lit(rank)) for rank in asked))
    return {rank: _price(each, elsewhere) for rank, each in paced.items()}


class _Elsewhere(Struct, frozen=True):
    """What kernels take on a GPU of usual speed, for each kind: `usual`, the median of the `n` that ran alone;
    `partly`, the one that was least beside a collective, and how much of it was, `part`. Not of kinds whose kernels are
    `unlike`. `scatter` is the deviation of one, with so many degrees of `freedom`."""

    alone: pl.DataFrame
    unlike: pl.DataFrame
    partly: pl.DataFrame
    scatter: float
    freedom: int


def _alone(kernels: pl.DataFrame) -> pl.DataFrame:
    return kernels.filter(pl.col("beside") == 0)


def _usual_durations(every: pl.DataFrame) -> pl.DataFrame:
    """What kernels take on a GPU of usual speed, of those that ran alone in at least two steps, of one rank or more;
    and on how many `ranks`. Not in all: so steps' speeds and kernels' durations are told by turns. Medians first, which
    outliers do not move; then means without these, for medians of ranks that differ need not come to rest at the
    truth."""
    cell, log = ("rank", "cell"), pl.col("log")
    told = pl.when(pl.len().over("rank", "step") >= LEAST_IN_STEP).then("step").otherwise(ELSEWHERE)
    alone = _alone(every).with_columns(cell=told)
    alone = alone.group_by(*SAME, *cell, maintain_order=True).agg(pl.col("ns").median())
    alone = alone.filter(pl.len().over(SAME) > 1).with_columns(log=pl.col("ns").log(), speed=pl.lit(0.0))
    for turn in range(TURNS):
        if turn == ROUGH_TURNS:
            alone = alone.filter((log - pl.col("speed") - pl.col("usual")).abs() <= MOST_APART)
        middle = pl.Expr.median if turn < ROUGH_TURNS else pl.Expr.mean
        alone = alone.with_columns(usual=middle(log - pl.col("speed")).over(SAME))
        alone = alone.with_columns(speed=middle(log - pl.col("usual")).over(cell))
    return alone.group_by(SAME, maintain_order=True).agg(
        usual=(log - pl.col("speed")).mean().exp(), ranks=pl.col("rank").n_unique()
    )


def _at_usual_speed(mine: pl.DataFrame, usual: pl.DataFrame) -> pl.DataFrame:
    """One rank's kernels as long as on a GPU of usual speed: `speed` is how many times as long the GPU took in the
    kernel's step, told by so many `pairs`. 0 where these are too few: then it is that of all steps, and the step's is
    `apart` from it by as much as kernels are. `shared` kernels ran alone on other ranks too."""
    ratios = _alone(mine).join(usual, on=SAME, maintain_order="left").with_columns(ratio=pl.col("ns") / pl.col("usual"))
    steps = ratios.group_by("step", maintain_order=True).agg(speed=pl.col("ratio").median(), pairs=pl.len())
    steps = steps.filter(pl.col("pairs") >= LEAST_IN_STEP)
    of_rank, apart = 1.0, MOST_SPREAD
    if ratios.height >= LEAST_ALONE:
        low, of_rank, high = np.quantile(ratios["ratio"], WITHIN_ONE_DEVIATION)
        apart = (high - low) / 2
    return (
        mine.join(steps, on="step", how="left", maintain_order="left")
        .with_columns(pl.col("speed").fill_null(of_rank), pl.col("pairs").fill_null(0), apart=pl.lit(apart))
        .with_columns(ns=pl.col("ns") / pl.col("speed"), shared=pl.lit((ratios["ranks"] > 1).sum()))
    )


def _look_elsewhere(every: pl.DataFrame) -> _Elsewhere:
    alone = _agreed(_alone(every).group_by(SAME, maintain_order=True))
    apart = _alone(every).join(alone.filter(pl.col("n") > 1), on=SAME, maintain_order="left")
    freedom = int(apart["n"].len() - apart.select(SAME).n_unique() - apart.select("rank", "step").n_unique())
    unlike = _alone(every).select(SAME).unique().join(alone, on=SAME, how="anti")
    partly = every.filter((pl.col("beside") > 0) & (pl.col("beside") < BESIDE)).join(unlike, on=SAME, how="anti")
    return _Elsewhere(
        alone=alone,
        unlike=unlike,
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
    talk = communication_of(digest)
    stretches = own.select("start_ns", "end_ns").to_numpy()
    lasting = np.maximum(stretches[:, 1] - stretches[:, 0], 1)
    beside = interval.covered_within(talk, stretches) / lasting
    kinds = own.select("stream", "name", pl.col("grid").fill_null("")).with_columns(
        kind=pl.struct("name", "grid").hash()
    )
    step = own["step"]
    if step.n_unique() < 2:
        # What lies between collectives stands for steps that nobody marked.
        over = digest.collectives["end_ns"].sort().to_numpy()
        step = pl.Series(np.searchsorted(over, stretches[:, 0], side="right"))
    near = [at for at in range(-AROUND, AROUND + 1) if at]
    around = [pl.col("kind").shift(at).over("stream").alias(str(at)) for at in near]
    return kinds.select(
        "name",
        "grid",
        around=pl.struct(around).hash(),
        # Not at the recording's ends.
        surrounded=pl.all_horizontal(each.is_not_null() for each in around),
        step=step.cast(pl.Int64),
        ns=pl.Series(lasting.astype(np.float64)),
        beside=pl.Series(beside),
    )


def _price(mine: pl.DataFrame, elsewhere: _Elsewhere) -> OverlapPrice | None:
    beside = mine.filter(pl.col("beside") >= BESIDE)
    alone = _alone(mine).join(elsewhere.unlike, on=SAME, how="anti", maintain_order="left")
    own = _agreed(alone.group_by(SAME, maintain_order=True)).rename({"usual": "own", "n": "own_n"})
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
    guessed = rest.select(
        usual=pl.coalesce(partly, pl.col("ns") / slowed) * pl.col("speed"), part=pl.col("part").fill_null(1.0)
    )
    # From here on in the time of each step's own clock.
    sure = sure.with_columns(known=pl.col("known") * pl.col("speed"), n=pl.coalesce("own_n", "n"))
    ran = beside["ns"] * beside["speed"]
    price = float(ran.sum()) - float(sure["known"].sum()) - float(guessed["usual"].sum())
    by_rank = sure.filter(pl.col("own").is_null() & pl.col("usual").is_not_null())["known"].sum()
    by_name = sure.filter(pl.col("own").is_null() & pl.col("usual").is_null())["known"].sum()
    # Each kernel scatters by itself; the usual duration is wrong for all kernels that are the same, the clock of a step
    # for all in it, the clocks of the steps that a usual duration was taken from for all that are held against it, and
    # the ratio of the GPUs' speeds, where it is not known, for all. So may be what is taken from kernels of the name
    # alone, or from how others were slowed.
    same = sure.group_by(SAME, maintain_order=True).agg(
        pl.col("known").sum(), pl.len(), pl.col("n").fill_null(1).first()
    )
    clock = pl.when(pl.col("pairs") > 0).then(elsewhere.scatter * OF_MEDIAN / pl.col("pairs").sqrt())
    clocks = sure.with_columns(clock=clock.otherwise("apart"))
    in_steps = clocks.group_by("step").agg((pl.col("known") * pl.col("clock")).sum())["known"]
    taken = clocks.select(pl.col("clock").median() * (pl.col("known") / pl.col("n").sqrt()).sum()).item()
    wrong = [
        elsewhere.scatter * math.sqrt((same["known"] ** 2 * (1 / same["len"] + OF_MEDIAN**2 / same["n"])).sum()),
        float(np.linalg.norm(in_steps.to_numpy())),
        float(taken),
        MOST_SPREAD * float(by_rank) if sure["shared"][0] < LEAST_ALONE else 0.0,
        MOST_SPREAD * float(by_name),
        spread * float((guessed["usual"] * guessed["part"]).sum()),
    ]
    error = NORMAL_95 * (1 + OF_FEW / max(elsewhere.freedom, 1)) * float(np.linalg.norm(wrong))
    return OverlapPrice(*(each / 1e3 for each in (price, price - error, price + error)))


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
