"""What did all ranks do around the worst collectives? Timelines on one clock, as many and as fine as can be drawn."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.timeline import Bars, Label, StepTimeline
from tracekit.ranks.activities import computing
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.job_figures import OneCollective, RankStretch, Stretch, WaitedFor
from tracekit.ranks.joined import Joined
from tracekit.ranks.lateness import Lateness

SinceZero = Callable[[int, Ints], Ints]

#: Stretches, of a job of which some ranks are not drawn, and ranks in each.
MOST_STRETCHES, MOST_OF_SOME, MOST_RANKS = 6, 1, 64
#: Where a stretch has more bars, those shorter than this share of it are drawn together.
MOST_BARS, FINEST = 30_000, 1 / 1500
#: So much longer than the arrivals lie apart a stretch is at most, and so much is added after the collective.
LONGEST, AFTER = 8, 0.04
WORK, COMMUNICATION = 0, 1


class _Bars(Struct, frozen=True):
    """Bars of one rank on the common clock, in order of their start. `labels` are those of the page."""

    starts: Ints
    ends: Ints
    labels: Ints
    lanes: Ints
    positions: Ints

    def within(self, begin: int, end: int) -> "_Bars":
        """What of them lies in that stretch."""
        some = (self.ends > begin) & (self.starts < end)
        kept = _Bars(*(each[some] for each in (self.starts, self.ends, self.labels, self.lanes, self.positions)))
        return replace(kept, starts=np.maximum(kept.starts, begin), ends=np.minimum(kept.ends, end))

    def together(self, least_ns: int) -> tuple["_Bars", int]:
        """With one bar for neighbours that are shorter and begin in the same stretch of that length, and how many there
        were. It is called as the longest of them."""
        if not len(self.starts):
            return self, 0
        lengths, cells = self.ends - self.starts, self.starts // max(least_ns, 1)
        single = (lengths >= least_ns) | (self.positions >= 0)
        parted = (np.diff(cells) != 0) | single[1:] | single[:-1] | (np.diff(self.lanes) != 0)
        first = np.flatnonzero(np.concatenate(([True], parted)))
        counts = np.diff(np.append(first, len(self.starts)))
        bar = np.repeat(np.arange(len(first)), counts)
        longest = np.lexsort((lengths, bar))[np.cumsum(counts) - 1]
        ends = np.maximum.reduceat(self.ends, first)
        made = _Bars(self.starts[first], ends, self.labels[longest], self.lanes[first], self.positions[first])
        return made, int(counts[counts > 1].sum())

    def drawn(self, begin: int) -> Bars:
        return Bars(
            starts_us=tuple(((self.starts - begin) / 1e3).tolist()),
            durations_us=tuple(((self.ends - self.starts) / 1e3).tolist()),
            labels=tuple(self.labels.tolist()),
            lanes=tuple(self.lanes.tolist()),
            left_out=0,
        )


class _Labels:
    """Names and kinds of all bars, each once."""

    def __init__(self) -> None:
        self.numbers: dict[Label, int] = {}

    def number(self, name: str, kind: str) -> int:
        return self.numbers.setdefault(Label(name, kind), len(self.numbers))

    def of(self, names: pl.Series, kind: str) -> Ints:
        known = {name: self.number(name, kind) for name in names.unique(maintain_order=True)}
        return names.replace_strict(known, return_dtype=pl.Int64).to_numpy()


def draw_stretches(
    joined: Joined, worst: Sequence[OneCollective], waited: Sequence[WaitedFor], lateness: Iterable[Lateness]
) -> tuple[Stretch, ...]:
    """The stretches around the worst collectives, from where the last rank fell behind; none where the clocks are
    unknown. A collective that an earlier stretch shows has none of its own."""
    if not joined.clocks.known or not worst:
        return ()
    since_zero = joined.since_zero()
    ranks = _ranks(joined.digests, worst, waited)
    most = MOST_STRETCHES if len(ranks) == len(joined.job.digests) else MOST_OF_SOME
    chosen = _stretches(since_zero, {each.collective: each for each in lateness}, worst, most)
    labels = _Labels()
    # In each stretch the bars of one rank after the other: not all of all ranks are held at once.
    parts: list[list[tuple[int, _Bars, _Bars]]] = [[] for _ in chosen]
    for rank in ranks:
        work, idle = _work(joined, since_zero, rank, labels), _idle(joined, since_zero, rank, labels)
        for (_, begin, end, _), some in zip(chosen, parts, strict=True):
            some.append((rank, work.within(begin, end), idle.within(begin, end)))
    made = [
        (each, begin, end, arrival, *_fitted(some, end - begin))
        for (each, begin, end, arrival), some in zip(chosen, parts, strict=True)
    ]
    told = tuple(labels.numbers)
    return tuple(
        Stretch(
            number=each.number,
            begin_us=begin / 1e3,
            arrival_us=(arrival - begin) / 1e3,
            ranks=tuple(_timeline(rank, work, idle, begin, end, told) for rank, work, idle in some),
            unshown=len(joined.job.digests) - len(ranks),
            together=together,
        )
        for each, begin, end, arrival, some, together in made
    )


def _stretches(
    since_zero: SinceZero, why: dict[int, Lateness], worst: Sequence[OneCollective], most: int
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
                int(since_zero(rank, np.array([moment], dtype=np.int64))[0])
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


def _work(joined: Joined, since_zero: SinceZero, rank: int, labels: _Labels) -> _Bars:
    """Compute, and each collective as waiting and transfer."""
    digest = joined.digests[rank]
    compute = computing(digest)
    starts, ends = (since_zero(rank, compute[name].to_numpy()) for name in ("start_ns", "end_ns"))
    begun, over = (since_zero(rank, digest.collectives[name].to_numpy()) for name in ("start_ns", "end_ns"))
    own = joined.waits.parts[joined.rows_of(rank)]
    waiting = own["waiting"].to_numpy()
    known = waiting >= 0
    arrived = begun + np.maximum(waiting, 0)
    collective = own["collective"].to_numpy()
    positions = np.where(collective >= 0, collective + 1, -1)
    kernels = digest.collectives["kernel"]
    pieces = [
        (starts, ends, labels.of(compute["name"], "compute"), WORK, np.full(len(starts), -1, dtype=np.int64)),
        *(
            (first[some], last[some], labels.of(kernels.filter(pl.Series(some)), kind), COMMUNICATION, positions[some])
            for kind, some, first, last in (
                ("waiting", known & (waiting > 0), begun, arrived),
                ("transfer", known, arrived, over),
                ("communication", ~known, begun, over),
            )
        ),
    ]
    columns = [np.concatenate([piece[at] for piece in pieces]) for at in (0, 1, 2, 4)]
    lanes = np.concatenate([np.full(len(piece[0]), piece[3], dtype=np.int64) for piece in pieces])
    order = np.lexsort((columns[0], lanes))
    return _Bars(*(each[order] for each in (*columns[:3], lanes, columns[3])))


def _idle(joined: Joined, since_zero: SinceZero, rank: int, labels: _Labels) -> _Bars:
    """Idle time by leading cause; gaps that are cut at collectives are whole again."""
    digest = joined.digests[rank]
    starts, ends = (digest.gaps[name].to_numpy() for name in ("start_ns", "end_ns"))
    none = np.zeros(0, dtype=np.int64)
    if not len(starts):
        return _Bars(none, none, none, none, none)
    first = np.concatenate(([0], np.flatnonzero(starts[1:] != ends[:-1]) + 1))
    causes = np.add.reduceat(digest.gaps.select(IDLE_CAUSES).to_numpy(), first, axis=0).argmax(axis=1)
    known = np.array([labels.number(cause, "idle") for cause in IDLE_CAUSES], dtype=np.int64)
    last = np.append(first[1:], len(starts)) - 1
    lanes = np.zeros(len(first), dtype=np.int64)
    return _Bars(since_zero(rank, starts[first]), since_zero(rank, ends[last]), known[causes], lanes, lanes - 1)


def _fitted(some: list[tuple[int, _Bars, _Bars]], length_ns: int) -> tuple[list[tuple[int, _Bars, _Bars]], int]:
    """With short kernels drawn together and short gaps left out, where there are very many bars; and how many kernels
    that concerns."""
    if sum(len(bars.starts) for _, *both in some for bars in both) <= MOST_BARS:
        return some, 0
    least_ns = round(FINEST * length_ns)
    fitted, count = [], 0
    for rank, work, idle in some:
        fewer, merged = work.together(least_ns)
        long = idle.ends - idle.starts >= least_ns
        kept = (each[long] for each in (idle.starts, idle.ends, idle.labels, idle.lanes, idle.positions))
        fitted.append((rank, fewer, _Bars(*kept)))
        count += merged
    return fitted, count


def _timeline(rank: int, work: _Bars, idle: _Bars, begin: int, end: int, labels: tuple[Label, ...]) -> RankStretch:
    # As everywhere, bars are in order of their start.
    order = np.argsort(work.starts, kind="stable")
    work = _Bars(*(each[order] for each in (work.starts, work.ends, work.labels, work.lanes, work.positions)))
    timeline = StepTimeline(
        step=None,
        length_us=(end - begin) / 1e3,
        device=0,
        other_devices=0,
        streams=(WORK, COMMUNICATION),
        labels=labels,
        work=work.drawn(begin),
        positions=tuple(work.positions.tolist()),
        gaps=idle.drawn(begin),
        host=Bars((), (), (), (), 0),
    )
    return RankStretch(rank, timeline)
