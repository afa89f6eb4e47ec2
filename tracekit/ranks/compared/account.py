"""What exposed communication consists of, in the account of a job's call."""

from collections.abc import Iterator

from tracekit.model.comparison import Comparison
from tracekit.ranks.compared.nouns import job_of
from tracekit.ranks.compared.words import transfer_words, waits_words
from tracekit.report.composition.overview_account import LEAST_SLOWER
from tracekit.report.document import AccountRow

TRANSFER, WAITING = "transfer", "waiting for late ranks"


def communication_rows(comparison: Comparison) -> Iterator[AccountRow]:
    """What exposed communication consists of, where other ranks' recordings tell."""
    job = job_of(comparison)
    if job is None or job.told is None:
        return
    a, b = job.told
    transfer, waiting = ((getattr(a, name), getattr(b, name)) for name in ("exposed_transfer_us", "exposed_waiting_us"))
    yield AccountRow(TRANSFER, transfer, transfer_words(job, a, b))
    longest = max((b, a), key=lambda call: call.exposed_waiting_us or 0.0)
    is_much = max(waiting) >= LEAST_SLOWER * max(each.compute_us + each.exposed_us for each in (a, b))
    yield AccountRow(WAITING, waiting, waits_words(longest) if is_much else "")
