"""Which recordings are of one job, on which clocks, and which of their collectives are one?"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from msgspec.structs import replace

from tracekit.ranks.digests import RankDigest, RankSummary
from tracekit.ranks.fleets.clocks import ONE_CLOCK_NS, Clocks, align_clocks, one_clock
from tracekit.ranks.fleets.ends import share_a_clock
from tracekit.ranks.fleets.parts import Parts, join_parts
from tracekit.ranks.fleets.waits import measure_waits, settle
from tracekit.ranks.job_figures import RankNote
from tracekit.ranks.joined import Joined
from tracekit.ranks.summary import begin_summary, summarise
from tracekit.ranks.world import Job, begin_at, gather_job

#: What ranks waited longer for others to be recorded is no time of the job's.
LEAST_SKEW_NS = 100_000_000
#: Of fewer collectives, and of groups of two, nobody can say who is wrong.
LEAST_COLLECTIVES, LEAST_MEMBERS = 4, 3
#: Of a rank's collectives.
MOSTLY_APART = 0.5


def match_ranks(recordings: Sequence[RankDigest | RankSummary], left_out: Sequence[RankNote] = ()) -> Joined:
    """One job's ranks on one clock, and their collectives; those given as digests are held. Raises TracekitError where
    no recording can be used."""
    job = gather_job(recordings, left_out)
    joined = _match(job)
    while foreign := _foreign(joined):
        job = job.without(foreign)
        joined = _match(job)
    return joined


def hold(joined: Joined, digests: Mapping[int, RankDigest]) -> Joined:
    """With these digests, by ranks of the job."""
    begins = _begins(joined.job, joined.clocks)
    cut = {rank: begin_at(each, begins[rank]) if joined.skews_us[rank] else each for rank, each in digests.items()}
    return replace(joined, digests=cut)


def _match(job: Job[RankDigest | RankSummary]) -> Joined:
    digests = {rank: each for rank, each in job.digests.items() if isinstance(each, RankDigest)}
    summaries = {rank: summarise(each) if isinstance(each, RankDigest) else each for rank, each in job.digests.items()}
    parts = join_parts(summaries)
    clocks = _clocks(parts, summaries)
    told = Job(summaries, job.size, job.left_out)
    begins = _begins(told, clocks)
    skews = _start_skews(parts, clocks, begins)
    late = [rank for rank in summaries if skews.get(rank, 0) >= LEAST_SKEW_NS]
    for rank in late:
        if rank in digests:
            digests[rank] = begin_at(digests[rank], begins[rank])
            summaries[rank] = summarise(digests[rank])
        else:
            summaries[rank] = begin_summary(summaries[rank], begins[rank])
    parts = join_parts(summaries) if late else parts
    waits = measure_waits(settle(parts, clocks, summaries), clocks)
    skews_us = {rank: skews[rank] / 1e3 if rank in late else 0.0 for rank in summaries}
    return Joined(told, digests, skews_us, clocks, parts, waits)


def _begins(job: Job[RankSummary], clocks: Clocks) -> dict[int, int]:
    """By each rank's own clock when all were being recorded: profilers start at different moments."""
    first = {rank: each.first_ns for rank, each in job.digests.items()}
    common = {rank: int(clocks.common(rank, np.array([ns]))[0]) for rank, ns in first.items()}
    began = max(common.values())
    return {rank: ns + began - common[rank] for rank, ns in first.items()}


def _start_skews(parts: Parts, clocks: Clocks, begins: dict[int, int]) -> dict[int, int]:
    """How long ranks were in a collective before all were being recorded, in nanoseconds."""
    if not clocks.known or len(begins) < 2:
        return {}
    base = {rank: ns + clocks.origins[rank] - clocks.base_ns for rank, ns in begins.items()}
    rows = parts.every.with_columns(begin=pl.col("rank").replace_strict(base, return_dtype=pl.Int64))
    over = rows.filter((pl.col("start") < pl.col("begin")) & (pl.col("end") > pl.col("begin")))
    return dict(over.group_by("rank").agg((pl.col("begin") - pl.col("start")).max()).iter_rows())


