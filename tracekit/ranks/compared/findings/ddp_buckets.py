"""Do the buckets in which DDP reduces gradients change once compiled, or does less of them overlap backward?

Dynamo splits a graph where DDP's buckets end, so that backward reduces each as its gradients come; a graph that is not
split reduces all of them after its end.
"""

from tracekit.model.comparison import Comparison, Finding
from tracekit.ranks.compared.nouns import OVERLAP, job_of
from tracekit.ranks.compared.statements import DdpBuckets, WrapThenCompile

REDUCE = "all_reduce"
#: A change of the number of buckets, and a loss of the share that compute covers, that is one.
OTHER_COUNT, LOST_SHARE = 0.1, 0.1
#: Of the call: what lost overlap is worth a warning.
WORTH_WARNING = 0.02


def find_ddp_buckets(comparison: Comparison) -> Finding | None:
    """Found of `--parallel ddp` when B has a tenth more or fewer all-reduces, or when the share of their transfer that
    compute covers falls by ten points. The saving is what the lost overlap makes of the slowest rank's call."""
    job, settings = job_of(comparison), comparison.b.settings
    reduces = job.collective(REDUCE) if job else None
    if job is None or reduces is None or settings is None or settings.parallel != "ddp" or not reduces.a_count:
        return None
    before, after = (call.overlapped_share for call in job.told) if job.told else (None, None)
    lost = before - after if before is not None and after is not None else 0.0
    if abs(reduces.b_count / reduces.a_count - 1) < OTHER_COUNT and lost < LOST_SHARE:
        return None
    fall = job.of_slowest.waterfall
    more_us = sum(part.delta_us for part in fall.parts if part.label == OVERLAP) if fall else 0.0
    statement = DdpBuckets(
        side=comparison.b.label,
        a_buckets=reduces.a_count,
        b_buckets=reduces.b_count,
        a_each_bytes=reduces.a_each_bytes,
        b_each_bytes=reduces.b_each_bytes,
        a_overlapped_share=before,
        b_overlapped_share=after,
        costs_time=fall is not None and more_us >= WORTH_WARNING * fall.b_us,
    )
    advice = WrapThenCompile() if lost >= LOST_SHARE else None
    return Finding(statement, more_us if more_us > 0 else None, advice)
