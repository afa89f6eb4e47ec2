"""The walk from the summaries of a fleet's ranks to what they say together."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from tracekit.interval import Bools, Floats, Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.digests import RankSummary
from tracekit.model.note import Note
from tracekit.model.ranks import (
    CauseShare,
    Clock,
    LateRank,
    RankGroup,
    Ranks,
    RankUse,
    StepRow,
    StepSpread,
    StepsRead,
    Straggler,
    Unmatched,
    UnmatchedCollectives,
    WaitedFor,
    World,
)
from tracekit.ranks.fleets.axes import Axis, find_axes
from tracekit.ranks.fleets.clocks import FleetClocks, align_hosts
from tracekit.ranks.fleets.collectives import list_worst, sum_kinds
from tracekit.ranks.fleets.findings import find_in_fleet
from tracekit.ranks.fleets.parts import join_parts
from tracekit.ranks.fleets.stragglers import known_median, shares_of_steps
from tracekit.ranks.fleets.tested import find_stragglers
from tracekit.ranks.fleets.waits import FleetWaits, measure_fleet
from tracekit.ranks.stages import Meeting, stages_of
from tracekit.ranks.world import Job, count_steps, gather_job

#: Rows of the picture of steps: stragglers, and bins of all others.
MOST_STRAGGLERS, MOST_BINS = 24, 32


class Steps(Struct, frozen=True):
    """By rank (rows, as in `ranks`) and step (columns, as in `numbers`), in microseconds; NaN where not recorded."""

    ranks: Ints
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


def reduce_fleet(recordings: Sequence[RankSummary]) -> Ranks:
    """What a thousand recordings of one job's ranks say together. Raises TracekitError where none can be used."""
    job = gather_job(recordings)
    summaries = job.digests
    parts = join_parts(summaries)
    clocks = align_hosts(parts.every, parts.barriers)
    waits = measure_fleet(parts, clocks)
    steps = lay_out_steps(summaries)
    axes = find_axes(summaries, job.size or len(summaries))
    stages = _find_stages(summaries)
    peers = _peers(steps.ranks, stages)
    tested = find_stragglers(
        summaries,
        steps.own,
        _held(steps, peers),
        peers,
        steps.ranks,
        waits,
        parts.talk,
        aligned=clocks.basis != "bound",
    )
    uses = _uses(summaries, steps, peers, waits)
    waited = _who_for_whom(waits)
    collectives = sum_kinds(parts.talk, waits, clocks)
    late_us = {int(rank): us for rank, us in _by_late(waits)}
    stragglers = tuple(_told(each, steps, peers, late_us) for each in tested.found)
    shares = shares_of_steps(steps.own, peers)
    return Ranks(
        world=World(job.size, tuple(summaries), job.missing, clocks.hosts),
        clock=Clock(clocks.basis, None if clocks.uncertainty_ns is None else clocks.uncertainty_ns / 1e3),
        steps=StepsRead(next(iter(summaries.values())).window, max(map(count_steps, summaries.values()))),
        ranks=uses,
        collectives=collectives,
        late=tuple(_late(each, late_us, waited) for each in stragglers if each.kind != "link"),
        unmatched=_unmatched(waits),
        waits=waited if clocks.basis != "bound" else (),
        findings=find_in_fleet(stragglers, uses, _computed(steps, peers), collectives, stages),
        notes=_notes(job, waits, clocks),
        worst=list_worst(parts.talk, waits, clocks, summaries) if clocks.basis != "bound" else (),
        groups=_groups(summaries, uses, axes, steps, peers),
        stragglers=stragglers,
        straggler_rule=tested.rule,
        by_step=_by_step(steps),
        step_rows=_step_rows(steps, shares, stragglers),
    )


