"""What did each rank do in each step, beside the ranks that do the same work?"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.interval import Bools, Floats, Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.ranks.digests import RankSummary
from tracekit.ranks.fleets.stragglers import known_median, shares_of_steps, usual_of_peers
from tracekit.ranks.job_figures import StepRow, StepSpread, Straggler

#: Ranks times steps: tables of a gigabyte.
MOST_CELLS = 1 << 23
#: Rows of the picture: stragglers, and bins of all others.
MOST_STRAGGLERS, MOST_BINS = 24, 32


class Steps(Struct, frozen=True):
    """By rank (rows, as in `ranks`) and step (columns, as in `numbers`), in microseconds; NaN where not recorded.
    Ranks of one number in `stages` are of one pipeline stage; those of one in `peers` do the same work."""

    ranks: Ints
    stages: Ints
    peers: Ints
    numbers: tuple[int, ...]
    span: Floats
    compute: Floats
    idle: Floats  #: And by cause.
    beside: Floats

    @property
    def own(self) -> Floats:
        """What a rank does without others."""
        whole: Floats = self.compute + self.idle.sum(axis=2)
        return whole

    @property
    def shares(self) -> Floats:
        """By how much a rank's own time exceeds its peers' median."""
        return shares_of_steps(self.own, self.peers)

    @property
    def held(self) -> Floats:
        """How much more compute each rank has beside communication than its peers: kernels are slower there, while
        ranks wait for a late one, which is none of their fault."""
        more: Floats = np.maximum(self.beside - usual_of_peers(self.beside, self.peers), 0.0)
        return more

    @property
    def slower(self) -> Floats:
        """Each rank's compute in all steps over its peers' median, less one; NaN where it recorded none."""
        return shares_of_steps(_as_if_whole(self.compute, self.peers)[:, np.newaxis], self.peers)[:, 0]

    @property
    def computed(self) -> dict[int, float]:
        """Each rank's compute in those steps that every stage has recorded."""
        stages = [self.peers == each for each in np.unique(self.peers)]
        common = np.all([~np.isnan(self.compute[some]).all(axis=0) for some in stages], axis=0)
        sums = _as_if_whole(self.compute[:, common], self.peers)
        return {int(rank): float(us) for rank, us in zip(self.ranks, sums, strict=True) if not np.isnan(us)}


def lay_out_steps(
    summaries: dict[int, RankSummary], stages: Sequence[Sequence[int]], experts: Mapping[int, int]
) -> Steps:
    """Ranks of one stage do the same work, where they have the same `experts`: those are sent unequally much. Ranks may
    have recorded some steps that others have not. A step that nobody recorded a stretch of is left out. Raises
    TracekitError where there are too many of both."""
    numbers_of = {
        rank: each.steps if len(each.steps) == len(each.windows) else range(len(each.windows))
        for rank, each in summaries.items()
    }
    numbers = sorted({number for each in numbers_of.values() for number in each})
    at = {number: place for place, number in enumerate(numbers)}
    shape = (len(summaries), len(numbers))
    if shape[0] * shape[1] > MOST_CELLS:
        longest = max(numbers_of, key=lambda rank: len(numbers_of[rank]))
        raise TracekitError(
            f"the recordings of {shape[0]:,} ranks have {shape[1]:,} different steps, {len(numbers_of[longest]):,} of"
            f" them rank {longest}: digest fewer, as in --steps 3-4, or leave that rank out"
        )
    tables = [np.full((*shape, *more), np.nan) for more in ((), (), (len(IDLE_CAUSES),), ())]
    for row, (rank, each) in enumerate(summaries.items()):
        columns = [at[number] for number in numbers_of[rank]]
        for table, ns in zip(tables, (each.spans_ns, each.compute_ns, each.idle_ns, each.beside_ns), strict=True):
            table[row, columns] = ns / 1e3
    # Of a recording that was cut off some steps are empty.
    some = tables[0] > 0
    for table in tables:
        table[~some] = np.nan
    had: Bools = np.any(some, axis=0)
    kept = tuple(number for number, one in zip(numbers, had.tolist(), strict=True) if one)
    of_stage = {rank: place for place, some_ranks in enumerate(stages) for rank in some_ranks}
    staged = np.array([of_stage.get(rank, -1) for rank in summaries], dtype=np.int64)
    placed = np.array([experts.get(rank, -1) for rank in summaries], dtype=np.int64)
    peers: Ints = np.unique(np.stack((staged, placed)), axis=1, return_inverse=True)[1]
    ranks = np.array([*summaries], dtype=np.int64)
    return Steps(ranks, staged, peers, kept, *(table[:, had] for table in tables))


def _as_if_whole(values: Floats, peers: Ints) -> Floats:
    """Each rank's sum over all steps, NaN where it recorded none. Those that it lacks took so long, beside those that
    it has, as they took its peers."""
    sums: Floats = np.where(np.isnan(values).all(axis=1), np.nan, np.nansum(values, axis=1))
    usual = np.nan_to_num(usual_of_peers(values, peers))
    of_known = np.where(np.isnan(values), 0.0, usual).sum(axis=1)
    sums *= np.divide(usual.sum(axis=1), of_known, out=np.ones_like(of_known), where=of_known > 0)
    return sums


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


def list_step_rows(steps: Steps, stragglers: Sequence[Straggler]) -> tuple[StepRow, ...]:
    """Each straggler by itself, all other ranks in bins of neighbours."""
    chosen = [each for each in stragglers if each.kind != "link"][:MOST_STRAGGLERS]
    taken = {rank for each in chosen for rank in each.ranks}
    rows = [(each.name or f"rank {each.ranks[0]}", each.ranks) for each in chosen]
    others = [int(rank) for rank in steps.ranks if int(rank) not in taken]
    bins = np.array_split(np.array(others, dtype=np.int64), min(MOST_BINS, len(others)) or 1)
    rows += [
        (f"ranks {some[0]} to {some[-1]}" if len(some) > 1 else f"rank {some[0]}", some)
        for some in (tuple(each.tolist()) for each in bins if len(each))
    ]
    found, shares = [], steps.shares
    for name, ranks in rows:
        medians = known_median(shares[np.isin(steps.ranks, ranks)], axis=0).tolist()
        found.append(StepRow(name, ranks, tuple(None if math.isnan(each) else each for each in medians)))
    return tuple(found)
