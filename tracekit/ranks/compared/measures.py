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
        (new, doubt_us, rank), base = b, a[0] if a else None
        exact = replace(exactly(new), basis="recordings", assumptions=(RankWithMost(rank=rank),))

        def within(us: float) -> Estimate:
            estimate = exact.widened(Doubt("recordings", us))
            return replace(estimate, low=max(estimate.low, 0.0))

        change = within(a[1] + doubt_us) if a else None
        return recorded_estimate(comparison, Measured(base, new, change, within(doubt_us), NO_JOIN, NO_JOIN))

    return measure


def _most(job: JobChange, of: Callable[[RankCall], float | None], side: str) -> tuple[float, float, int] | None:
    """The figure of the rank that has most of it, what is in doubt, and that rank; None where one has none."""
    calls: list[tuple[int, RankCall | None]] = [(each.rank, getattr(each, side)) for each in job.ranks]
    found = []
    for rank, call in calls:
        if call is None or (figure := of(call)) is None:
            return None
        doubt_us = BUSY_MOVES * (call.compute_us + call.exposed_us)
        if call.recorded_us is not None and call.wall_us is not None:
            # What the recorded call is longer than the unprofiled one may all be communication.
            doubt_us += max(call.recorded_us - call.wall_us, 0.0)
        found.append((figure, doubt_us, rank))
    return max(found)


MEASURES: dict[Metric, Callable[[Comparison], Measured]] = {
    "exposed": _of_ranks(lambda call: call.exposed_us),
    "waiting": _of_ranks(lambda call: call.exposed_waiting_us),
}