def lay_out_steps(summaries: dict[int, RankSummary]) -> Steps:
    """Ranks may have recorded some steps that others have not. A step that nobody recorded a stretch of is left out."""
    numbers = sorted({number for each in summaries.values() for number in _numbers(each)})
    at = {number: place for place, number in enumerate(numbers)}
    shape = (len(summaries), len(numbers))
    span, compute, beside = (np.full(shape, np.nan) for _ in range(3))
    idle = np.full((*shape, len(IDLE_CAUSES)), np.nan)
    for row, each in enumerate(summaries.values()):
        columns = [at[number] for number in _numbers(each)]
        span[row, columns] = each.spans_ns / 1e3
        compute[row, columns] = each.compute_ns / 1e3
        idle[row, columns] = each.idle_ns / 1e3
        beside[row, columns] = each.beside_ns / 1e3
    # Of a recording that was cut off some steps are empty.
    some = span > 0
    for table in (span, compute, beside, idle):
        table[~some] = np.nan
    had: Bools = np.any(some, axis=0)
    kept = tuple(number for number, one in zip(numbers, had.tolist(), strict=True) if one)
    ranks = np.array([*summaries], dtype=np.int64)
    return Steps(ranks, kept, span[:, had], compute[:, had], idle[:, had], beside[:, had])


def _numbers(summary: RankSummary) -> Sequence[int]:
    return summary.steps if len(summary.steps) == len(summary.windows) else range(len(summary.windows))


def _as_if_whole(values: Floats, peers: Ints) -> Floats:
    """Each rank's sum over all steps, NaN where it recorded none. Those that it lacks took so long, beside those that
    it has, as they took its peers."""
    sums: Floats = np.where(np.isnan(values).all(axis=1), np.nan, np.nansum(values, axis=1))
    for each in np.unique(peers):
        some = peers == each
        usual = np.nan_to_num(known_median(values[some], axis=0))
        of_known = np.where(np.isnan(values[some]), 0.0, usual).sum(axis=1)
        sums[some] *= np.divide(usual.sum(), of_known, out=np.ones_like(of_known), where=of_known > 0)
    return sums


def _computed(steps: Steps, peers: Ints) -> dict[int, float]:
    """Each rank's compute in those steps that every stage has recorded."""
    stages = [peers == each for each in np.unique(peers)]
    common = np.all([~np.isnan(steps.compute[some]).all(axis=0) for some in stages], axis=0)
    sums = _as_if_whole(steps.compute[:, common], peers)
    return {int(rank): float(us) for rank, us in zip(steps.ranks, sums, strict=True) if not np.isnan(us)}


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


def _peers(ranks: Ints, stages: Sequence[Sequence[int]]) -> Ints:
    """Ranks that do the same work: those of one pipeline stage."""
    of_stage = {rank: at for at, some in enumerate(stages) for rank in some}
    return np.array([of_stage.get(int(rank), -1) for rank in ranks], dtype=np.int64)


def _held(steps: Steps, peers: Ints) -> Floats:
    """How much more compute each rank has beside communication than its peers: kernels are slower there, while ranks
    wait for a late one, which is none of their fault."""
    found = np.zeros_like(steps.beside)
    for each in np.unique(peers):
        some = peers == each
        found[some] = np.maximum(steps.beside[some] - known_median(steps.beside[some], axis=0), 0.0)
    return found


