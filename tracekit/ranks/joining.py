"""From the digests of many ranks to what they say together."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from msgspec.structs import replace

from tracekit.ranks import findings
from tracekit.ranks.clocks import ONE_CLOCK_NS, Clocks, align_clocks, one_clock
from tracekit.ranks.collectives import sum_collectives, worst_collectives
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.ends import share_a_clock
from tracekit.ranks.foreign import find_foreign
from tracekit.ranks.job_figures import RankNote, Ranks, RankUse, StepsRead, Unmatched, UnmatchedCollectives, WaitedFor
from tracekit.ranks.joined import Joined
from tracekit.ranks.late_ranks import explain_lateness
from tracekit.ranks.lateness import find_lateness
from tracekit.ranks.matching import Matching, match_collectives, named_collectives
from tracekit.ranks.overlap import OverlapPrice, price_overlap
from tracekit.ranks.rows import Collective, times_of
from tracekit.ranks.stages import find_stages
from tracekit.ranks.statements import notes as statements
from tracekit.ranks.stretches import draw_stretches
from tracekit.ranks.waiting import Account, Waits, account_of, measure_waits
from tracekit.ranks.work import compare_work
from tracekit.ranks.world import Job, begin_at, count_steps, gather_job

#: So many of a rank's collectives are none of the others' where recordings are of different stretches of the job.
MOSTLY_OTHER = 0.5
OF_OTHERS = ("counts_differ", "ends_disagree", "not_at_once")
#: What ranks waited longer for others to be recorded is no time of the job's.
LEAST_SKEW_NS = 100_000_000


def join_ranks(recordings: Sequence[RankDigest]) -> Ranks:
    """What the recordings of one job's ranks say together. Raises TracekitError where no recording can be used."""
    return tell_ranks(match_ranks(recordings))


def match_ranks(recordings: Sequence[RankDigest], left_out: Sequence[RankNote] = ()) -> Joined:
    """One job's ranks on one clock, and their collectives. Raises TracekitError where no recording can be used."""
    joined = _match(gather_job(recordings, left_out))
    foreign = _foreign(joined)
    return _match(joined.job.without(foreign)) if foreign else joined


def _match(job: Job[RankDigest]) -> Joined:
    clocks = _clocks(job.digests)
    digests, skews_us = _cut_start(job.digests, clocks)
    matching = match_collectives(digests, clocks)
    return Joined(job, digests, skews_us, clocks, matching, measure_waits(digests, matching, clocks))


def _foreign(joined: Joined) -> tuple[int, ...]:
    """Ranks whose collectives are not the others', by their numbers; or without which all clocks are known."""
    digests, clocks = joined.job.digests, joined.clocks
    if not clocks.known:
        rest = {rank: each for rank, each in digests.items() if rank not in clocks.unaligned}
        found = len(clocks.unaligned) < len(rest) < len(digests) and _clocks(rest).known
        return clocks.unaligned if found else ()
    if not any("not_at_once" in some.values() for some in joined.matching.unmatched.values()):
        return ()
    sure = [each for each in named_collectives(digests) if each.flow is None and each.matched_by == "sequence"]
    starts, ends = (times_of(digests, clocks, column) for column in ("start_ns", "end_ns"))
    parts = (
        (k, it.rank, int(starts[it.rank][it.row]), int(ends[it.rank][it.row]))
        for k, each in enumerate(sure)
        for it in each.members
    )
    names = dict.fromkeys(("collective", "rank", "start", "end"), pl.Int64)
    return find_foreign(pl.DataFrame(parts, schema=names, orient="row"), clocks.tolerance_ns)


