"""Why were ranks late that others waited for: what they did more of, and where?"""

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.interval import Ints
from tracekit.ranks.activities import computing
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.job_figures import CauseShare, LateRank, WaitedFor
from tracekit.ranks.lateness import CAUSES, Lateness

#: The collectives with most waiting are looked at for places.
PLACED = 40
PLACES = 3


class _Doings(Struct, frozen=True):
    """What one rank ran but communication, by start, and the places of its longest gaps."""

    starts: Ints
    lasting: Ints
    kernels: Ints  #: The number of each one's name.
    gaps: list[tuple[int, int, str, str]]  #: Start, end, cause and place, as `RankDigest.places`.

    def kernel_ns(self, stretch: tuple[int, int], names: int) -> NDArray[np.float64]:
        """Of each name what began in the stretch."""
        some = slice(*np.searchsorted(self.starts, stretch))
        found: NDArray[np.float64] = np.bincount(self.kernels[some], self.lasting[some], names).astype(np.float64)
        return found


class LatePlaces:
    """Where ranks fell behind: kernels that the late one ran more or longer, and the places of its gaps."""

    def __init__(self, digests: dict[int, RankDigest]) -> None:
        self._digests = digests
        self._names: dict[str, int] = {}
        self._doings: dict[int, _Doings] = {}

    def of(self, some: list[Lateness]) -> tuple[str, ...]:
        """Those in which most of it was made, that with most first."""
        weights: Counter[str] = Counter()
        for each in sorted(some, key=lambda one: -one.waited_ns)[:PLACED]:
            shares = dict(zip(CAUSES, _shares(each.more_ns).tolist(), strict=True))
            late, waiter = self._doings_of(each.late), self._doings_of(each.waiter)
            names = len(self._names)
            more = np.maximum(late.kernel_ns(each.of_late, names) - waiter.kernel_ns(each.of_waiter, names), 0)
            known, total = [*self._names], more.sum()
            for at in np.flatnonzero(more).tolist():
                weights[known[at]] += round(each.waited_ns * shares["compute"] * more[at] / total)
            for cause, where, share in _gaps_within(late.gaps, each.of_late):
                weights[where] += round(each.waited_ns * shares[cause] * share)
        return tuple(name for name, weight in weights.most_common(PLACES) if weight > 0)

    def _doings_of(self, rank: int) -> _Doings:
        if rank not in self._doings:
            own = computing(self._digests[rank])
            names = own["name"].unique(maintain_order=True)
            numbers = [self._names.setdefault(name, len(self._names)) for name in names]
            kernels = own["name"].replace_strict(names, numbers, return_dtype=pl.Int64).to_numpy().astype(np.int64)
            starts, ends = (own[name].to_numpy() for name in ("start_ns", "end_ns"))
            gaps = self._digests[rank].places.filter(pl.col("where").is_not_null()).rows()
            self._doings[rank] = _Doings(starts, ends - starts, kernels, gaps)
        return self._doings[rank]


def _gaps_within(gaps: Iterable[tuple[int, int, str, str]], stretch: tuple[int, int]) -> list[tuple[str, str, float]]:
    """Of each cause the places, and how much of it is there."""
    lengths: Counter[tuple[str, str]] = Counter()
    for start, end, cause, where in gaps:
        if start < stretch[1] and end > stretch[0]:
            lengths[cause, where] += min(end, stretch[1]) - max(start, stretch[0])
    of_cause: Counter[str] = Counter()
    for (cause, _), ns in lengths.items():
        of_cause[cause] += ns
    return [(cause, where, ns / of_cause[cause]) for (cause, where), ns in lengths.items()]


def longest_waits(waited: Iterable[WaitedFor]) -> dict[int, WaitedFor]:
    """Of each rank that was waited for who waited longest."""
    longest: dict[int, WaitedFor] = {}
    for each in sorted(waited, key=lambda one: -one.us):
        longest.setdefault(each.late, each)
    return longest


def explain_lateness(
    found: Iterable[Lateness], waited: Iterable[WaitedFor], places: LatePlaces
) -> tuple[LateRank, ...]:
    """For each rank that was waited for, by whom how long and why. Those first that made most waiting themselves: one
    that is late for an earlier collective passes on what another made."""
    longest = longest_waits(waited)
    of_rank: dict[int, list[Lateness]] = defaultdict(list)
    for each in found:
        of_rank[each.late].append(each)
    late: list[LateRank] = []
    for rank, some in of_rank.items():
        total = sum(each.waited_ns for each in some)
        # Collectives that a rank is late for from one point on share one falling behind.
        behind: dict[tuple[int, int], int] = {}
        for each in some:
            since = (each.waiter, each.of_late[0])
            behind[since] = max(behind.get(since, 0), int(each.more_ns.sum()))
        late.append(
            LateRank(
                rank,
                total / 1e3,
                causes_of(some),
                places.of(some),
                most_waited_us=longest[rank].us,
                waiter=longest[rank].rank,
                behind_us=sum(behind.values()) / 1e3,
                times_behind=len(behind),
                one_gap_share=sum(each.waited_ns for each in some if each.one_gap) / total,
            )
        )
    own_us = {each.rank: sum(one.us for one in each.causes if one.cause != "communication") for each in late}
    return tuple(sorted(late, key=lambda each: (-own_us[each.rank], -each.waited_for_us)))


def causes_of(some: Iterable[Lateness]) -> tuple[CauseShare, ...]:
    """What made it, the largest first; they add up to the waiting."""
    spent = sum((each.waited_ns * _shares(each.more_ns) for each in some), np.zeros(len(CAUSES)))
    causes = sorted(zip(CAUSES, spent.tolist(), strict=True), key=lambda pair: -pair[1])
    return tuple(CauseShare(cause, ns / 1e3) for cause, ns in causes if ns > 0)


def _shares(more: Ints) -> NDArray[np.float64]:
    """What the late rank did more of, as shares of one; `unattributed` where it did nothing more."""
    gained = np.maximum(more, 0).astype(np.float64)
    if not gained.sum():
        gained[CAUSES.index("unattributed")] = 1.0
    shares: NDArray[np.float64] = gained / gained.sum()
    return shares
