"""What a reader should know or do about ranks that communicate, eager and compiled."""

from collections.abc import Iterator

from tracekit.comparison.findings import Finder
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.model.note import Note
from tracekit.model.waterfall import Waterfall
from tracekit.ranks.compared.nouns import COMPUTE, OVERLAP, WAITING, CollectiveChange, JobChange, job_of
from tracekit.ranks.compared.statements import (
    CommunicationLimits,
    DdpBuckets,
    FewerGathers,
    LessOverlap,
    MovedCollective,
    MovedCollectives,
    PrefetchWeights,
    RankCollectives,
    ShardThenCompile,
    WrapThenCompile,
)

#: What gathers weights, what shows that they are sharded, and what reduces gradients.
GATHER, SCATTER, REDUCE = "all_gather", "reduce_scatter", "all_reduce"
#: Of so many gathers at least, B has at most this share; a call that gathers weights gathers those of each layer.
LEAST_GATHERS, FEWER, GATHERS_OF_LAYERS = 3, 0.7, 4
#: A change of the number of collectives, and of their bytes, that is one; and a loss of the share compute covers.
OTHER_COUNT, OTHER_BYTES, LOST_SHARE = 0.1, 0.02, 0.1
#: Of the slowest rank's call: lost overlap that is less is worth no warning, or no line.
WORTH_SAYING = 0.02
#: Kernels became faster by this share at least; exposed communication makes this one of B's call.
FASTER, LEAST_EXPOSED = 0.05, 0.1


def find_fewer_gathers(comparison: Comparison) -> Finding | None:
    """Are weights that FSDP gathers block by block gathered in fewer and larger pieces once compiled?

    A block that was compiled before it was sharded is called past `nn.Module.__call__`, so that the hooks of
    `fully_shard` do not run: its weights come with those of the whole model, before anything is computed. Found when A
    gathers and scatters, and B gathers at most 70 % as often. The saving is what more of all-gathers is exposed in B.
    """
    job = job_of(comparison)
    gathers = job.collective(GATHER) if job else None
    if job is None or gathers is None or job.collective(SCATTER) is None:
        return None
    if gathers.a_count < LEAST_GATHERS or gathers.b_count > FEWER * gathers.a_count:
        return None
    more_us = gathers.b_exposed_transfer_us - gathers.a_exposed_transfer_us
    statement = FewerGathers(
        side=comparison.b.label,
        a_gathers=gathers.a_count,
        b_gathers=gathers.b_count,
        a_each_bytes=gathers.a_each_bytes,
        b_each_bytes=gathers.b_each_bytes,
        a_exposed_us=gathers.a_exposed_transfer_us,
        b_exposed_us=gathers.b_exposed_transfer_us,
    )
    return Finding(statement, more_us if more_us > 0 else None, ShardThenCompile())


def find_ddp_buckets(comparison: Comparison) -> Finding | None:
    """Do the buckets in which DDP reduces gradients change once compiled, or does less of them overlap backward?

    Dynamo splits a graph where DDP's buckets end, so that backward reduces each as its gradients come; a graph that is
    not split reduces all of them after its end. Found of `--parallel ddp` when B has a tenth more or fewer
    all-reduces, or when the share of their transfer that compute covers falls by ten points. The saving is what the
    lost overlap makes of the slowest rank's call.
    """
    job, settings = job_of(comparison), comparison.b.settings
    reduces = job.collective(REDUCE) if job else None
    if job is None or reduces is None or settings is None or settings.parallel != "ddp" or not reduces.a_count:
        return None
    before, after = (call.overlapped_share for call in job.told) if job.told else (None, None)
    lost = before - after if before is not None and after is not None else 0.0
    if abs(reduces.b_count / reduces.a_count - 1) < OTHER_COUNT and lost < LOST_SHARE:
        return None
    fall = job.of_slowest.waterfall
    more_us = _change(fall, OVERLAP) if fall else 0.0
    statement = DdpBuckets(
        side=comparison.b.label,
        a_buckets=reduces.a_count,
        b_buckets=reduces.b_count,
        a_each_bytes=reduces.a_each_bytes,
        b_each_bytes=reduces.b_each_bytes,
        a_overlapped_share=before,
        b_overlapped_share=after,
        costs_time=fall is not None and more_us >= WORTH_SAYING * fall.b_us,
    )
    return Finding(statement, more_us if more_us > 0 else None, WrapThenCompile() if lost >= LOST_SHARE else None)


