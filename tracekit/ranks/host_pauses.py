"""Is a rank's host held up at one place in every step, where the hosts of others are not?

Sums over a step hide it: a host that launches slowly throughout, mostly for being recorded, is behind by more. So each
idle gap is held against the same gap of the other ranks, step by step, less what the host is slower everywhere.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.model.analysis import IDLE_CAUSES, NOT_THE_HOST
from tracekit.ranks.activities import usual_place, whole_gaps
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.statements.findings import HeldUp

#: `compile` has a finding of its own; `unattributed` is nobody's.
CAUSES = tuple(cause for cause in IDLE_CAUSES if cause not in (*NOT_THE_HOST, "compile", "unattributed"))
#: Of a step: less is not told.
LEAST_SHARE = 0.01
#: Where the hosts of others are not late by so much, their GPUs had work in store: what their hosts did nobody sees.
LEAST_STARVED_NS = 5_000
#: So many times what it takes others at that place.
LEAST_LONGER = 1.75
#: In fewer steps, or at fewer places, nobody can say what is usual.
LEAST_STEPS, LEAST_PLACES = 3, 5
#: At least half of the pause in this share of the steps.
MOST_STEPS = 0.8
#: What a gap is known by over ranks and steps: what ended it, which of that name, and what ran before it.
PLACE = ("name", "number", "before")

Cube = NDArray[np.float64]


def find_pauses(digests: dict[int, RankDigest], parts: Sequence[Sequence[int]]) -> Iterator[HeldUp]:
    """What a rank's host does longer at one place of a step than the others' hosts, in microseconds of a step: the
    longest one of each rank that has any, as yet without what it costs. Ranks are held against others of their part:
    those of one pipeline stage."""
    for part in parts:
        own_digests = {rank: digests[rank] for rank in sorted(part)}
        steps = sorted(set.intersection(*({*each.steps} for each in own_digests.values())))
        if len(part) < 2 or len(steps) < LEAST_STEPS:
            continue
        every = pl.concat([_starved(digest, steps).with_columns(rank=rank) for rank, digest in own_digests.items()])
        cells = len(part) * len(steps)
        # Gaps that all ranks have in all steps.
        shared = every.filter(pl.len().over(PLACE) == cells).sort(*PLACE, "rank", "step")
        ns = shared.select(CAUSES).to_numpy().astype(np.float64).reshape(-1, len(part), len(steps), len(CAUSES))
        starts = shared["start_ns"].to_numpy().reshape(ns.shape[:3])
        lasting = (end - start for digest in own_digests.values() for start, end in digest.windows)
        least_ns = LEAST_SHARE * float(np.median([*lasting]))
        for at, (rank, digest) in enumerate(own_digests.items()):
            more, own, usual = _beyond(ns, at)
            told = np.where(more >= least_ns, more, 0.0)
            if not told.any():
                continue
            place, cause = np.unravel_index(int(told.argmax()), told.shape)
            yield HeldUp(
                rank,
                None,
                cause=CAUSES[cause],
                more_us=float(more[place, cause]) / 1e3,
                own_us=float(own[place, cause]) / 1e3,
                usual_us=float(usual[place, cause]) / 1e3,
                steps=len(steps),
                kernel=shared["name"][int(place) * cells],
                where=usual_place(digest.places.filter(pl.col("start_ns").is_in(starts[place, at].tolist()))),
            )


def _beyond(ns: Cube, at: int) -> tuple[Cube, Cube, Cube]:
    """Of a rank by place and cause, in a step: how much longer than the others it is held up, 0 where that is not so
    in most steps; how long it is itself; and how long others are."""
    own, others = ns[:, at], np.median(np.delete(ns, at, axis=1), axis=1)
    slower = 1.0
    if len(ns) >= LEAST_PLACES:
        whole = np.median(own.sum(axis=2), axis=1) / np.median(others.sum(axis=2), axis=1)
        slower = max(1.0, float(np.median(whole)))
    beyond = own - slower * others
    more, usual_own, usual = (np.median(each, axis=1) for each in (beyond, own, others))
    steady = (beyond >= more[:, None] / 2).mean(axis=1) >= MOST_STEPS
    # Hosts may differ in what they do there and take as long in all.
    in_all = np.median(beyond.sum(axis=2), axis=1)[:, None] >= more / 2
    longer = usual_own >= LEAST_LONGER * slower * usual
    return np.where(steady & in_all & longer, more, 0.0), usual_own, usual


def _starved(digest: RankDigest, steps: Sequence[int]) -> pl.DataFrame:
    """The rank's gaps in these steps in which its host was late: start, place, step, and nanoseconds of each cause."""
    late = whole_gaps(digest).filter(pl.sum_horizontal(CAUSES) >= LEAST_STARVED_NS)
    own = digest.activities.with_columns(step=pl.Series(digest.steps, dtype=pl.Int64).gather(digest.activities["step"]))
    own = own.filter(pl.col("step").is_in(steps)).unique("start_ns", keep="first", maintain_order=True)
    # Where steps follow on each other, the first gap of one begins in the one before.
    first = pl.int_range(pl.len()).over("step") == 0
    next_ones = own.select(
        "name", "step", first.alias("first"), number=pl.int_range(pl.len()).over("step", "name"), end_ns="start_ns"
    )
    last_ones = digest.activities.select(before="name", start_ns="end_ns").unique("start_ns", keep="last")
    named = late.join(last_ones, on="start_ns", how="left").join(next_ones, on="end_ns")
    before = pl.when("first").then(pl.lit("")).otherwise(pl.col("before").fill_null(""))
    return named.select("start_ns", "name", "number", before.alias("before"), "step", *CAUSES)
