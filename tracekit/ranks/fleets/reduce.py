"""From the summaries of a fleet's ranks to what they say together."""

from collections.abc import Sequence
from typing import cast

import polars as pl

from tracekit.ranks.digests import RankSummary
from tracekit.ranks.fleets.accounts import account_ranks
from tracekit.ranks.fleets.axes import find_axes
from tracekit.ranks.fleets.clocks import FleetClocks, align_hosts
from tracekit.ranks.fleets.collectives import list_worst, sum_kinds
from tracekit.ranks.fleets.findings import find_in_fleet
from tracekit.ranks.fleets.groups import group_ranks
from tracekit.ranks.fleets.losses import explain_straggler, late_rank_of, sum_by_late, sum_waits
from tracekit.ranks.fleets.parts import Parts, join_parts
from tracekit.ranks.fleets.step_rows import list_step_rows, spread_by_step
from tracekit.ranks.fleets.steps import lay_out_steps
from tracekit.ranks.fleets.tested import find_stragglers
from tracekit.ranks.fleets.waits import FleetWaits, measure_fleet
from tracekit.ranks.foreign import find_foreign
from tracekit.ranks.job_figures import Clock, RankNote, Ranks, StepsRead, Unmatched, UnmatchedCollectives
from tracekit.ranks.stages import Meeting, stages_of
from tracekit.ranks.statements import notes as statements
from tracekit.ranks.world import Job, count_steps, gather_job


def reduce_fleet(recordings: Sequence[RankSummary], left_out: Sequence[RankNote] = ()) -> Ranks:
    """What a thousand recordings of one job's ranks say together. Raises TracekitError where none can be used."""
    job = gather_job(recordings, left_out)
    parts, clocks, waits = _join(job)
    if foreign := _foreign(parts, clocks, waits):
        job = job.without(foreign)
        parts, clocks, waits = _join(job)
    summaries = job.digests
    stages = _find_stages(summaries)
    axes = find_axes(summaries, job.size or len(summaries))
    steps = lay_out_steps(summaries, stages, next((axis.places for axis in axes if axis.name == "expert"), {}))
    aligned = clocks.basis != "bound"
    tested = find_stragglers(summaries, steps, waits, parts.talk, aligned=aligned)
    uses = account_ranks(summaries, steps, waits)
    waited = sum_waits(waits)
    late_us = sum_by_late(waited)
    stragglers = tuple(explain_straggler(each, steps, late_us) for each in tested.found)
    collectives = sum_kinds(parts.talk, waits, clocks)
    return Ranks(
        world=job.world(clocks.hosts),
        clock=Clock(clocks.basis, None if clocks.uncertainty_ns is None else clocks.uncertainty_ns / 1e3),
        steps=StepsRead(next(iter(summaries.values())).window, max(map(count_steps, summaries.values()))),
        ranks=uses,
        collectives=collectives,
        late=tuple(late_rank_of(each, late_us, waited) for each in stragglers if each.kind != "link"),
        unmatched=_unmatched(waits),
        waits=waited if aligned else (),
        findings=find_in_fleet(stragglers, uses, steps.computed, collectives, stages),
        notes=_notes(job, waits, clocks),
        worst=list_worst(parts.talk, waits, clocks, summaries) if aligned else (),
        groups=group_ranks(summaries, uses, axes, steps),
        stragglers=stragglers,
        straggler_rule=tested.rule,
        by_step=spread_by_step(steps),
        step_rows=list_step_rows(steps, stragglers),
    )


def _join(job: Job[RankSummary]) -> tuple[Parts, FleetClocks, FleetWaits]:
    parts = join_parts(job.digests)
    clocks = align_hosts(parts.every, parts.barriers)
    return parts, clocks, measure_fleet(parts, clocks)


def _foreign(parts: Parts, clocks: FleetClocks, waits: FleetWaits) -> tuple[int, ...]:
    """Ranks whose collectives are not the others', where clocks tell."""
    if clocks.basis == "bound" or "not_at_once" not in waits.left["why"].unique():
        return ()
    rows = parts.barriers.join(waits.parts.select("part", "rank", "talk", "start", "end"), on="part")
    exchanges = pl.Series([each.exchange for each in parts.talk], dtype=pl.String)
    return find_foreign(rows.filter(exchanges.gather(rows["talk"]) == "all"), clocks.tolerance_ns)


def _find_stages(summaries: dict[int, RankSummary]) -> tuple[tuple[int, ...], ...]:
    return stages_of(
        {
            rank: [
                Meeting(one.exchange, one.targets, one.sources, one.ranks or each.groups.get(one.group or "", ()))
                for one in each.talk
            ]
            for rank, each in summaries.items()
        }
    )


def _unmatched(waits: FleetWaits) -> tuple[UnmatchedCollectives, ...]:
    lasting = ((pl.col("end") - pl.col("start")).sum() / 1e3).alias("us")
    rows = waits.left.join(waits.parts.select("part", "rank", "start", "end"), on="part")
    told = rows.group_by("rank", "why").agg(pl.len(), lasting).sort("rank", "why")
    return tuple(UnmatchedCollectives(rank, cast("Unmatched", why), *sums) for rank, why, *sums in told.iter_rows())


def _notes(job: Job[RankSummary], waits: FleetWaits, clocks: FleetClocks) -> tuple[RankNote, ...]:
    notes: list[RankNote] = []
    if not waits.parts.height:
        notes.append(statements.NoCollectives())
    elif clocks.basis == "bound":
        notes.append(statements.ClocksUnknown(hosts=clocks.hosts))
    if waits.left.height:
        rows = waits.left.join(waits.parts.select("part", "start", "end"), on="part")
        total_us = float((rows["end"] - rows["start"]).sum()) / 1e3
        reason = cast("Unmatched", rows["why"].mode().sort()[0])
        notes.append(
            statements.UnmatchedCollectives(count=rows.height, total_us=total_us, reason=reason, of=waits.parts.height)
        )
    # Who is missing comes before what is wrong with the others.
    return tuple(sorted((*job.notes, *notes), key=lambda each: not isinstance(each, statements.RanksMissing)))
