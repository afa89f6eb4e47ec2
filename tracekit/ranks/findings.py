"""What should a reader know or do, by what the ranks say together?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median, median_low

import polars as pl

from tracekit.model.analysis import OF_THE_GPU
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.exposure import find_exposed, find_small
from tracekit.ranks.host_pauses import find_pauses
from tracekit.ranks.job_figures import CollectiveUse, LateRank, RankFinding, RankUse, Straggler, UnevenKernel
from tracekit.ranks.joined import Joined
from tracekit.ranks.links import find_slow_links
from tracekit.ranks.lone_syncs import find_lone_syncs
from tracekit.ranks.stages import Ranks, peers_of
from tracekit.ranks.statements import findings as statements
from tracekit.ranks.work import count_launches, find_unsteady

#: Of a waiting rank's window: less waiting is no straggler's doing.
LEAST_WAITED = 0.01
#: A straggler is the last to arrive in this share of the collectives that anybody waited in.
MOSTLY_LAST = 0.6
#: Kernels that all ranks run alike and one rank more slowly than the others by this: GPUs of one kind differ less.
LEAST_SLOWER = 0.03
#: Of lateness: what is made by a cause that recording does not make.
LEAST_SURE = 0.5
#: Of the window: kernels, and idle time while code is compiled, that other ranks do not have.
LEAST_UNEVEN = 0.01
#: Of the window: compute of one pipeline stage beyond the mean stage's.
LEAST_UNEVEN_STAGE = 0.03
LEAST_COMPILED, LEAST_COMPILED_US = 0.01, 1000.0
#: Kernels that a host launches beyond what others do, as a share of that.
LEAST_MORE_LAUNCHES = 0.05
#: Of an all-to-all a rank gives or takes so many times the mean.
LEAST_UNEVEN_SPLIT = 1.25
#: What findings repeat of a straggler.
OF_STRAGGLER = ("name", "ranks", "excess", "ci95", "chance", "lost_us", "steps", "steps_slower")
#: Causes that the profiler itself makes longer, call by call: a host that it slows more than others is late.
OF_RECORDING = (
    *("op_dispatch", "launch_call", "compiled_wrapper", "guards", "profiler", "unattributed"),
    *("launch_latency", "device", "communication"),
)


def find(
    joined: Joined,
    ranks: tuple[RankUse, ...],
    collectives: tuple[CollectiveUse, ...],
    late: tuple[LateRank, ...],
    uneven: tuple[UnevenKernel, ...],
    stages: tuple[Ranks, ...],
    *,
    alike: bool,
) -> Iterator[RankFinding]:
    """Ranks are only held against each other where their recordings are of `alike` stretches. `stages` are of those
    that are read in full."""
    digests = joined.digests
    if alike and digests:
        peers = peers_of(digests, stages)
        counts = {rank: each.step_count for rank, each in joined.job.digests.items()}
        slow = tuple(_late_ranks(ranks, late, uneven, counts))
        held = tuple(each for each in ranks if each.rank in digests)
        slower = any(each.slower >= LEAST_SLOWER for each in held)
        work = tuple(_uneven_work(held, uneven, find_unsteady(digests, peers) if slower else frozenset()))
        # More work that takes the GPU no time is the host's.
        working = {each.rank for each in work}
        launching = [each for each in slow if isinstance(each, statements.SlowHost) and each.rank not in working]
        yield from slow
        yield from _held_up(ranks, late, slow, digests, peers)
        yield from find_lone_syncs(digests, peers)
        yield from _more_launches(launching, digests, peers)
        yield from _recompiled(ranks, digests)
        yield from work
    yield from find_exposed(ranks, collectives, digests)
    yield from find_slow_links(collectives, joined.job.digests)
    yield from find_small(collectives)
    yield from _uneven_split(collectives)


def in_order(found: Iterable[RankFinding], stragglers: Sequence[Straggler]) -> tuple[RankFinding, ...]:
    """The gravest first. A slow group that was tested, and is a straggler, is told as that."""
    tested = {each.ranks for each in stragglers if each.kind == "link"}
    found = [each for each in found if not (isinstance(each, statements.SlowGroup) and each.ranks in tested)]
    order = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(found, key=lambda each: (order[each.severity], -(each.saving_us or 0.0))))


def _late_ranks(
    ranks: tuple[RankUse, ...],
    late: tuple[LateRank, ...],
    uneven: tuple[UnevenKernel, ...],
    counts: Mapping[int, int],
) -> Iterator[statements.LateRank | statements.SlowHost]:
    """Ranks that others waited for; late ones where the recording itself cannot be the reason."""
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
        cost_us = waiter.waiting_cost_us
        sure, first = sure_us >= LEAST_SURE * each.waited_for_us, each.causes[0]
        if not sure and first.cause in ("compute", "communication", *OF_THE_GPU):
            continue
        kind = statements.LateRank if sure else statements.SlowHost
        yield kind(
            each.rank,
            cost_us if sure else None,
            waiter=waiter.rank,
            most_waited_us=each.most_waited_us,
            exposed_us=waiter.exposed_waiting_us or 0.0,
            price_us=waiter.overlap_price_us,
            price_of_waiting_us=waiter.price_of_waiting_us,
            cost_us=cost_us,
            share=cost_us / waiter.span_us,
            steps=counts[waiter.rank],
            last=use.last_arrivals,
            of=arrivals,
            cause=first.cause,
            cause_us=first.us,
            cause_share=first.us / each.waited_for_us,
            where=each.where[0] if each.where else None,
        )


def _held_up(
    ranks: tuple[RankUse, ...],
    late: tuple[LateRank, ...],
    slow: tuple[statements.LateRank | statements.SlowHost, ...],
    digests: dict[int, RankDigest],
    peers: tuple[Ranks, ...],
) -> Iterator[RankFinding]:
    """Ranks whose host is held up in every step, where a late rank's own finding does not say so."""
    said = {(each.rank, each.cause) for each in slow if isinstance(each, statements.LateRank)}
    waited: dict[int | None, float] = {each.rank: each.most_waited_us for each in late}
    span_us = max(each.span_us for each in ranks)
    for pause in find_pauses(digests, peers):
        if (pause.rank, pause.cause) in said:
            continue
        waited_us = waited.get(pause.rank, 0.0)
        grave = waited_us >= LEAST_WAITED * span_us
        yield pause.but(saving_us=min(pause.more_us * pause.steps, waited_us)) if grave else pause