def _uses(summaries: dict[int, RankSummary], steps: Steps, peers: Ints, waits: FleetWaits) -> tuple[RankUse, ...]:
    lasting = pl.col("end") - pl.col("start")
    known = pl.col("waiting") >= 0
    # Of what a collective takes the part that no compute covers; waiting is exposed as much as all of it.
    bare = (1 - pl.col("covered") / lasting.clip(1)).clip(0, 1)
    table = waits.parts.group_by("rank").agg(
        lasting.sum().alias("communication"),
        lasting.filter(known).sum().alias("joined"),
        pl.col("waiting").filter(known).sum(),
        (lasting * bare).sum().alias("bare"),
        (pl.col("waiting").filter(known) * bare.filter(known)).sum().alias("bare_waiting"),
        (lasting.filter(known) * bare.filter(known)).sum().alias("bare_joined"),
        pl.len(),
    )
    figures = {row["rank"]: row for row in table.iter_rows(named=True)}
    last = waits.members.filter(pl.col("last") > pl.col("first")).unique("collective")["last_rank"]
    arrivals = {rank: count for rank, count in last.value_counts().iter_rows() if rank >= 0}
    found = []
    own_compute, idle = np.nansum(steps.compute, axis=1), np.nansum(steps.idle, axis=1)
    spans = np.nansum(steps.span, axis=1)
    slower = shares_of_steps(_as_if_whole(steps.compute, peers)[:, np.newaxis], peers)[:, 0]
    for at, (rank, summary) in enumerate(summaries.items()):
        each = figures.get(rank) or dict.fromkeys(table.columns, 0)
        span_us, compute_us, idle_us = float(spans[at]), float(own_compute[at]), float(idle[at].sum())
        exposed_us = max(span_us - compute_us - idle_us, 0.0)
        whole = each["bare"] or 1
        told = bool(each["joined"]) or not each["communication"]
        waiting_us = exposed_us * each["bare_waiting"] / whole
        transfer_us = exposed_us * (each["bare_joined"] - each["bare_waiting"]) / whole
        found.append(
            RankUse(
                rank=rank,
                path=summary.path,
                span_us=span_us,
                compute_us=compute_us,
                communication_us=each["communication"] / 1e3,
                waiting_us=each["waiting"] / 1e3 if told else None,
                transfer_us=(each["joined"] - each["waiting"]) / 1e3 if told else None,
                exposed_us=exposed_us,
                exposed_waiting_us=waiting_us if told else None,
                exposed_transfer_us=transfer_us if told else None,
                idle_us=idle_us,
                idle_causes=tuple(
                    CauseShare(cause, float(us)) for cause, us in zip(IDLE_CAUSES, idle[at], strict=True) if us
                ),
                overlap_price_us=None,
                overlap_price_ci95=None,
                slower=0.0 if np.isnan(slower[at]) else float(slower[at]),
                collectives=each["len"],
                last_arrivals=arrivals.get(rank, 0),
            )
        )
    return tuple(found)


def _by_late(waits: FleetWaits) -> Sequence[tuple[int, float]]:
    told = waits.parts.filter(pl.col("late") >= 0).group_by("late").agg(pl.col("waiting").sum() / 1e3)
    return told.rows()


def _who_for_whom(waits: FleetWaits) -> tuple[WaitedFor, ...]:
    told = waits.parts.filter((pl.col("late") >= 0) & (pl.col("waiting") > 0))
    sums = told.group_by("rank", "late").agg(pl.col("waiting").sum() / 1e3).sort("rank", "late")
    return tuple(WaitedFor(*row) for row in sums.iter_rows())


def _told(each: Straggler, steps: Steps, peers: Ints, late_us: dict[int, float]) -> Straggler:
    """With what it lost, and why: what it has more of than its peers."""
    if each.kind == "link":
        return each
    rows = np.flatnonzero(np.isin(steps.ranks, each.ranks))
    causes = dict.fromkeys(("compute", *IDLE_CAUSES), 0.0)
    lost = []
    for row in rows:
        alike = peers == peers[row]
        more = steps.compute[row] - known_median(steps.compute[alike], axis=0)
        causes["compute"] += float(np.nansum(more))
        idle = np.nansum(steps.idle[row] - known_median(steps.idle[alike], axis=0), axis=0)
        for cause, us in zip(IDLE_CAUSES, idle, strict=True):
            causes[cause] += float(us)
        lost.append(float(np.nansum(more) + idle.sum()))
    lost_us = float(np.median(lost))
    made = sorted(((cause, us) for cause, us in causes.items() if us > 0), key=lambda one: -one[1])
    whole = sum(us for _, us in made) or 1.0
    shares = tuple(CauseShare(cause, lost_us * us / whole) for cause, us in made)
    waited = sum(late_us.get(rank, 0.0) for rank in each.ranks)
    return replace(each, lost_us=lost_us, causes=shares, waited_us=waited)


def _late(each: Straggler, late_us: dict[int, float], waited: Sequence[WaitedFor]) -> LateRank:
    rank = max(each.ranks, key=lambda one: late_us.get(one, 0.0))
    us = late_us.get(rank, 0.0)
    whole = sum(share.us for share in each.causes) or 1.0
    most = max((one for one in waited if one.late == rank), key=lambda one: one.us, default=None)
    return LateRank(
        rank,
        us,
        tuple(CauseShare(share.cause, us * share.us / whole) for share in each.causes),
        (),
        most_waited_us=most.us if most else 0.0,
        waiter=most.rank if most else None,
        behind_us=each.lost_us,
        times_behind=each.steps_slower,
    )


