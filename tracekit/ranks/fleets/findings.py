"""What should a reader know or do, by what a fleet's ranks say together?"""

from collections.abc import Mapping, Sequence

from tracekit.ranks.exposure import find_small
from tracekit.ranks.findings import find_uneven_stages
from tracekit.ranks.job_figures import CollectiveUse, RankFinding, RankUse, Straggler
from tracekit.ranks.statements import findings as statements


def find_in_fleet(
    stragglers: Sequence[Straggler],
    ranks: tuple[RankUse, ...],
    computed: Mapping[int, float],
    collectives: tuple[CollectiveUse, ...],
    stages: tuple[tuple[int, ...], ...],
) -> tuple[RankFinding, ...]:
    """Stragglers, those that lose most first; links last."""
    spans = {use.rank: use.span_us for use in ranks}
    found = []
    for each in stragglers:
        span_us = max((spans[rank] for rank in each.ranks if rank in spans), default=0.0)
        share = each.lost_us / span_us if span_us else None
        found.append(_slow_link(each, share) if each.kind == "link" else _slow_ranks(each, share))
    return (*found, *find_uneven_stages(ranks, computed, stages), *find_small(collectives))


def _slow_link(each: Straggler, share: float | None) -> RankFinding:
    return statements.StragglerLink(
        None,
        each.lost_us,
        name=each.name,
        ranks=each.ranks,
        excess=each.excess,
        ci95=each.ci95,
        chance=each.chance,
        lost_us=each.lost_us,
        share=share,
        steps=each.steps,
        steps_slower=each.steps_slower,
        collective=each.collective,
        message_bytes=each.bytes,
        busbw_gbps=each.busbw_gbps or 0.0,
        usual_gbps=each.usual_gbps or 0.0,
    )


def _slow_ranks(each: Straggler, share: float | None) -> RankFinding:
    of_rank = each.kind == "rank"
    kind = statements.StragglerRank if of_rank else statements.StragglerHost
    cause = each.causes[0] if each.causes else None
    return kind(
        each.ranks[0] if of_rank else None,
        each.lost_us,
        name=each.name,
        ranks=each.ranks,
        excess=each.excess,
        ci95=each.ci95,
        chance=each.chance,
        lost_us=each.lost_us,
        share=share,
        steps=each.steps,
        steps_slower=each.steps_slower,
        cause=cause.cause if cause else "unattributed",
        cause_share=cause.us / each.lost_us if cause and each.lost_us else 0.0,
        waited_us=each.waited_us,
    )