def _more_launches(
    launching: Sequence[statements.SlowHost], digests: dict[int, RankDigest], peers: tuple[Ranks, ...]
) -> Iterator[RankFinding]:
    """Ranks whose hosts launch later and have more to launch: recording alone is not the reason."""
    counts = count_launches(digests, peers)
    for each in launching:
        count, usual = counts[each.rank] if each.rank is not None else (0, 0)
        if count - usual >= LEAST_MORE_LAUNCHES * usual > 0:
            yield statements.MoreLaunches(each.rank, None, more=count - usual, count=count, usual_count=usual)


def _uneven_work(
    ranks: tuple[RankUse, ...], uneven: tuple[UnevenKernel, ...], unsteady: frozenset[int]
) -> Iterator[RankFinding]:
    """Ranks with more to do than the others, or a slower GPU, which is slower all the time."""
    for rank in ranks:
        own = [each for each in uneven if each.rank == rank.rank and each.more_us > 0]
        more_us = sum(each.more_us for each in own)
        if own and more_us >= LEAST_UNEVEN * rank.span_us:
            yield statements.UnevenWork(
                rank.rank,
                more_us,
                more_us=more_us,
                share=more_us / rank.span_us,
                kernel=own[0].name,
                count=own[0].count,
                usual_count=own[0].usual_count,
                kernels=len(own),
            )
        # What runs beside a collective that waits is slow for that; its price says so.
        beside_us = rank.overlap_price_us or 0.0
        is_slow = rank.slower >= LEAST_SLOWER and rank.rank not in unsteady
        if is_slow and beside_us < rank.slower * rank.compute_us / 2:
            saving_us = rank.compute_us * rank.slower / (1 + rank.slower)
            yield statements.SlowGpu(rank.rank, saving_us, slower=rank.slower, compute_us=rank.compute_us)


