"""What did compiling change on each rank of a job, and in its collectives?

A rank's waterfall goes from its own eager call to its own compiled one. Communication that nothing covers changes with
how much is transferred, with how much of that compute covers, and with how long the rank waits for others.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tracekit.comparison.waterfall import change_by_cause, closed_waterfall, common_basis
from tracekit.model.comparison import Side, comparable
from tracekit.model.run import RecordingKind
from tracekit.model.waterfall import Basis, Waterfall, WaterfallPart
from tracekit.ranks.compared.nouns import (
    COMPUTE,
    OVERLAP_PRICE,
    CollectiveChange,
    JobChange,
    RankCall,
    RankChange,
    WaitsFor,
    exposed_parts,
)
from tracekit.ranks.job_figures import CauseShare, CollectiveUse, Ranks

#: The one that distorts least first.
KINDS: tuple[RecordingKind, ...] = ("light", "rich")
#: Ranks are told apart by recordings of which at least this share of communication was joined.
MOSTLY_JOINED = 0.95
#: What one recording says of a wait's causes holds for another in which the wait is not more than twice as long.
LEAST_ALIKE = 0.5


class RankSides(Struct, frozen=True):
    """One rank's own recordings of both forms."""

    rank: int
    a: Side
    b: Side


#: What the ranks' recordings of one form say together, by kind; without those that nothing could be joined of.
JoinedRanks = Mapping[RecordingKind, Ranks]


def compare_ranks(ranks: Sequence[RankSides], a: JoinedRanks, b: JoinedRanks) -> JobChange:
    """Compute and exposed communication are of the light recordings, which distort least. These tell transfer from
    waiting too where they join; else transfer is the rich ones', and what it leaves is waiting. Names and sizes of
    collectives, and why a rank is late, only the rich ones tell."""
    # What tells waiting from transfer in both forms.
    kind = next((kind for kind in KINDS if all(kind in told and _joins(told[kind]) for told in (a, b))), None)
    changes = []
    for each in ranks:
        one, other = _own(each.a), _own(each.b)
        basis = common_basis(one, other)
        a_call, b_call = _call(one, basis, each.rank, a, kind), _call(other, basis, each.rank, b, kind)
        fall = _waterfall(one, other, a_call, b_call)
        changes.append(RankChange(each.rank, one.wall_us, other.wall_us, a_call, b_call, fall))
    detail_a, detail_b = (told.get("rich") or told.get("light") for told in (a, b))
    return JobChange(
        slowest=max(changes, key=_own_time).rank,
        ranks=tuple(changes),
        recording=kind,
        clock=b[kind].clock.basis if kind else None,
        collectives=_collectives(detail_a, detail_b) if detail_a and detail_b else (),
    )


def _joins(told: Ranks) -> bool:
    spent = sum(each.communication_us for each in told.ranks)
    lost = sum(each.total_us for each in told.unmatched)
    return told.clock.basis != "bound" and lost <= (1 - MOSTLY_JOINED) * spent


def _own(side: Side) -> Side:
    """With the rank's own calls for its form's, which are the slowest rank's."""
    if side.form is None or not side.form.own_wall_us:
        return side
    return replace(side, form=replace(side.form, wall_us=side.form.own_wall_us))


def _own_time(change: RankChange) -> tuple[float, float]:
    waiting = (change.b.exposed_waiting_us or 0.0) if change.b else 0.0
    wall = change.b_wall_us or 0.0
    return wall - waiting, wall


def _call(side: Side, basis: Basis, rank: int, joined: JoinedRanks, kind: RecordingKind | None) -> RankCall | None:
    if side.compute_us is None:
        return None
    call = RankCall(
        wall_us=side.wall_us,
        compute_us=side.compute_us,
        exposed_us=side.exposed_us,
        idle_us=side.idle_us(basis),
        recorded_us=side.span_us,
    )
    told = joined[kind] if kind else None
    use = next((each for each in told.ranks if each.rank == rank), None) if told else None
    if told is None or use is None or use.exposed_transfer_us is None or use.transfer_us is None:
        return call
    steps, late = _steps(told), _why_late(rank, told, joined.get("rich", told))
    transfer_us = min(use.exposed_transfer_us / steps, side.exposed_us)
    waits = sorted((each for each in told.waits if each.rank == rank), key=lambda each: -each.us)
    return replace(
        call,
        transfer_us=use.transfer_us / steps,
        exposed_transfer_us=transfer_us,
        exposed_waiting_us=side.exposed_us - transfer_us,
        # None where it may as well be none.
        overlap_price_us=use.seen_price_us / steps if use.seen_price_us else None,
        waits=tuple(WaitsFor(each.late, each.us / steps, *late.get(each.late, ((), None))) for each in waits),
    )


