"""How do the clocks of several recordings run beside each other?

The ranks of one host share a clock, and the ends of a collective agree within tens of microseconds; over a slow network
they scatter by as much as milliseconds, but around none, and each collective is under way on all ranks at one moment.
The clocks of several hosts differ by an offset and drift apart; both are found from the ends of collectives, which
every rank sees at about the same moment. Send and receive, which are no barrier, do not count.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from tracekit.interval import Floats, Ints
from tracekit.ranks.digests import RankRecording
from tracekit.ranks.fleets.runs import Runs
from tracekit.ranks.job_figures import Clock, ClockBasis

#: Ends that lie closer together are on one clock: 13 us for a ring of NCCL's LL protocol, 7 us between V100s.
ONE_CLOCK_NS = 60_000
#: With fewer common collectives a drift cannot be told from chance.
LEAST_FOR_DRIFT = 8
#: One collective fits any offset, and so do two where some other was taken for one of them.
LEAST_FOR_OFFSET = 4
#: Ends of one collective on two hosts, once their clocks are aligned.
ON_A_LINE_NS = 30_000
#: Ends over a network lie further apart than on one host.
OVER_A_NETWORK = 4
#: Clocks of hosts drift by some tens of parts in a million; what is more is no drift.
MOST_DRIFT = 500e-6
#: So many times the usual distance of ends no two ends of one collective are apart.
FAR = 10
LEAST_TOLERANCE_NS = 50_000
#: The median of normal deviates scatters by so many times their median absolute deviation, by the root of their number
#: (Kenney and Keeping, Mathematics of Statistics 2, 1951: 1.2533 standard deviations of 1.4826 of these); thrice that.
SCATTER = 3 * 1.2533 * 1.4826
#: Ends that scatter by more than this share of the time in which all ranks were in the collective tell nothing; where
#: one rank's are later than another's each time, by more than the second.
MOST_SCATTER, MOST_APART = 1.0, 0.5


class Offset(Struct, frozen=True):
    """A rank's clock against the common one: common = own + offset + drift * (own - since)."""

    offset_ns: float = 0.0
    drift: float = 0.0
    since_ns: int = 0

    def moved(self, own_ns: Ints) -> Ints:
        moved: Ints = own_ns + np.rint(self.offset_ns + self.drift * (own_ns - self.since_ns)).astype(np.int64)
        return moved


class Clocks(Struct, frozen=True):
    """The clocks of all ranks. `base_ns` keeps numbers small: common times count from it."""

    base_ns: int
    origins: dict[int, int]
    offsets: dict[int, Offset]
    basis: ClockBasis
    uncertainty_ns: float | None
    hosts: int
    #: Between ends of one collective no more is possible.
    tolerance_ns: float = float("inf")
    #: Whether each collective that names join was under way on all its ranks at one moment.
    at_once: bool = False
    #: Where they are not known: ranks whose ends fit no line through the others'.
    unaligned: tuple[int, ...] = ()

    @property
    def known(self) -> bool:
        return self.basis != "bound"

    def common(self, rank: int, own_ns: Ints) -> Ints:
        """Times of a rank's own recording on the common clock."""
        since = own_ns + (self.origins[rank] - self.base_ns)
        return self.offsets[rank].moved(since) if rank in self.offsets else since

    def common_of(self, ranks: Ints, since: Ints) -> Ints:
        """The same of times of several ranks, as `one_clock` gives them."""
        if not self.offsets or not len(ranks):
            return since
        table = np.zeros((int(ranks.max()) + 1, 3))
        for rank, each in self.offsets.items():
            if rank < len(table):
                table[rank] = each.offset_ns, each.drift, each.since_ns
        offset, drift, begin = table[ranks].T
        moved: Ints = since + np.rint(offset + drift * (since - begin)).astype(np.int64)
        return moved

    def told(self) -> Clock:
        return Clock(self.basis, None if self.uncertainty_ns is None else self.uncertainty_ns / 1e3)


def one_clock(recordings: Mapping[int, RankRecording]) -> Clocks:
    """As if all recordings had been made by one clock."""
    origins = {rank: each.origin_ns for rank, each in recordings.items()}
    return Clocks(min(origins.values()), origins, {}, "one_host", None, 1)


