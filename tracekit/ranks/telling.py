"""From joined recordings to what they say together: figures of all ranks, and why, of those that are read in full."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median
from typing import cast

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from tracekit.ranks import findings
from tracekit.ranks.digests import RankDigest, RankSummary
from tracekit.ranks.fleets.accounts import account_ranks, exposed_of
from tracekit.ranks.fleets.axes import Axes, find_axes, group_ranks
from tracekit.ranks.fleets.collectives import CollectiveTable
from tracekit.ranks.fleets.runs import Runs
from tracekit.ranks.fleets.steps import Steps, lay_out_steps, list_step_rows, spread_by_step
from tracekit.ranks.fleets.stragglers import LEAST_STEPS
from tracekit.ranks.fleets.tested import find_stragglers, sum_waits
from tracekit.ranks.job_figures import (
    OneCollective,
    RankNote,
    Ranks,
    RankUse,
    StepsRead,
    Straggler,
    StragglerRule,
    Unmatched,
    UnmatchedCollectives,
    WaitedFor,
)
from tracekit.ranks.joined import Joined
from tracekit.ranks.joining import match_ranks
from tracekit.ranks.late_ranks import LatePlaces, explain_lateness, longest_waits
from tracekit.ranks.lateness import find_lateness
from tracekit.ranks.overlap import OverlapPrice, price_overlap
from tracekit.ranks.stages import find_stages, peers_of
from tracekit.ranks.statements import notes as statements
from tracekit.ranks.stretches import draw_stretches
from tracekit.ranks.work import compare_work

#: So many of a rank's collectives are none of the others' where recordings are of different stretches of the job.
MOSTLY_OTHER = 0.5
OF_OTHERS = ("counts_differ", "ends_disagree", "not_at_once")
#: Of so many ranks all are read in full, and all explained. Of more, summaries are read first: then so many are, and of
#: these so many for being late, or slow: they, and those that waited for them.
MOST_HELD, MOST_EXPLAINED, MOST_LATE = 64, 16, 3


class Reduced(Struct, frozen=True):
    """What summaries tell of all ranks."""

    stages: tuple[tuple[int, ...], ...]
    axes: Axes
    steps: Steps
    rule: StragglerRule | None
    stragglers: tuple[Straggler, ...]
    uses: tuple[RankUse, ...]
    waited: tuple[WaitedFor, ...]


def join_ranks(recordings: Sequence[RankDigest | RankSummary]) -> Ranks:
    """What the recordings of one job's ranks say together. Raises TracekitError where no recording can be used."""
    return tell_ranks(match_ranks(recordings))


def reduce_ranks(joined: Joined) -> Reduced:
    """What needs no digest."""
    summaries, clocks, waits = joined.job.digests, joined.clocks, joined.waits
    stages = find_stages(summaries)
    axes = find_axes(summaries, joined.job.size or len(summaries))
    steps = lay_out_steps(summaries, stages, axes.get("expert", {}))
    # By the shortest kernel waiting is bounded; who came last it does not say.
    waited = sum_waits(waits) if clocks.known else ()
    rule, stragglers = find_stragglers(summaries, steps, waits, joined.parts.talk, waited, aligned=clocks.known)
    return Reduced(
        stages, axes, steps, rule, stragglers, account_ranks(summaries, steps, waits, joined.skews_us), waited
    )


