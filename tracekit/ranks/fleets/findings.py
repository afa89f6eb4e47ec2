"""What should a reader know or do, by what a fleet's ranks say together?"""

from collections.abc import Mapping, Sequence

from tracekit.ranks.exposure import find_small
from tracekit.ranks.findings import find_uneven_stages
from tracekit.ranks.job_figures import CollectiveUse, RankFinding, RankUse, Straggler


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
        span = max((spans[rank] for rank in each.ranks if rank in spans), default=0.0)
        facts = {
            "name": each.name,
            "ranks": each.ranks,
            "excess": each.excess,
            "ci95": each.ci95,
            "chance": each.chance,
            "lost_us": each.lost_us,
            "share": each.lost_us / span if span else None,
            "steps": each.steps,
            "steps_slower": each.steps_slower,
        }
        if each.kind == "link":
            facts |= {
                "collective": each.collective,
                "message_bytes": each.bytes,
                "busbw_gbps": each.busbw_gbps,
                "usual_gbps": each.usual_gbps,
            }
        else:
            cause = each.causes[0] if each.causes else None
            facts |= {
                "cause": cause.cause if cause else "unattributed",
                "cause_share": cause.us / each.lost_us if cause and each.lost_us else 0.0,
                "waited_us": each.waited_us,
            }
        rank = each.ranks[0] if each.kind == "rank" else None
        found.append(RankFinding(f"straggler_{each.kind}", "warning", rank, facts, each.lost_us))
    return (*found, *find_uneven_stages(ranks, computed, stages), *find_small(collectives))
