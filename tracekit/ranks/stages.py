"""Which ranks are of one stage of a pipeline? Stages may differ in work by design: a rank is held against its own.

A pipeline is ranks in a row, each of which exchanges with its neighbours alone, and some of it in one direction only:
ranks in a ring, or that give and take at once each time, do equal work. Ranks of several pipelines are of one stage
where a group has at most one rank of each: data and tensor parallel groups do, that of all ranks does not.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tracekit.ranks.digests import RankSummary

Ranks = tuple[int, ...]


def find_stages(summaries: Mapping[int, RankSummary]) -> tuple[Ranks, ...]:
    """The recorded ranks of each stage; none where the job is no pipeline."""
    pairs: set[Ranks] = set()
    one_way: set[int] = set()
    groups: set[Ranks] = set()
    for rank, summary in summaries.items():
        for each in summary.talk:
            if each.exchange == "pairs":
                pairs |= {(min(rank, other), max(rank, other)) for other in (*each.targets, *each.sources)}
                if not each.targets or not each.sources:
                    one_way.add(rank)
            else:
                groups.add(each.ranks or summary.groups.get(each.group or "", ()))
    neighbours = Counter(rank for pair in pairs for rank in pair)
    pipelines = []
    for some in _joined(pairs):
        counts = [neighbours[rank] for rank in some]
        in_a_row = sum(counts) == 2 * (len(counts) - 1) and max(counts) <= 2
        if in_a_row and one_way & {*some}:
            pipelines.append(some)
    of_pipeline = {rank: at for at, ranks in enumerate(pipelines) for rank in ranks}
    parts = [[rank] for rank in of_pipeline]
    for ranks in groups if pipelines else ():
        staged = [rank for rank in ranks if rank in of_pipeline]
        if len({of_pipeline[rank] for rank in staged}) == len(staged):
            parts.append(staged)
    recorded = (tuple(rank for rank in stage if rank in summaries) for stage in _joined(parts))
    return tuple(each for each in recorded if each)


def peers_of(ranks: Iterable[int], stages: Sequence[Ranks]) -> tuple[Ranks, ...]:
    """Ranks that are held against each other: those of each stage, and those of none. One alone differs from nobody."""
    staged = {rank for stage in stages for rank in stage}
    parts = (*stages, tuple(rank for rank in ranks if rank not in staged))
    return tuple(tuple(sorted(part)) for part in parts if part)


def _joined(parts: Iterable[Iterable[int]]) -> list[Ranks]:
    """What is in one part, by way of others too."""
    of: dict[int, set[int]] = {}
    for part in parts:
        whole = set(part).union(*(of.get(each, ()) for each in part))
        of |= dict.fromkeys(whole, whole)
    return sorted({tuple(sorted(each)) for each in of.values()})