def choose_explained(reduced: Reduced) -> tuple[int, ...]:
    """The ranks to be read in full: all, or those that were waited for most or are slow, who waited longest for them,
    who loses most to communication, and of each of these some that do the same work."""
    ranks = [use.rank for use in reduced.uses]
    if len(ranks) <= MOST_HELD:
        return tuple(ranks)
    for_whom, longest = defaultdict[int, float](float), longest_waits(reduced.waited)
    for each in reduced.waited:
        for_whom[each.late] += each.us
    slow = [rank for each in reduced.stragglers if each.kind != "link" for rank in each.ranks[:1]]
    late = sorted(for_whom, key=lambda rank: (-for_whom[rank], rank))[:MOST_LATE]
    worst = max(reduced.uses, key=lambda use: (use.exposed_transfer_us or 0.0) / (use.span_us or 1.0)).rank
    first = dict.fromkeys((*late, *slow[:MOST_LATE]))
    chosen = dict.fromkeys((*first, *(longest[rank].rank for rank in first if rank in longest), worst))
    peers = dict(zip(ranks, reduced.steps.peers.tolist(), strict=True))
    counts = Counter(peers[rank] for rank in chosen)
    others = {each: [rank for rank in ranks if peers[rank] == each and rank not in chosen] for each in counts}
    while len(chosen) < MOST_EXPLAINED and any(others.values()):
        # Of those that do the same work as the fewest that are chosen one that is far from the last.
        fewest = min((each for each, left in others.items() if left), key=lambda each: counts[each])
        left = others[fewest]
        chosen[left.pop(len(left) // 2)] = None
        counts[fewest] += 1
    return tuple(sorted(chosen))


def tell_ranks(joined: Joined, reduced: Reduced | None = None, *, drawn: bool = False) -> Ranks:
    """What they say together, with timelines around the worst collectives where these will be `drawn`."""
    reduced = reduced or reduce_ranks(joined)
    chosen = choose_explained(reduced)
    joined = replace(joined, digests={rank: each for rank, each in joined.digests.items() if rank in chosen})
    summaries, digests, steps = joined.job.digests, joined.digests, reduced.steps
    stages = tuple(some for each in reduced.stages if (some := tuple(rank for rank in each if rank in digests)))
    (uneven, slower), lateness, places = compare_work(digests, stages), find_lateness(joined), LatePlaces(digests)
    late = explain_lateness(lateness, reduced.waited, places)
    if len(digests) < len(summaries):
        # Of few ranks the usual one may be slow itself: by as much as the figures of all ranks say.
        by_all = {use.rank: use.slower for use in reduced.uses}
        usual = {rank: median(by_all[one] for one in part) for part in peers_of(digests, stages) for rank in part}
        slower = {rank: (1 + own) * (1 + usual[rank]) - 1 for rank, own in slower.items()}
    prices = price_overlap(digests)
    uses = tuple(
        _with_digests(joined, use, prices[use.rank], slower[use.rank]) if use.rank in digests else use
        for use in reduced.uses
    )
    table, unmatched = CollectiveTable(joined), _unmatched(joined)
    collectives, worst = table.by_kind(), table.singles(table.worst(), lateness, places)
    alike = _alike(joined, unmatched)
    found = tuple(findings.find(joined, uses, collectives, late, uneven, stages, alike=alike))
    staged = findings.find_uneven_stages(uses, steps.computed, reduced.stages) if alike else ()
    slow = findings.find_slow(reduced.stragglers, uses, found)
    marked = any(each.steps for each in summaries.values())
    # Steps are what a rank is tested by: of fewer nobody can say whether it is slow by chance.
    most_steps = max(each.step_count for each in summaries.values())
    untested = len(summaries) > 1 and most_steps < LEAST_STEPS
    not_tested = [statements.NotTested(steps=most_steps, least=LEAST_STEPS)] if untested else []
    return Ranks(
        world=joined.job.world(joined.clocks.hosts),
        clock=joined.clocks.told(),
        steps=StepsRead(next(iter(summaries.values())).window, most_steps),
        ranks=uses,
        collectives=collectives,
        late=late,
        unmatched=unmatched,
        waits=reduced.waited,
        uneven=uneven,
        findings=findings.in_order((*found, *staged, *slow), reduced.stragglers),
        notes=(*notes_of(joined), *not_tested),
        worst=worst,
        groups=group_ranks(summaries, uses, reduced.axes, steps),
        stragglers=reduced.stragglers,
        straggler_rule=reduced.rule,
        by_step=spread_by_step(steps) if marked else (),
        step_rows=list_step_rows(steps, reduced.stragglers) if marked else (),
        stretches=draw_stretches(joined, worst, reduced.waited, lateness) if drawn else (),
    )


def list_collectives(joined: Joined) -> tuple[OneCollective, ...]:
    """Every collective, in order of its start."""
    return CollectiveTable(joined).singles(range(joined.waits.collectives.height), find_lateness(joined))


def _with_digests(joined: Joined, use: RankUse, price: OverlapPrice | None, slower: float) -> RankUse:
    """With what only the rank's digest tells: exposed waiting to the nanosecond, the price of overlap, and how fast it
    ran what all ranks ran."""
    waiting = joined.waits.parts["waiting"].to_numpy()[joined.rows_of(use.rank)]
    return replace(
        use,
        **exposed_of(joined.digests[use.rank], waiting, told=use.waiting_us is not None),
        overlap_price_us=price.price_us if price else None,
        overlap_price_ci95=(price.low_us, price.high_us) if price else None,
        slower=slower,
    )


def _alike(joined: Joined, unmatched: Sequence[UnmatchedCollectives]) -> bool:
    """Recordings of which most is not the others' show who was late in them, not in the job."""
    other = Counter[int]()
    for each in unmatched:
        other[each.rank] += each.count * (each.reason in OF_OTHERS)
    summaries = joined.job.digests
    return all(count < MOSTLY_OTHER * max(len(summaries[rank].parts), 1) for rank, count in other.items())


def _unmatched(joined: Joined) -> tuple[UnmatchedCollectives, ...]:
    waits = joined.waits
    rows = waits.left.hstack(waits.parts.select("rank", ns=pl.col("end") - pl.col("start"))[waits.left["part"]])
    told = rows.sort("part").group_by("rank", "why", maintain_order=True).agg(pl.len(), pl.col("ns").sum())
    return tuple(
        UnmatchedCollectives(rank, cast("Unmatched", why), count, ns / 1e3) for rank, why, count, ns in told.iter_rows()
    )


def notes_of(joined: Joined) -> tuple[RankNote, ...]:
    """What a reader must know of the recordings before believing the figures."""
    clocks, skews, waits = joined.clocks, joined.skews_us, joined.waits
    notes: list[RankNote] = []
    if not waits.parts.height:
        notes.append(statements.NoCollectives())
    elif len(skews) > 1 and not clocks.known:
        notes.append(statements.ClocksUnknown(hosts=clocks.hosts))
    if any(skews.values()):
        rank = max(skews, key=lambda each: skews[each])
        notes.append(statements.StartSkew(rank=rank, most_us=skews[rank]))
    recorded = [sum(rank in skews for rank in ranks) for ranks in waits.groups]
    counts = Runs(waits.members["collective"].to_numpy()).counts
    expected = np.array(recorded, dtype=np.int64)[waits.collectives["group"].to_numpy()]
    lacking = int(((counts < expected) & ~waits.collectives["one_way"].to_numpy()).sum())
    if lacking:
        notes.append(statements.PartsMissing(count=lacking, of=waits.collectives.height))
    if (unmatched := _unmatched(joined)) and len(skews) > 1:
        count, total_us = sum(each.count for each in unmatched), sum(each.total_us for each in unmatched)
        reason = max(unmatched, key=lambda each: each.count).reason
        notes.append(
            statements.UnmatchedCollectives(count=count, total_us=total_us, reason=reason, of=waits.parts.height)
        )
    return (*joined.job.notes, *notes)
