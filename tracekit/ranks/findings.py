"""What should a reader know or do, by what the ranks say together?"""

from collections.abc import Iterator

from tracekit.model.ranks import CollectiveUse, LateRank, RankFinding, RankUse, UnevenKernel

#: Of a waiting rank's window: less is no straggler's doing.
LEAST_WAITED = 0.01
#: A straggler is the last to arrive in this share of the collectives that anybody waited in.
MOSTLY_LAST = 0.6
#: Kernels that all ranks run alike and one rank more slowly than the others by this: GPUs of one kind differ less.
LEAST_SLOWER = 0.03
#: Of lateness: what is made by a cause that recording does not make.
LEAST_SURE = 0.5
#: Of the window: communication that nothing covers.
LEAST_EXPOSED = 0.05
LEAST_UNEVEN = 0.01
#: A collective that is over sooner than this is all latency; so many of them are worth one larger.
SMALL_BYTES, MANY = 64 * 1024, 50
#: Causes that the profiler itself makes longer, call by call: a host that it slows more than others is late.
OF_RECORDING = ("op_dispatch", "launch_call", "guards", "profiler", "unattributed", "device", "communication")


def find(
    ranks: tuple[RankUse, ...],
    collectives: tuple[CollectiveUse, ...],
    late: tuple[LateRank, ...],
    uneven: tuple[UnevenKernel, ...],
) -> tuple[RankFinding, ...]:
    """The gravest first."""
    found = [
        *_late_ranks(ranks, late, uneven),
        *_uneven_work(ranks, uneven),
        *_communication(ranks, collectives),
    ]
    order = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(found, key=lambda each: (order[each.severity], -(each.saving_us or 0.0))))


def _late_ranks(
    ranks: tuple[RankUse, ...], late: tuple[LateRank, ...], uneven: tuple[UnevenKernel, ...]
) -> Iterator[RankFinding]:
    """Ranks that others waited for, where the recording itself cannot be the reason."""
    uses = {each.rank: each for each in ranks}
    arrivals = sum(each.last_arrivals for each in ranks)
    span_us = max(each.span_us for each in ranks)
    for each in late:
        use = uses[each.rank]
        if each.most_waited_us < LEAST_WAITED * span_us or use.last_arrivals < MOSTLY_LAST * arrivals:
            continue
        causes = {share.cause: share.us for share in each.causes}
        more_work = any(one.rank == each.rank and one.more_us > 0 for one in uneven) or use.slower >= LEAST_SLOWER
        sure_us = causes.get("compute", 0.0) if more_work else 0.0
        host_us = sum(us for cause, us in causes.items() if cause not in (*OF_RECORDING, "compute"))
        # Python that is slow throughout is as likely the profiler's doing.
        sure_us += host_us if each.one_gap_share >= LEAST_SURE else host_us - causes.get("python", 0.0)
        waiter = uses[each.waiter] if each.waiter is not None else use
        # What waiting cost the one that waited longest: idle SMs, and the slower kernels beside it.
        held_up = (waiter.overlap_price_us or 0.0) * (waiter.waiting_us or 0.0) / max(waiter.communication_us, 1e-9)
        cost_us = (waiter.exposed_waiting_us or 0.0) + max(held_up, 0.0)
        facts = {
            "waiter": waiter.rank,
            "most_waited_us": each.most_waited_us,
            "exposed_us": waiter.exposed_waiting_us,
            "price_us": waiter.overlap_price_us,
            "cost_us": cost_us,
            "share": cost_us / waiter.span_us,
            "last": use.last_arrivals,
            "of": arrivals,
            "cause": each.causes[0].cause,
            "cause_us": each.causes[0].us,
            "cause_share": each.causes[0].us / each.waited_for_us,
            "where": each.where[0] if each.where else None,
        }
        of_host = facts["cause"] not in ("compute", "communication", "device")
        if sure_us >= LEAST_SURE * each.waited_for_us:
            yield RankFinding("late_rank", "warning", each.rank, facts, cost_us)
        elif of_host:
            yield RankFinding("slow_host", "info", each.rank, facts)


def _uneven_work(ranks: tuple[RankUse, ...], uneven: tuple[UnevenKernel, ...]) -> Iterator[RankFinding]:
    """Ranks with more to do than the others, or a slower GPU."""
    for rank in ranks:
        own = [each for each in uneven if each.rank == rank.rank and each.more_us > 0]
        more_us = sum(each.more_us for each in own)
        if own and more_us >= LEAST_UNEVEN * rank.span_us:
            facts = {
                "more_us": more_us,
                "share": more_us / rank.span_us,
                "kernel": own[0].name,
                "count": own[0].count,
                "usual_count": own[0].usual_count,
                "kernels": len(own),
            }
            yield RankFinding("uneven_work", "warning", rank.rank, facts, more_us)
        # What runs beside a collective that waits is slow for that; its price says so.
        if rank.slower >= LEAST_SLOWER and (rank.overlap_price_us or 0.0) < rank.slower * rank.compute_us / 2:
            facts = {"slower": rank.slower, "compute_us": rank.compute_us}
            yield RankFinding("slow_gpu", "warning", rank.rank, facts, rank.slower * rank.compute_us)


def _communication(ranks: tuple[RankUse, ...], collectives: tuple[CollectiveUse, ...]) -> Iterator[RankFinding]:
    """What the collectives themselves cost."""
    told = [each for each in ranks if each.exposed_transfer_us is not None]
    worst = max(told, key=lambda each: (each.exposed_transfer_us or 0.0) / each.span_us, default=None)
    exposed_us = (worst.exposed_transfer_us or 0.0) if worst else 0.0
    if worst and collectives and exposed_us >= LEAST_EXPOSED * worst.span_us:
        largest = max(collectives, key=lambda each: each.transfer_us or 0.0)
        facts = {"exposed_transfer_us": exposed_us, "share": exposed_us / worst.span_us, "collective": largest.name}
        yield RankFinding("exposed_communication", "warning", worst.rank, facts, exposed_us)
    count = sum(each.count for each in collectives if each.bytes is not None and each.bytes <= SMALL_BYTES)
    if count >= MANY and count > sum(each.count for each in collectives) / 2:
        yield RankFinding("small_collectives", "info", None, {"count": count, "bytes": SMALL_BYTES})