def tell_ranks(joined: Joined, *, drawn: bool = False) -> Ranks:
    """What they say together, with timelines around the worst collectives where these will be `drawn`."""
    digests, clocks, matching, waits = joined.digests, joined.clocks, joined.matching, joined.waits
    accounts = {rank: account_of(digest, waits.waiting_ns[rank]) for rank, digest in digests.items()}
    stages = find_stages(digests)
    work, prices = compare_work(digests, stages), price_overlap(digests)
    lateness = find_lateness(digests, matching, waits, clocks)
    # By the shortest kernel waiting is bounded; who came last it does not say.
    waited = _who_for_whom(matching, waits) if clocks.known else ()
    late = explain_lateness(digests, lateness, waited)
    worst = worst_collectives(joined, lateness)
    last = Counter(waits.last if clocks.known else ())
    uses = tuple(
        _use(rank, digest, accounts[rank], prices[rank], work.slower[rank], last[rank], joined.skews_us[rank])
        for rank, digest in digests.items()
    )
    collectives = sum_collectives(joined)
    # Recordings of which most is not the others' show who was late in them, not in the job.
    other = {rank: sum(why in OF_OTHERS for why in rows.values()) for rank, rows in matching.unmatched.items()}
    alike = all(other[rank] < MOSTLY_OTHER * max(each.collectives.height, 1) for rank, each in digests.items())
    return Ranks(
        world=joined.job.world(clocks.hosts),
        clock=clocks.told(),
        steps=StepsRead(next(iter(digests.values())).window, max(map(count_steps, digests.values()))),
        ranks=uses,
        collectives=collectives,
        late=late,
        unmatched=_unmatched(digests, matching),
        waits=waited,
        uneven=work.uneven,
        findings=findings.find(uses, collectives, late, work.uneven, stages, digests, alike=alike),
        notes=notes_of(joined),
        worst=worst,
        stretches=draw_stretches(joined, worst, waited, lateness) if drawn else (),
    )


def notes_of(joined: Joined) -> tuple[RankNote, ...]:
    """What a reader must know of the recordings before believing the figures."""
    unmatched = _unmatched(joined.digests, joined.matching)
    digests, clocks, skews = joined.digests, joined.clocks, joined.skews_us
    notes: list[RankNote] = []
    if not any(each.collectives.height for each in digests.values()):
        notes.append(statements.NoCollectives())
    elif len(digests) > 1 and not clocks.known:
        notes.append(statements.ClocksUnknown(hosts=clocks.hosts))
    if any(skews.values()):
        rank = max(skews, key=lambda each: skews[each])
        notes.append(statements.StartSkew(rank=rank, most_us=skews[rank]))
    every = joined.matching.collectives
    groups = {id(each.group): each.group for each in every}
    recorded = {key: set(digests).intersection(ranks) for key, ranks in groups.items()}
    lacking = sum(not recorded[id(each.group)] <= {it.rank for it in each.members} for each in every if not each.flow)
    if lacking:
        notes.append(statements.PartsMissing(count=lacking, of=len(every)))
    if unmatched and len(digests) > 1:
        count, total_us = sum(each.count for each in unmatched), sum(each.total_us for each in unmatched)
        reason = max(unmatched, key=lambda each: each.count).reason
        of = sum(each.collectives.height for each in digests.values())
        notes.append(statements.UnmatchedCollectives(count=count, total_us=total_us, reason=reason, of=of))
    return (*joined.job.notes, *notes)


def _clocks(digests: dict[int, RankDigest]) -> Clocks:
    """From the ends of those collectives that names alone join; where these disagree, by what ends at once."""
    plain = one_clock(digests)
    starts, ends = (times_of(digests, plain, column) for column in ("start_ns", "end_ns"))

    def spans_of(some: Iterable[Collective]) -> list[dict[int, tuple[int, int]]]:
        return [
            {it.rank: (int(starts[it.rank][it.row]), int(ends[it.rank][it.row])) for it in each.members}
            for each in some
        ]

    named = named_collectives(digests)
    clocks = align_clocks(digests, spans_of(each for each in named if each.flow is None))
    if clocks.basis == "one_host":
        return clocks
    if named and all(each.flow is not None for each in named):
        # A receiver that waits leaves together with its sender; one that comes late tells nothing.
        by_pairs = align_clocks(digests, spans_of(named))
        return by_pairs if by_pairs.basis == "one_host" else clocks
    # Of recordings that lack some collectives, or begin with another, names join what is not one.
    barriers = {rank: (each.collectives["exchange"] == "all").to_numpy() for rank, each in digests.items()}
    names = {rank: each.collectives.filter(barriers[rank])["collective"].to_list() for rank, each in digests.items()}
    if not share_a_clock({rank: ends[rank][barriers[rank]] for rank in digests}, names):
        return clocks
    at_once = match_collectives(digests, replace(plain, tolerance_ns=ONE_CLOCK_NS)).collectives
    found = align_clocks(digests, spans_of(each for each in at_once if each.flow is None))
    return found if found.basis == "one_host" else clocks