def _unmatched(waits: FleetWaits) -> tuple[UnmatchedCollectives, ...]:
    lasting = ((pl.col("end") - pl.col("start")).sum() / 1e3).alias("us")
    rows = waits.left.join(waits.parts.select("part", "rank", "start", "end"), on="part")
    told = rows.group_by("rank", "why").agg(pl.len(), lasting).sort("rank", "why")
    return tuple(UnmatchedCollectives(rank, _why(why), count, us) for rank, why, count, us in told.iter_rows())


def _why(text: str) -> Unmatched:
    return text  # type: ignore[return-value]


def _notes(job: Job[RankSummary], waits: FleetWaits, clocks: FleetClocks) -> tuple[Note, ...]:
    notes: list[Note] = []
    if not waits.parts.height:
        notes.append(Note("no_collectives", "warning"))
    elif clocks.basis == "bound":
        notes.append(Note("clocks_unknown", "warning", None, {"hosts": clocks.hosts}))
    if waits.left.height:
        rows = waits.left.join(waits.parts.select("part", "start", "end"), on="part")
        total_us = float((rows["end"] - rows["start"]).sum()) / 1e3
        reason = str(rows["why"].mode()[0])
        facts = {"count": rows.height, "total_us": total_us, "reason": reason, "of": waits.parts.height}
        notes.append(Note("unmatched_collectives", "warning", None, facts))
    # Who is missing comes before what is wrong with the others.
    return tuple(sorted((*job.notes, *notes), key=lambda each: each.code != "ranks_missing"))


def _groups(
    summaries: dict[int, RankSummary], uses: Sequence[RankUse], axes: Sequence[Axis], steps: Steps, peers: Ints
) -> tuple[RankGroup, ...]:
    """Ranks by host, and by their place on each axis. Of a pipeline the places are compared with each other; else
    ranks with those of their stage."""
    hosts = {rank: each.host_name for rank, each in summaries.items() if each.host_name is not None}
    numbers = {rank: at for at, rank in enumerate(summaries)}
    of_stage, of_all = (
        known_median(shares_of_steps(steps.own, alike), axis=1) for alike in (peers, np.zeros_like(peers))
    )
    found = []
    every: list[tuple[str, Mapping[int, str | int]]] = [("host", hosts)]
    every += [(axis.name, axis.places) for axis in axes]
    for name, places in every:
        members: dict[str | int, list[int]] = {}
        for rank in summaries:
            if rank in places:
                members.setdefault(places[rank], []).append(numbers[rank])
        if len(members) < 2:
            continue
        excesses = of_all if name == "pipeline" else of_stage
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


def _by_step(steps: Steps) -> tuple[StepSpread, ...]:
    found = []
    bare = steps.span - steps.own
    for at, number in enumerate(steps.numbers):
        own = steps.own[:, at]
        most = int(np.nanargmax(own))
        share = float(known_median(bare[:, at] / steps.span[:, at]))
        found.append(StepSpread(number, float(known_median(own)), float(own[most]), int(steps.ranks[most]), share))
    return tuple(found)


def _step_rows(steps: Steps, shares: Floats, stragglers: Sequence[Straggler]) -> tuple[StepRow, ...]:
    """Each straggler by itself, all other ranks in bins of neighbours."""
    chosen = [each for each in stragglers if each.kind != "link"][:MOST_STRAGGLERS]
    taken = {rank for each in chosen for rank in each.ranks}
    rows = [(each.name or f"rank {each.ranks[0]}", each.ranks) for each in chosen]
    others = [int(rank) for rank in steps.ranks if int(rank) not in taken]
    bins = np.array_split(np.array(others, dtype=np.int64), min(MOST_BINS, len(others)) or 1)
    rows += [(f"ranks {some[0]} to {some[-1]}", tuple(map(int, some))) for some in bins if len(some)]
    found = []
    for name, ranks in rows:
        own = shares[np.isin(steps.ranks, ranks)]
        known = (column[~np.isnan(column)] for column in own.T)
        values = tuple(float(np.median(each)) if len(each) else None for each in known)
        found.append(StepRow(name, ranks, values))
    return tuple(found)
