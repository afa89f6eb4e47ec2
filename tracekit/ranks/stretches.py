"""What did all ranks do around the worst collectives? Timelines on one clock, as many and as fine as can be drawn."""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.timeline import Bars as DrawnBars
from tracekit.model.timeline import Label, StepTimeline
from tracekit.ranks.activities import computing, whole_gaps
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.job_figures import OneCollective, RankStretch, Stretch, WaitedFor
from tracekit.ranks.joined import Joined
from tracekit.ranks.lateness import Lateness

#: Stretches, of a job of which some ranks are not drawn, and ranks in each.
MOST_STRETCHES, MOST_OF_SOME, MOST_RANKS = 6, 1, 64
#: Where a stretch has more bars, those shorter than this share of it are drawn together.
MOST_BARS, FINEST = 30_000, 1 / 1500
#: So much longer than the arrivals lie apart a stretch is at most, and so much is added after the collective.
LONGEST, AFTER = 8, 0.04
WORK, COMMUNICATION = 0, 1

#: Bars of one rank on the common clock, in order of their start: `start_ns`, `end_ns`, `label` of the page, `lane`, and
#: `position`, the collective's number or -1.
Bars = NDArray[np.void]


class _Labels:
    """Names and kinds of all bars, each once."""

    def __init__(self) -> None:
        self.numbers: dict[Label, int] = {}

    def number(self, name: str, kind: str) -> int:
        return self.numbers.setdefault(Label(name, kind), len(self.numbers))

    def of(self, names: pl.Series, kind: str) -> pl.Series:
        known = {name: self.number(name, kind) for name in names.unique(maintain_order=True)}
        # Of no names polars leaves the type as it is.
        return names.replace_strict(known, return_dtype=pl.Int64).cast(pl.Int64)


def draw_stretches(
    joined: Joined, worst: Sequence[OneCollective], waited: Sequence[WaitedFor], lateness: Iterable[Lateness]
) -> tuple[Stretch, ...]:
    """The stretches around the worst collectives, from where the last rank fell behind; none where the clocks are
    unknown. A collective that an earlier stretch shows has none of its own."""
    if not joined.clocks.known or not worst:
        return ()
    ranks = _ranks(joined.digests, worst, waited)
    most = MOST_STRETCHES if len(ranks) == len(joined.job.digests) else MOST_OF_SOME
    chosen = _stretches(joined, {each.collective: each for each in lateness}, worst, most)
    labels = _Labels()
    # In each stretch the bars of one rank after the other: not all of all ranks are held at once.
    parts: list[list[tuple[int, Bars, Bars]]] = [[] for _ in chosen]
    for rank in ranks:
        work, idle = _work(joined, rank, labels), _idle(joined, rank, labels)
        for (_, begin, end, _), some in zip(chosen, parts, strict=True):
            some.append((rank, _within(work, begin, end), _within(idle, begin, end)))
    found = []
    for (each, begin, end, arrival), some in zip(chosen, parts, strict=True):
        fitted, together = _fitted(some, end - begin)
        found.append(
            Stretch(
                number=each.number,
                begin_us=begin / 1e3,
                arrival_us=(arrival - begin) / 1e3,
                ranks=tuple(_timeline(*bars, begin, end, tuple(labels.numbers)) for bars in fitted),
                unshown=len(joined.job.digests) - len(ranks),
                together=together,
            )
        )
    return tuple(found)


def _stretches(
    joined: Joined, why: dict[int, Lateness], worst: Sequence[OneCollective], most: int
) -> list[tuple[OneCollective, int, int, int]]:
    """Collective, begin, end, and when its last rank arrived, on the common clock."""
    chosen: list[tuple[OneCollective, int, int, int]] = []
    for each in worst:
        spread = round((each.arrival_spread_us or 0.0) * 1e3)
        first = round((each.start_us or 0.0) * 1e3)
        arrival = first + spread
        if any(begin <= arrival <= end for _, begin, end, _ in chosen):
            continue
        begin, lateness = first - spread, why.get(each.number - 1)
        if lateness is not None:
            since = (
                int(joined.since_zero(rank, np.array([moment], dtype=np.int64))[0])
                for rank, moment in ((lateness.late, lateness.of_late[0]), (lateness.waiter, lateness.of_waiter[0]))
            )
            begin = min(begin, *since)
        begin = max(begin, arrival - LONGEST * spread, 0)
        over = arrival + round((each.transfer_us or 0.0) * 1e3 / len(each.parts))
        chosen.append((each, begin, over + round(AFTER * (over - begin)), arrival))
        if len(chosen) == most:
            break
    return chosen


