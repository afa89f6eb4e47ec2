"""Which ranks are of one stage of a pipeline? Stages may differ in work by design: a rank is held against its own.

A pipeline is ranks in a row, each of which exchanges with its neighbours alone, and some of it in one direction only:
ranks in a ring, or that give and take at once each time, do equal work. Ranks of several pipelines are of one stage
where a group has at most one rank of each: data and tensor parallel groups do, that of all ranks does not.
"""

from collections.abc import Iterable

import polars as pl

from tracekit.model.ranks import RankDigest

Ranks = tuple[int, ...]


def find_stages(digests: dict[int, RankDigest]) -> tuple[Ranks, ...]:
    """The recorded ranks of each stage; none where the job is no pipeline."""
    pairs, one_way = _pairs(digests)
    pipelines = [each for each in _joined(pairs) if one_way & {*each} and _in_a_row(each, pairs)]
    of_pipeline = {rank: at for at, ranks in enumerate(pipelines) for rank in ranks}
    parts = [[rank] for rank in of_pipeline]
    for ranks in _groups(digests):
        staged = [rank for rank in ranks if rank in of_pipeline]
        if len({of_pipeline[rank] for rank in staged}) == len(staged):
            parts.append(staged)
    recorded = (tuple(rank for rank in stage if rank in digests) for stage in _joined(parts))
    return tuple(each for each in recorded if each)


def _pairs(digests: dict[int, RankDigest]) -> tuple[set[Ranks], set[int]]:
    """Which ranks exchange with each other, and which of them also give or take alone."""
    pairs: set[Ranks] = set()
    one_way: set[int] = set()
    for rank, digest in digests.items():
        ends = digest.collectives.filter(pl.col("exchange") == "pairs").select("targets", "sources").unique()
        for targets, sources in ends.iter_rows():
            pairs |= {(min(rank, other), max(rank, other)) for other in (*targets, *sources)}
            if not targets or not sources:
                one_way.add(rank)
    return pairs, one_way


def _in_a_row(ranks: Ranks, pairs: set[Ranks]) -> bool:
    met = [pair for pair in pairs if pair[0] in ranks]
    return len(met) == len(ranks) - 1 and all(sum(rank in pair for pair in met) <= 2 for rank in ranks)


def _groups(digests: dict[int, RankDigest]) -> set[Ranks]:
    """The ranks of each group that does something together."""
    found: set[Ranks] = set()
    for digest in digests.values():
        of_all = digest.collectives.filter(pl.col("exchange") != "pairs").select("group", "ranks").unique()
        found |= {tuple(ranks) or digest.groups.get(group or "", ()) for group, ranks in of_all.iter_rows()}
    return found


def _joined(parts: Iterable[Iterable[int]]) -> list[Ranks]:
    """What is in one part, by way of others too."""
    of: dict[int, set[int]] = {}
    for part in parts:
        whole = set(part).union(*(of.get(each, ()) for each in part))
        of |= dict.fromkeys(whole, whole)
    return sorted({tuple(sorted(each)) for each in of.values()})
