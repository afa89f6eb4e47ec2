"""How do the hosts of a job, and the places on each axis of its parallelism, compare?"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tracekit.ranks.digests import RankSummary
from tracekit.ranks.fleets.axes import Axis
from tracekit.ranks.fleets.steps import Steps
from tracekit.ranks.fleets.stragglers import known_median, shares_of_steps
from tracekit.ranks.job_figures import RankGroup, RankUse


def group_ranks(
    summaries: dict[int, RankSummary], uses: Sequence[RankUse], axes: Sequence[Axis], steps: Steps
) -> tuple[RankGroup, ...]:
    """Ranks by host, and by their place on each axis. Of a pipeline the places are compared with each other, of experts
    with the stage; else ranks with those that do the same work."""
    hosts = {rank: each.host_name for rank, each in summaries.items() if each.host_name is not None}
    others = {"pipeline": np.zeros_like(steps.peers), "expert": steps.stages}
    usual = known_median(steps.shares, axis=1)
    apart = {name: known_median(shares_of_steps(steps.own, some), axis=1) for name, some in others.items()}
    found = []
    every: list[tuple[str, Mapping[int, str | int]]] = [("host", hosts)]
    every += [(axis.name, axis.places) for axis in axes]
    for name, places in every:
        members: dict[str | int, list[int]] = defaultdict(list)
        for row, rank in enumerate(summaries):
            if rank in places:
                members[places[rank]].append(row)
        if len(members) < 2:
            continue
        excesses = apart.get(name, usual)
        for place, rows in sorted(members.items(), key=lambda item: f"{item[0]:0>9}"):
            some = [uses[row] for row in rows]
            found.append(
                RankGroup(
                    name,
                    str(place),
                    tuple(each.rank for each in some),
                    float(np.median([each.span_us for each in some])),
                    float(np.median([each.compute_us for each in some])),
                    _middle(each.exposed_transfer_us for each in some),
                    _middle(each.exposed_waiting_us for each in some),
                    float(np.median([each.idle_us for each in some])),
                    _middle(excesses[rows]),
                )
            )
    return tuple(found)


def _middle(values: Iterable[float | None]) -> float | None:
    middle = float(known_median(np.array([*values], dtype=np.float64)))
    return None if math.isnan(middle) else middle
