"""Do all ranks do the same work? Kernels that one rank runs more often, or slower, than the others."""

from statistics import median

import polars as pl

from tracekit.ranks.activities import in_common_steps
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.job_figures import UnevenKernel
from tracekit.ranks.stages import Ranks, peers_of

#: A kernel's difference below this share of the window is not listed.
LEAST_SHARE = 0.0005
#: A slow GPU is slower in this share of the steps, of so many or more.
MOSTLY_SLOWER, LEAST_STEPS = 0.8, 3


def compare_work(
    digests: dict[int, RankDigest], stages: tuple[Ranks, ...]
) -> tuple[tuple[UnevenKernel, ...], dict[int, float]]:
    """Kernels that ranks ran unequally often; and of those that all ran equally often a rank's time by the median
    rank's, less one. Of a pipeline ranks are held against those of their own stage, of which one alone differs from
    nobody."""
    found = [_compare({rank: digests[rank] for rank in part}) for part in peers_of(digests, stages)]
    uneven = sorted((one for some, _ in found for one in some), key=lambda one: -abs(one.more_us))
    return tuple(uneven), {rank: slower for _, some in found for rank, slower in some.items()}


def count_launches(digests: dict[int, RankDigest], peers: tuple[Ranks, ...]) -> dict[int, tuple[int, float]]:
    """Of each rank how many kernels were launched one by one, and of the median one of its peers."""
    counts: dict[int, tuple[int, float]] = {}
    for part in peers:
        own = {rank: each.filter(~pl.col("in_graph")).height for rank, each in _kernels(digests, part).items()}
        for rank, count in own.items():
            counts[rank] = count, median([n for other, n in own.items() if other != rank] or [count])
    return counts


def find_unsteady(digests: dict[int, RankDigest], peers: tuple[Ranks, ...]) -> frozenset[int]:
    """Ranks that are slower than their peers in some steps alone, of kernels whose grids nobody recorded: those of one
    name may have more to do."""
    unsteady: set[int] = set()
    for part in peers:
        kernels = _kernels(digests, part)
        steps = set.intersection(*({*digests[rank].steps} for rank in part))
        if len(steps) < LEAST_STEPS or any(each["grid"].null_count() < each.height for each in kernels.values()):
            continue
        lasting = (pl.col("end_ns") - pl.col("start_ns")).sum()
        spent = {
            rank: {digests[rank].steps[at]: ns for at, ns in own.group_by("step").agg(lasting).iter_rows()}
            for rank, own in kernels.items()
        }
        usual = {step: median(own.get(step, 0) for own in spent.values()) for step in steps}
        for rank, own in spent.items():
            slower = sum(own.get(step, 0) > usual[step] for step in steps)
            if slower < MOSTLY_SLOWER * len(steps):
                unsteady.add(rank)
    return frozenset(unsteady)


def _kernels(digests: dict[int, RankDigest], ranks: Ranks) -> dict[int, pl.DataFrame]:
    """Kernels but communication, in the steps that all recorded."""
    wanted = (pl.col("kind") == "kernel") & (pl.col("family") != "communication")
    return {rank: own.filter(wanted) for rank, own in in_common_steps(digests, ranks).items()}


def _compare(digests: dict[int, RankDigest]) -> tuple[list[UnevenKernel], dict[int, float]]:
    lasting = pl.col("end_ns") - pl.col("start_ns")
    every = pl.concat(
        own.group_by("name", maintain_order=True).agg(count=pl.len(), ns=lasting.sum()).with_columns(rank=pl.lit(rank))
        for rank, own in _kernels(digests, tuple(digests)).items()
    )
    none = dict.fromkeys(digests, (0, 0))
    uneven: list[UnevenKernel] = []
    alike = dict.fromkeys(digests, 0)
    middle = median if len(digests) > 2 else min
    span_us = median((end - start) / 1e3 for digest in digests.values() for start, end in digest.windows)
    for (name,), rows in every.group_by("name", maintain_order=True):
        found = none | {rank: (count, ns) for rank, count, ns in rows.select("rank", "count", "ns").iter_rows()}
        counts, spent = zip(*found.values(), strict=True)
        usual, usual_ns = middle(counts), middle(spent)
        for rank, (count, ns) in found.items():
            more_us = (ns - usual_ns) / 1e3
            if len({*counts}) == 1:
                alike[rank] += ns
            elif count != usual and abs(more_us) >= LEAST_SHARE * span_us:
                uneven.append(UnevenKernel(rank, str(name), count, usual, more_us))
    usual_alike = median(alike.values())
    return uneven, {rank: ns / usual_alike - 1 if usual_alike else 0.0 for rank, ns in alike.items()}
