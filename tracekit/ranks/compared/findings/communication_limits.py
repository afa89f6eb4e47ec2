"""Does communication that nothing covers limit what compiling can gain? Faster kernels leave it as long as it is."""

from tracekit.model.comparison import Comparison, Finding
from tracekit.ranks.compared.nouns import COMPUTE, WAITING, job_of
from tracekit.ranks.compared.statements import CommunicationLimits

#: Kernels became faster by this share at least; exposed communication makes this one of B's call.
FASTER, LEAST_EXPOSED = 0.05, 0.1


def find_communication_limits(comparison: Comparison) -> Finding | None:
    """Found when the slowest rank's kernels take a twentieth less time in B, and exposed communication makes a tenth of
    its call. The saving is exposed transfer: what covering all of it saves."""
    job = job_of(comparison)
    if job is None or job.told is None or (fall := job.of_slowest.waterfall) is None:
        return None
    a, b = job.told
    gained_us = -sum(part.delta_us for part in fall.parts if part.label == COMPUTE)
    if gained_us < FASTER * a.compute_us or b.exposed_us < LEAST_EXPOSED * fall.b_us:
        return None
    statement = CommunicationLimits(
        rank=job.slowest,
        compute_us=b.compute_us,
        gained_us=gained_us,
        exposed_us=b.exposed_us,
        exposed_waiting_us=b.exposed_waiting_us,
        waiting_change_us=sum(part.delta_us for part in fall.parts if part.label == WAITING),
        a_us=fall.a_us,
        b_us=fall.b_us,
        speedup_at_most=fall.a_us / b.exposed_us,
    )
    return Finding(statement, b.exposed_transfer_us or None)