def find_uneven_stages(
    ranks: tuple[RankUse, ...], computed: Mapping[int, float], stages: tuple[Ranks, ...]
) -> Iterator[RankFinding]:
    """The stage of a pipeline with most compute, by what each rank `computed` in as many steps. One slow rank of it
    does not count, where it has several."""
    known = {stage: [computed[rank] for rank in stage if rank in computed] for stage in stages}
    spent = {stage: median_low(some) for stage, some in known.items() if some}
    if not spent:
        return
    longest, mean_us = max(spent, key=lambda stage: spent[stage]), fmean(spent.values())
    more_us, span_us = spent[longest] - mean_us, max(each.span_us for each in ranks)
    if more_us >= LEAST_UNEVEN_STAGE * span_us:
        yield statements.UnevenStages(
            None,
            more_us,
            ranks=longest,
            stages=len(stages),
            compute_us=spent[longest],
            mean_us=mean_us,
            share=more_us / mean_us,
        )


def _recompiled(ranks: tuple[RankUse, ...], digests: dict[int, RankDigest]) -> Iterator[RankFinding]:
    """Ranks whose GPU is idle while code is compiled, longer than on others."""
    spent = {use.rank: sum(each.us for each in use.idle_causes if each.cause == "compile") for use in ranks}
    for use in ranks if len(ranks) > 1 and any(spent.values()) else ():
        more_us = spent[use.rank] - median(us for rank, us in spent.items() if rank != use.rank)
        if more_us < max(LEAST_COMPILED * use.span_us, LEAST_COMPILED_US):
            continue
        where = None
        if use.rank in digests:
            places = digests[use.rank].places.filter((pl.col("cause") == "compile") & pl.col("where").is_not_null())
            where = next(iter(places.sort(pl.col("end_ns") - pl.col("start_ns"), descending=True)["where"]), None)
        yield statements.Recompiled(use.rank, more_us, compile_us=more_us, share=more_us / use.span_us, where=where)


def find_slow(
    stragglers: Sequence[Straggler], ranks: tuple[RankUse, ...], found: Iterable[RankFinding]
) -> Iterator[RankFinding]:
    """Stragglers but those that are called late, of which more is told."""
    late = {each.rank for each in found if isinstance(each, statements.LateRank)}
    spans = {use.rank: use.span_us for use in ranks}
    for each in stragglers:
        span_us = max((spans[rank] for rank in each.ranks if rank in spans), default=0.0)
        facts = {name: getattr(each, name) for name in OF_STRAGGLER}
        facts |= {"share": each.lost_us / span_us if span_us else None}
        if each.kind == "link":
            yield statements.StragglerLink(
                None,
                each.lost_us,
                **facts,
                collective=each.collective,
                message_bytes=each.bytes,
                busbw_gbps=each.busbw_gbps or 0.0,
                usual_gbps=each.usual_gbps or 0.0,
            )
        elif each.kind == "host" or each.ranks[0] not in late:
            kind = statements.StragglerRank if each.kind == "rank" else statements.StragglerHost
            cause = each.causes[0] if each.causes else None
            yield kind(
                each.ranks[0] if each.kind == "rank" else None,
                each.lost_us,
                **facts,
                cause=cause.cause if cause else "unattributed",
                cause_share=cause.us / each.lost_us if cause and each.lost_us else 0.0,
                waited_us=each.waited_us,
            )


def _uneven_split(collectives: tuple[CollectiveUse, ...]) -> Iterator[RankFinding]:
    """All-to-alls in which one rank gives or takes more than the others."""
    for each in collectives:
        mean = sum(one.received for one in each.rank_bytes) / max(len(each.rank_bytes), 1)
        most = max(each.rank_bytes, key=lambda one: max(one.sent, one.received), default=None)
        if most is not None and mean and max(most.sent, most.received) >= LEAST_UNEVEN_SPLIT * mean:
            yield statements.UnevenSplit(
                most.rank,
                None,
                times=max(most.sent, most.received) / mean,
                sent=most.sent,
                received=most.received,
                count=each.count,
            )