def _cut_start(digests: dict[int, RankDigest], clocks: Clocks) -> tuple[dict[int, RankDigest], dict[int, float]]:
    """Without what ranks waited in a collective before all were being recorded, and how much that is, in microseconds:
    profilers start at different moments."""
    none = dict.fromkeys(digests, 0.0)
    if not clocks.known or len(digests) < 2:
        return digests, none
    first = {rank: int(clocks.common(rank, np.array([each.first_ns]))[0]) for rank, each in digests.items()}
    began = max(first.values())
    cut: dict[int, RankDigest] = {}
    for rank, digest in digests.items():
        own_ns = digest.first_ns + began - first[rank]
        starts, ends = (digest.collectives[column].to_numpy() for column in ("start_ns", "end_ns"))
        over = (starts < own_ns) & (ends > own_ns)
        skew_ns = int((own_ns - starts[over]).max()) if over.any() else 0
        cut[rank] = begin_at(digest, own_ns) if skew_ns >= LEAST_SKEW_NS else digest
        none[rank] = skew_ns / 1e3 if skew_ns >= LEAST_SKEW_NS else 0.0
    return cut, none


def _use(
    rank: int,
    digest: RankDigest,
    account: Account,
    price: OverlapPrice | None,
    slower: float,
    last: int,
    skew_us: float,
) -> RankUse:
    # Nothing was joined: what communication is waiting nobody can tell.
    told = account.unknown_ns < account.communication_ns or not account.communication_ns
    return RankUse(
        rank=rank,
        path=digest.path,
        span_us=account.span_ns / 1e3,
        compute_us=account.compute_ns / 1e3,
        communication_us=account.communication_ns / 1e3,
        waiting_us=account.waiting_ns / 1e3 if told else None,
        transfer_us=account.transfer_ns / 1e3 if told else None,
        exposed_us=account.exposed_ns / 1e3,
        exposed_waiting_us=account.exposed_waiting_ns / 1e3 if told else None,
        exposed_transfer_us=account.exposed_transfer_ns / 1e3 if told else None,
        idle_us=account.idle_ns / 1e3,
        idle_causes=account.idle_causes,
        overlap_price_us=price.price_us if price else None,
        overlap_price_ci95=(price.low_us, price.high_us) if price else None,
        slower=slower,
        collectives=digest.collectives.height,
        last_arrivals=last,
        start_skew_us=skew_us,
    )


def _who_for_whom(matching: Matching, waits: Waits) -> tuple[WaitedFor, ...]:
    found: Counter[tuple[int, int]] = Counter()
    for each, late in zip(matching.collectives, waits.late, strict=True):
        for it in each.members:
            if it.rank in late:
                found[it.rank, late[it.rank]] += int(waits.waiting_ns[it.rank][it.row])
    return tuple(WaitedFor(rank, late, ns / 1e3) for (rank, late), ns in sorted(found.items()) if ns)


def _unmatched(digests: dict[int, RankDigest], matching: Matching) -> tuple[UnmatchedCollectives, ...]:
    found: list[UnmatchedCollectives] = []
    for rank, rows in matching.unmatched.items():
        table = digests[rank].collectives
        lasting = (table["end_ns"] - table["start_ns"]).to_list()
        by_reason: dict[Unmatched, list[int]] = defaultdict(list)
        for row, reason in rows.items():
            by_reason[reason].append(lasting[row])
        found += [UnmatchedCollectives(rank, why, len(some), sum(some) / 1e3) for why, some in by_reason.items()]
    return tuple(found)
