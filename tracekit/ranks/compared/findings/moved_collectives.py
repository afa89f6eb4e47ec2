"""Does the compiled form communicate otherwise: in fewer, more or other collectives, or other amounts?"""

from tracekit.model.comparison import Comparison, Finding
from tracekit.ranks.compared.findings.ddp_buckets import REDUCE, find_ddp_buckets
from tracekit.ranks.compared.findings.fewer_gathers import GATHER, find_fewer_gathers
from tracekit.ranks.compared.nouns import CollectiveChange, job_of
from tracekit.ranks.compared.statements import MovedCollective, MovedCollectives

#: Changes of count and of bytes that are none.
OTHER_COUNT, OTHER_BYTES = 0.1, 0.02


def find_moved_collectives(comparison: Comparison) -> Finding | None:
    """Found when a kind of collective is a tenth more or less often in B than in A, or carries 2 % more or fewer bytes,
    and no other finding tells of it."""
    job = job_of(comparison)
    told = {
        *([GATHER] if find_fewer_gathers(comparison) else []),
        *([REDUCE] if find_ddp_buckets(comparison) else []),
    }
    changed = [
        each
        for each in (job.collectives if job else ())
        if each.name not in told
        and (abs(each.b_count - each.a_count) > OTHER_COUNT * each.a_count or _other_bytes(each))
    ]
    if not changed:
        return None
    moved = [
        MovedCollective(each.name, each.a_count, each.b_count, each.a_bytes, each.b_bytes, not _other_bytes(each))
        for each in changed
    ]
    exposed_us = sum(each.b_exposed_transfer_us - each.a_exposed_transfer_us for each in changed)
    return Finding(MovedCollectives(comparison.b.label, moved, exposed_us))


def _other_bytes(each: CollectiveChange) -> bool:
    if each.a_bytes is None or each.b_bytes is None:
        return False
    return abs(each.b_bytes - each.a_bytes) > OTHER_BYTES * each.a_bytes