def align_clocks(recordings: Mapping[int, RankRecording], joined: pl.DataFrame) -> Clocks:
    """`joined` are the parts of collectives that names alone have joined: `collective`, `rank`, `start` and `end`, as
    `one_clock` gives them, in the order of collectives and ranks.

    Ranks that name one host, or whose ends agree with each other, share a clock. Of the others each is moved onto the
    clock of the largest such host by a line through the differences of ends, or of one that was moved before it: few
    hosts share a collective with all others. Where no such line fits the clocks stay unknown.
    """
    plain = one_clock(recordings)
    every = Runs(joined["collective"].to_numpy())
    known = joined.filter(pl.Series(every.counts[every.of_row] > 1))
    if not known.height:
        return replace(plain, basis="bound") if len(recordings) > 1 else plain
    of_each = Runs(known["collective"].to_numpy())
    end = known["end"].to_numpy()
    in_common = of_each.least(end) - of_each.most(known["start"].to_numpy())
    common, apart = float(np.median(in_common)), float(np.median(of_each.most(end) - of_each.least(end)))
    unmoved: Clocks | None = None
    if in_common.min() > 0 and apart <= MOST_SCATTER * common:
        unmoved = replace(plain, uncertainty_ns=apart, tolerance_ns=_tolerance_ns(apart), at_once=True)
        if _level(known):
            return unmoved
        unmoved = unmoved if apart <= MOST_APART * common else None
    # Ranks of which nothing is joined yet may have any clock: what ends at once with the others' shows whose it is.
    known = known.with_columns(number=pl.Series(of_each.of_row))
    hosts = _hosts(recordings, known)
    # Unnamed hosts are taken for one where their clocks are close: each of their ranks gets a line of its own.
    named = [host for host in hosts if recordings[host[0]].host_name is not None]
    lone = [(rank,) for host in hosts if host not in named for rank in host]
    offsets, unaligned = _offsets(hosts if len(hosts) == 1 else [*named, *lone], known)
    if unaligned:
        offsets, unaligned = _offsets(hosts, known)
    moved = replace(plain, offsets=offsets, basis="aligned", hosts=len(hosts))
    ends = moved.common_of(known["rank"].to_numpy(), end)
    usual = float(np.median(of_each.most(ends) - of_each.least(ends)))
    # Ends of one collective that lie apart by more than all others do are of two.
    if unaligned or usual > ONE_CLOCK_NS * (1 if len(hosts) == 1 else OVER_A_NETWORK):
        # In a ring over a slow network some ranks end before others each time: as uncertain as that is their clock.
        bound = replace(plain, basis="bound", hosts=len(hosts), unaligned=tuple(unaligned))
        return unmoved or bound
    return replace(
        moved,
        basis="one_host" if len(hosts) == 1 else "aligned",
        uncertainty_ns=usual,
        tolerance_ns=_tolerance_ns(usual),
        at_once=len(hosts) == 1 and unmoved is not None,
    )


def _tolerance_ns(usual: float) -> float:
    """How far apart two ends of one collective may be, of which most are apart by this."""
    return max(FAR * usual, LEAST_TOLERANCE_NS)