def _why_late(rank: int, told: Ranks, detail: Ranks) -> dict[int, tuple[tuple[CauseShare, ...], str | None]]:
    """Why the ranks were late that this one waited for, and where, as the recordings with causes tell it: of those for
    which it waited about as long there. Who is late may change from one recording to the next."""
    waited, waited_there = (
        {each.late: each.us / _steps(joined) for each in joined.waits if each.rank == rank} for joined in (told, detail)
    )
    return {
        late.rank: (late.causes, next(iter(late.where), None))
        for late in detail.late
        if waited_there.get(late.rank, 0.0) >= LEAST_ALIKE * waited.get(late.rank, math.inf)
    }


def _steps(told: Ranks) -> int:
    return told.steps.count if told.steps.kind != "whole" else 1


def _waterfall(a: Side, b: Side, a_call: RankCall | None, b_call: RankCall | None) -> Waterfall | None:
    """None where a rank has no figures of one GPU, or its forms were read over different windows."""
    if a_call is None or b_call is None or not comparable(a, b):
        return None
    basis = common_basis(a, b)
    a_us, b_us = (side.wall_us if basis == "unprofiled" else side.span_us for side in (a, b))
    if a_us is None or b_us is None:
        return None
    compute, priced = b_call.compute_us - a_call.compute_us, []
    if a_call.overlap_price_us is not None and b_call.overlap_price_us is not None:
        price = b_call.overlap_price_us - a_call.overlap_price_us
        compute, priced = compute - price, [WaterfallPart("gpu", OVERLAP_PRICE, price)]
    parts = (WaterfallPart("gpu", COMPUTE, compute), *priced)
    idle = [side.idle_by_cause() if basis == "trace" else side.calibrated_idle_by_cause() or {} for side in (a, b)]
    causes = [WaterfallPart("idle", cause, us) for cause, us in change_by_cause(*idle).items()]
    return closed_waterfall(basis, a_us, b_us, (*parts, *exposed_parts(a_call, b_call), *causes))


def _collectives(a: Ranks, b: Ranks) -> tuple[CollectiveChange, ...]:
    """A row for each kind, the one with most bytes, or transfer, first."""
    before, after = _per_rank(a), _per_rank(b)
    none = {"count": 0.0, "bytes": 0.0, "transfer_us": 0.0, "exposed_transfer_us": 0.0}
    rows = [
        CollectiveChange(name, **_of_side("a", before.get(name, none)), **_of_side("b", after.get(name, none)))
        for name in dict.fromkeys((*before, *after))
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.a_bytes or row.b_bytes or 0.0), -(row.a_transfer_us or 0.0))))


def _of_side(letter: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{letter}_{name}": figure for name, figure in figures.items()}


def _per_rank(told: Ranks) -> dict[str, dict[str, Any]]:
    """Figures of the collectives of each kind, per step and rank that takes part; None where one's is not known."""
    kinds: dict[str, list[CollectiveUse]] = defaultdict(list)
    for each in told.collectives:
        kinds[each.name].append(each)

    def mean(values: Iterable[float | None]) -> float | None:
        every = list(values)
        known = [each for each in every if each is not None]
        return math.fsum(known) / max(len(told.ranks), 1) / _steps(told) if len(known) == len(every) else None

    return {
        name: {
            "count": mean(each.count * len(each.ranks) for each in some),
            "bytes": mean(
                None if each.bytes is None else float(each.bytes) * each.count * len(each.ranks) for each in some
            ),
            "transfer_us": mean(each.transfer_us for each in some),
            "exposed_transfer_us": mean(each.exposed_transfer_us for each in some),
        }
        for name, some in kinds.items()
    }