def find_less_overlap(comparison: Comparison) -> Finding | None:
    """Does compute cover less of the transfer once compiled? Faster compute covers less; so do collectives that wait.

    Found when lost overlap makes 2 % of the slowest rank's call, and DDP's buckets are not why. The saving is that
    time. Weights that are gathered can be gathered earlier.
    """
    job = job_of(comparison)
    if job is None or job.told is None or (fall := job.of_slowest.waterfall) is None:
        return None
    a, b = job.told
    lost_us = _change(fall, OVERLAP)
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
    advice = PrefetchWeights() if gathers is not None and gathers.b_count >= GATHERS_OF_LAYERS else None
    return Finding(statement, lost_us, advice)


def find_communication_limits(comparison: Comparison) -> Finding | None:
    """Does communication that nothing covers limit what compiling can gain? Faster kernels leave it as long as it is.

    Found when the slowest rank's kernels take a twentieth less time in B, and exposed communication makes a tenth of
    its call. The saving is exposed transfer: what covering all of it saves.
    """
    job = job_of(comparison)
    if job is None or job.told is None or (fall := job.of_slowest.waterfall) is None:
        return None
    a, b = job.told
    gained_us = -_change(fall, COMPUTE)
    if gained_us < FASTER * a.compute_us or b.exposed_us < LEAST_EXPOSED * fall.b_us:
        return None
    statement = CommunicationLimits(
        rank=job.slowest,
        compute_us=b.compute_us,
        gained_us=gained_us,
        exposed_us=b.exposed_us,
        exposed_waiting_us=b.exposed_waiting_us,
        waiting_change_us=_change(fall, WAITING),
        a_us=fall.a_us,
        b_us=fall.b_us,
        speedup_at_most=fall.a_us / b.exposed_us,
    )
    return Finding(statement, b.exposed_transfer_us or None)


def find_moved_collectives(comparison: Comparison) -> Finding | None:
    """Does the compiled form communicate otherwise: in fewer, more or other collectives, or other amounts?

    Found when a kind of collective is a tenth more or less often in B than in A, or carries 2 % more or fewer bytes,
    and no other finding tells of it.
    """
    job = job_of(comparison)
    others = {GATHER: find_fewer_gathers, REDUCE: find_ddp_buckets}
    told = {name for name, find in others.items() if find(comparison)}
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


def _change(fall: Waterfall, label: str) -> float:
    return sum(part.delta_us for part in fall.parts if part.label == label)


def _other_bytes(each: CollectiveChange) -> bool:
    if each.a_bytes is None or each.b_bytes is None:
        return False
    return abs(each.b_bytes - each.a_bytes) > OTHER_BYTES * each.a_bytes


def note_uneven_collectives(b: Side, job: JobChange) -> Iterator[Note]:
    """A note for each rank of B whose collectives are not those of the others, and were in A."""
    for each in job.uneven:
        yield RankCollectives(
            b.label,
            ranks=[each.rank],
            of_ranks=len(b.ranks),
            collective=each.name,
            count=each.count,
            usual_count=each.usual_count,
            in_place_of=each.in_place_of,
        )


#: Of equally grave ones that promise the same the upper comes first.
FINDERS: tuple[Finder, ...] = (
    find_fewer_gathers,
    find_ddp_buckets,
    find_less_overlap,
    find_communication_limits,
    find_moved_collectives,
)