def _level(known: pl.DataFrame) -> bool:
    """Whether each rank's ends scatter around the others' without an offset or a drift: with as little as their number
    and their scatter let one see."""
    for apart in _from_others(known):
        if len(apart) < LEAST_FOR_OFFSET:
            return False
        scatter = float(np.median(np.abs(apart - np.median(apart))))
        for some in (apart, apart[: len(apart) // 2], apart[len(apart) // 2 :]):
            if abs(float(np.median(some))) > max(ONE_CLOCK_NS, SCATTER * scatter / len(some) ** 0.5):
                return False
    return True


def _from_others(known: pl.DataFrame) -> list[Floats]:
    """Of each rank, in the order of its collectives' ends: how much earlier the median of the others' was."""
    ordered = known.sort("collective", "end")
    end = ordered["end"].to_numpy()
    runs = Runs(ordered["collective"].to_numpy())
    first, count = runs.first[runs.of_row], runs.counts[runs.of_row]
    place = np.arange(len(end)) - first
    # The middle ones of all but one, whose place is taken by the next.
    low, high = (end[first + middle + (middle >= place)] for middle in (count // 2 - 1, (count - 1) // 2))
    apart = ordered.select("rank", "end", apart=pl.Series((low + high) / 2 - end)).sort("rank", "end")
    return [each["apart"].to_numpy() for each in apart.partition_by("rank")]


def _hosts(recordings: Mapping[int, RankRecording], known: pl.DataFrame) -> list[tuple[int, ...]]:
    """Ranks by clock: those that name one host, and those that name none and whose ends agree with those of others that
    do not, the median of their differences being small. A rank is held against the means of a host's ends, which are
    kept as it grows: the time taken grows with the ranks, not with their square."""
    named: dict[str, list[int]] = {}
    nameless: list[list[int]] = []
    sums: list[Floats] = []
    ranks = known["rank"].unique().to_list()
    for rank in ranks:
        if (name := recordings[rank].host_name) is not None:
            named.setdefault(name, []).append(rank)
    others = known.filter(pl.col("rank").is_in([rank for rank in ranks if recordings[rank].host_name is None]))
    for (rank,), table in others.partition_by("rank", as_dict=True, maintain_order=True).items():
        number, ends = table["number"].to_numpy(), table["end"].to_numpy()
        agree = (at for at, some in enumerate(sums) if _agree(some[number], ends))
        at = next(agree, len(sums))
        if at == len(sums):
            nameless.append([])
            sums.append(np.zeros((int(known["number"].max()) + 1, 2)))  # type: ignore[arg-type]
        nameless[at].append(rank)
        sums[at][number] += np.stack((ends, np.ones(len(ends))), axis=1)
    return sorted(tuple(sorted(host)) for host in (*named.values(), *nameless))


def _offsets(hosts: list[tuple[int, ...]], known: pl.DataFrame) -> tuple[dict[int, Offset], list[int]]:
    """Of the ranks of all hosts but the largest, and the ranks that share collectives with others and fit no line."""
    largest = max(hosts, key=lambda host: (len(host), -host[0]))
    of_rank = np.zeros(int(known["rank"].max()) + 1, dtype=np.int64)  # type: ignore[arg-type]
    for at, ranks in enumerate(hosts):
        of_rank[[*ranks]] = at
    number, end = known["number"].to_numpy(), known["end"].to_numpy()
    host = of_rank[known["rank"].to_numpy()]
    runs = Runs(number)
    shared = (runs.least(host) != runs.most(host))[runs.of_row]
    of_host = {at: (number[own], end[own]) for at in range(len(hosts)) if (own := shared & (host == at)).any()}
    offsets: dict[int, Offset] = {}
    #: When the parts of each collective ended on hosts whose clocks are told; NaN where none had one.
    middles = np.full(int(known["number"].max()) + 1, np.nan)  # type: ignore[arg-type]
    _add_middles(middles, *of_host.pop(hosts.index(largest), (number[:0], end[:0])))
    while True:
        found = {host: each for host, (number, ends) in of_host.items() if (each := _offset(number, ends, middles))}
        for host, each in found.items():
            number, ends = of_host.pop(host)
            offsets |= dict.fromkeys(hosts[host], each)
            _add_middles(middles, number, ends + each.offset_ns + each.drift * (ends - each.since_ns))
        if not found:
            # Ranks that share no collective with others need no common clock with them.
            return offsets, [rank for host in of_host for rank in hosts[host]]


def _add_middles(middles: Floats, number: Ints, ends: Ints | Floats) -> None:
    """Of collectives that have none yet the median end of a host's parts."""
    fresh = np.isnan(middles[number])
    runs = Runs(number[fresh])
    middles[runs.numbers] = runs.medians(ends[fresh])


def _agree(sums: Floats, ends: Ints) -> bool:
    """Whether a rank's parts of collectives end when a host's do, of which the sum and the number are known:
    differences are small, and do not grow over the recording: clocks that drift cross once."""
    both = sums[:, 1] > 0
    sums, ends = sums[both], ends[both]
    apart = sums[:, 0] / sums[:, 1] - ends
    if not len(apart) or abs(float(np.median(apart))) > ONE_CLOCK_NS:
        return False
    half = len(apart) // 2
    if half < LEAST_FOR_DRIFT:
        return True
    ordered = apart[np.argsort(ends)]
    return abs(float(np.median(ordered[:half]) - np.median(ordered[half:]))) <= ONE_CLOCK_NS


def _offset(number: Ints, ends: Ints, middles: Floats) -> Offset | None:
    """The line that moves the host's ends of collectives onto these middles; None where they share too few, or these do
    not lie on a line: then they are not the same."""
    both = ~np.isnan(middles[number])
    number, ends = number[both], ends[both]
    if len(np.unique(number)) < LEAST_FOR_OFFSET:
        return None
    since = int(ends.min())
    moments, differences = (ends - since).astype(np.float64), middles[number] - ends
    drift = 0.0
    if len(moments) >= LEAST_FOR_DRIFT and np.ptp(moments) > 0:
        drift = slope(moments, differences)
        drift = drift if abs(drift) <= MOST_DRIFT else 0.0
    rest = differences - drift * moments
    offset = float(np.median(rest))
    return Offset(offset, drift, since) if float(np.median(np.abs(rest - offset))) <= ON_A_LINE_NS else None


def slope(moments: Floats, values: Floats) -> float:
    """Theil-Sen's slope, of at most 80 points: one wrong pair does not move it (Sen, JASA 63, 1968)."""
    order = np.argsort(moments)
    some = order[np.linspace(0, len(order) - 1, min(len(order), 80)).astype(np.int64)]
    x, y = moments[some], values[some]
    first, second = np.triu_indices(len(x), 1)
    apart = x[second] - x[first]
    far = apart > 0
    return float(np.median((y[second] - y[first])[far] / apart[far])) if far.any() else 0.0
