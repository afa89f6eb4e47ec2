"""Does compute cover less of the transfer once compiled? Faster compute covers less; so do collectives that wait."""

from tracekit.model.comparison import Comparison, Finding
from tracekit.ranks.compared.findings.ddp_buckets import find_ddp_buckets
from tracekit.ranks.compared.findings.fewer_gathers import GATHER
from tracekit.ranks.compared.nouns import OVERLAP, job_of
from tracekit.ranks.compared.statements import LessOverlap, PrefetchWeights

#: Of the slowest rank's call: less is not worth a line.
WORTH_SAYING = 0.02
#: A call that gathers weights gathers those of each layer.
LEAST_GATHERS = 4


def find_less_overlap(comparison: Comparison) -> Finding | None:
    """Found when lost overlap makes 2 % of the slowest rank's call, and DDP's buckets are not why. The saving is that
    time. Weights that are gathered can be gathered earlier."""
    job = job_of(comparison)
    if job is None or job.told is None or (fall := job.of_slowest.waterfall) is None:
        return None
    a, b = job.told
    lost_us = sum(part.delta_us for part in fall.parts if part.label == OVERLAP)
    if lost_us < WORTH_SAYING * fall.b_us or find_ddp_buckets(comparison) is not None:
        return None
    statement = LessOverlap(
        side=comparison.b.label,
        rank=job.slowest,
        a_overlapped_share=a.overlapped_share,
        b_overlapped_share=b.overlapped_share,
        compute_us=b.compute_us - a.compute_us,
        call_us=fall.b_us,
        lost_us=lost_us,
    )
    gathers = job.collective(GATHER)
    advice = PrefetchWeights() if gathers is not None and gathers.b_count >= LEAST_GATHERS else None
    return Finding(statement, lost_us, advice)