def _ranks(digests: dict[int, RankDigest], worst: Sequence[OneCollective], waited: Sequence[WaitedFor]) -> list[int]:
    """Those that find room: who was late, who waited longest or was waited for most, and others evenly."""
    weights = dict.fromkeys(digests, 0.0)
    for each in waited:
        for rank in (each.rank, each.late):
            if rank in weights:
                weights[rank] += each.us
    for collective in worst:
        if collective.last_rank in weights:
            weights[collective.last_rank] = float("inf")
    order = sorted(digests, key=lambda rank: (-weights[rank], rank))
    foremost = order[: MOST_RANKS // 2] if len(order) > MOST_RANKS else order
    others = sorted(set(digests) - set(foremost))
    evenly = np.linspace(0, len(others) - 1, min(MOST_RANKS - len(foremost), len(others))).astype(np.int64)
    return sorted([*foremost, *(others[at] for at in evenly)])


def _work(joined: Joined, rank: int, labels: _Labels) -> Bars:
    """Compute, and each collective as waiting and transfer."""
    digest = joined.digests[rank]
    compute = joined.on_one_clock(rank, computing(digest)).with_columns(position=pl.lit(-1, dtype=pl.Int64))
    own = joined.waits.parts[joined.rows_of(rank)].select("collective", "waiting")
    talk = joined.on_one_clock(rank, digest.collectives.select("start_ns", "end_ns", name="kernel")).hstack(own)
    talk = talk.with_columns(position=pl.when(pl.col("collective") >= 0).then(pl.col("collective") + 1).otherwise(-1))
    arrived, known = pl.col("start_ns") + pl.col("waiting"), pl.col("waiting") >= 0
    pieces = [
        ("compute", WORK, compute),
        ("waiting", COMMUNICATION, talk.filter(pl.col("waiting") > 0).with_columns(end_ns=arrived)),
        ("transfer", COMMUNICATION, talk.filter(known).with_columns(start_ns=arrived)),
        ("communication", COMMUNICATION, talk.filter(~known)),
    ]
    bars = [
        piece.select("start_ns", "end_ns", label=labels.of(piece["name"], kind), lane=lane, position="position")
        for kind, lane, piece in pieces
    ]
    return pl.concat(bars).sort("lane", "start_ns", maintain_order=True).to_numpy(structured=True)


def _idle(joined: Joined, rank: int, labels: _Labels) -> Bars:
    """Idle time by leading cause."""
    gaps = joined.on_one_clock(rank, whole_gaps(joined.digests[rank]))
    if gaps.height:
        numbers = np.array([labels.number(cause, "idle") for cause in IDLE_CAUSES], dtype=np.int64)
        label = pl.Series(numbers[gaps.select(IDLE_CAUSES).to_numpy().argmax(axis=1)])
    else:
        label = pl.Series(dtype=pl.Int64)
    none = pl.lit(-1, dtype=pl.Int64)
    return gaps.select("start_ns", "end_ns", label=label, lane=none + 1, position=none).to_numpy(structured=True)


def _within(bars: Bars, begin: int, end: int) -> Bars:
    """What of them lies in that stretch."""
    some = bars[(bars["end_ns"] > begin) & (bars["start_ns"] < end)]
    some["start_ns"], some["end_ns"] = np.maximum(some["start_ns"], begin), np.minimum(some["end_ns"], end)
    return some


def _fitted(some: list[tuple[int, Bars, Bars]], length_ns: int) -> tuple[list[tuple[int, Bars, Bars]], int]:
    """With short kernels drawn together and short gaps left out, where there are very many bars; and how many kernels
    that concerns."""
    if sum(len(bars) for _, *both in some for bars in both) <= MOST_BARS:
        return some, 0
    least_ns, fitted, count = round(FINEST * length_ns), [], 0
    for rank, work, idle in some:
        fewer, merged = _together(work, least_ns)
        fitted.append((rank, fewer, idle[idle["end_ns"] - idle["start_ns"] >= least_ns]))
        count += merged
    return fitted, count


def _together(bars: Bars, least_ns: int) -> tuple[Bars, int]:
    """With one bar for neighbours that are shorter and begin in the same stretch of that length, and how many there
    were. It is called as the longest of them."""
    lasting = pl.col("end_ns") - pl.col("start_ns")
    cell = pl.col("start_ns") // max(least_ns, 1)
    single = (lasting >= least_ns) | (pl.col("position") >= 0)
    parted = (cell.diff() != 0) | single | single.shift(1) | (pl.col("lane").diff() != 0)
    made = (
        pl.DataFrame(bars)
        .group_by(parted.fill_null(value=True).cum_sum().alias("bar"), maintain_order=True)
        .agg(
            pl.col("start_ns").first(),
            pl.col("end_ns").max(),
            pl.col("label").sort_by(lasting, maintain_order=True).last(),
            pl.col("lane", "position").first(),
            count=pl.len(),
        )
    )
    together = int(made.filter(pl.col("count") > 1)["count"].sum())
    return made.drop("bar", "count").to_numpy(structured=True), together


def _timeline(rank: int, work: Bars, idle: Bars, begin: int, end: int, labels: tuple[Label, ...]) -> RankStretch:
    # As everywhere, bars are in order of their start.
    work = work[np.argsort(work["start_ns"], kind="stable")]
    timeline = StepTimeline(
        step=None,
        length_us=(end - begin) / 1e3,
        device=0,
        other_devices=0,
        streams=(WORK, COMMUNICATION),
        labels=labels,
        work=_drawn(work, begin),
        positions=tuple(work["position"].tolist()),
        gaps=_drawn(idle, begin),
        host=DrawnBars((), (), (), (), 0),
    )
    return RankStretch(rank, timeline)


def _drawn(bars: Bars, begin: int) -> DrawnBars:
    starts, ends = bars["start_ns"], bars["end_ns"]
    starts_us, durations_us = (tuple((ns / 1e3).tolist()) for ns in (starts - begin, ends - starts))
    return DrawnBars(starts_us, durations_us, tuple(bars["label"].tolist()), tuple(bars["lane"].tolist()), left_out=0)
