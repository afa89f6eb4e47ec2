"""Own time step by step: how far it is spread over all ranks, and the rows of its picture."""

from collections.abc import Sequence

import numpy as np

from tracekit.ranks.fleets.steps import Steps
from tracekit.ranks.fleets.stragglers import known_median
from tracekit.ranks.job_figures import StepRow, StepSpread, Straggler

#: Rows of the picture: stragglers, and bins of all others.
MOST_STRAGGLERS, MOST_BINS = 24, 32


def spread_by_step(steps: Steps) -> tuple[StepSpread, ...]:
    """Each step over all ranks."""
    found = []
    every = steps.own
    bare = steps.span - every
    for at, number in enumerate(steps.numbers):
        own = every[:, at]
        most = int(np.nanargmax(own))
        share = float(known_median(bare[:, at] / steps.span[:, at]))
        found.append(StepSpread(number, float(known_median(own)), float(own[most]), int(steps.ranks[most]), share))
    return tuple(found)


def _name(ranks: list[int]) -> str:
    return f"ranks {ranks[0]} to {ranks[-1]}" if len(ranks) > 1 else f"rank {ranks[0]}"


def list_step_rows(steps: Steps, stragglers: Sequence[Straggler]) -> tuple[StepRow, ...]:
    """Each straggler by itself, all other ranks in bins of neighbours."""
    chosen = [each for each in stragglers if each.kind != "link"][:MOST_STRAGGLERS]
    taken = {rank for each in chosen for rank in each.ranks}
    rows = [(each.name or f"rank {each.ranks[0]}", each.ranks) for each in chosen]
    others = [int(rank) for rank in steps.ranks if int(rank) not in taken]
    bins = np.array_split(np.array(others, dtype=np.int64), min(MOST_BINS, len(others)) or 1)
    rows += [(_name(some.tolist()), tuple(some.tolist())) for some in bins if len(some)]
    found, shares = [], steps.shares
    for name, ranks in rows:
        own = shares[np.isin(steps.ranks, ranks)]
        known = (column[~np.isnan(column)] for column in own.T)
        values = tuple(float(np.median(each)) if len(each) else None for each in known)
        found.append(StepRow(name, ranks, values))
    return tuple(found)
