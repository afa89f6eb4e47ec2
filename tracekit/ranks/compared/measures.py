"""What may the figures of a job's ranks really be that a gate limits?"""

from collections.abc import Callable

from msgspec.structs import replace

from tracekit.comparison.judging.estimates import NO_JOIN, Measured, recorded_estimate
from tracekit.model.comparison import BUSY_MOVES, Comparison
from tracekit.model.estimate import Doubt, Estimate, exactly
from tracekit.model.gate import Metric
from tracekit.ranks.compared.nouns import JobChange, RankCall, job_of
from tracekit.statements.reasons import RankWithMost


def _of_ranks(of: Callable[[RankCall], float | None]) -> Callable[[Comparison], Measured]:
    """What the rank with most of it has, by the recordings of all. These move who is late, and by how much nobody
    knows: as much of it as GPU time moves is in doubt."""

    def measure(comparison: Comparison) -> Measured:
        job = job_of(comparison)
        a, b = (_most(job, of, side) if job else None for side in ("a", "b"))
        if b is None:
            return Measured(a[0] if a else None, None, unknown=NO_JOIN, own_unknown=NO_JOIN)
        exact = replace(exactly(b[0]), basis="recordings", assumptions=(RankWithMost(rank=b[2]),))
        own = _above_0(exact.widened(Doubt("recordings", b[1])))
        change = _above_0(exact.widened(Doubt("recordings", a[1] + b[1]))) if a else None
        return recorded_estimate(comparison, Measured(a[0] if a else None, b[0], change, own, NO_JOIN, NO_JOIN))

    return measure


def _most(job: JobChange, of: Callable[[RankCall], float | None], side: str) -> tuple[float, float, int] | None:
    """The figure of the rank that has most of it, what is in doubt, and that rank; None where one has none."""
    calls: list[tuple[int, RankCall | None]] = [(each.rank, getattr(each, side)) for each in job.ranks]
    found = [
        (figure, BUSY_MOVES * (call.compute_us + call.exposed_us) + _longer_us(call), rank)
        for rank, call in calls
        if call is not None and (figure := of(call)) is not None
    ]
    return max(found) if len(found) == len(calls) else None


def _longer_us(call: RankCall) -> float:
    """By how much the recorded call is longer than the unprofiled one: all of it may be communication."""
    if call.recorded_us is None or call.wall_us is None:
        return 0.0
    return max(call.recorded_us - call.wall_us, 0.0)


def _above_0(estimate: Estimate) -> Estimate:
    return replace(estimate, low=max(estimate.low, 0.0))


MEASURES: dict[Metric, Callable[[Comparison], Measured]] = {
    "exposed": _of_ranks(lambda call: call.exposed_us),
    "waiting": _of_ranks(lambda call: call.exposed_waiting_us),
}