def _clocks(parts: Parts, summaries: dict[int, RankSummary]) -> Clocks:
    """From the ends of those collectives that names alone join; where these disagree, by what ends at once."""

    def aligned(some: Parts, *, one_way: bool = False) -> Clocks:
        members = some.members
        if not one_way:
            barriers = some.about.filter(~pl.col("one_way")).select("collective")
            members = members.join(barriers, on="collective", how="semi", maintain_order="left")
        times = parts.every.select("rank", "start", "end")[members["part"]]
        return align_clocks(summaries, members.select("collective").hstack(times))

    clocks = aligned(parts)
    if clocks.basis == "one_host":
        return clocks
    if parts.about.height and parts.about["one_way"].all():
        # A receiver that waits leaves together with its sender; one that comes late tells nothing.
        by_pairs = aligned(parts, one_way=True)
        return by_pairs if by_pairs.basis == "one_host" else clocks
    if len({each.host_name for each in summaries.values()} - {None}) > 1:
        return clocks
    # Of recordings that lack some collectives, or begin with another, names join what is not one.
    of_all = [at for at, each in enumerate(parts.talk) if each.exchange == "all"]
    barriers = parts.every.filter(pl.col("talk").is_in(of_all))
    of_rank = {rank: barriers.filter(pl.col("rank") == rank) for rank in summaries}
    names = {rank: [parts.talk[at].collective for at in table["talk"]] for rank, table in of_rank.items()}
    if not share_a_clock({rank: table["end"].to_numpy() for rank, table in of_rank.items()}, names):
        return clocks
    found = aligned(settle(parts, replace(one_clock(summaries), tolerance_ns=ONE_CLOCK_NS), summaries))
    return found if found.basis == "one_host" else clocks


def _foreign(joined: Joined) -> tuple[int, ...]:
    """Ranks whose collectives are not the others', by their numbers; or without which all clocks are known."""
    summaries, clocks, parts = joined.job.digests, joined.clocks, joined.parts
    if not clocks.known:
        rest = {rank: each for rank, each in summaries.items() if rank not in clocks.unaligned}
        found = len(clocks.unaligned) < len(rest) < len(summaries) and _clocks(join_parts(rest), rest).known
        return clocks.unaligned if found else ()
    if "not_at_once" not in joined.waits.left["why"].unique():
        return ()
    sure = parts.about.filter((pl.col("how") == "sequence") & ~pl.col("one_way")).select("collective")
    members = parts.members.join(sure, on="collective")
    times = joined.waits.parts.select("rank", "start", "end")[members["part"]]
    return find_foreign(members.hstack(times), clocks.tolerance_ns)


def find_foreign(parts: pl.DataFrame, tolerance_ns: float) -> tuple[int, ...]:
    """Whose recordings are none of the job's, though they state its size: another run's, or of another part of this
    one. In most of their collectives they were over before the others of the group came, or came when these had left.
    Of `parts` in collectives that all leave at once: `collective`, `rank`, `start` and `end` on one clock. None where
    they are no minority."""
    within = parts.filter(pl.len().over("collective") >= LEAST_MEMBERS).with_columns(
        first=pl.col("start").median().over("collective"), last=pl.col("end").median().over("collective")
    )
    apart = (pl.col("end") < pl.col("first") - tolerance_ns) | (pl.col("start") > pl.col("last") + tolerance_ns)
    shares = within.group_by("rank").agg(apart.mean().alias("apart"), pl.len())
    found = shares.filter((pl.col("len") >= LEAST_COLLECTIVES) & (pl.col("apart") >= MOSTLY_APART))["rank"].sort()
    return tuple(found.to_list()) if 2 * len(found) < parts["rank"].n_unique() else ()
