"""How do the clocks of several recordings run beside each other?

The ranks of one host share a clock, and the ends of a collective agree within tens of microseconds; over a slow network
they scatter by as much as milliseconds, but around none, and each collective is under way on all ranks at one moment.
The clocks of several hosts differ by an offset and drift apart; both are found from the ends of collectives, which
every rank sees at about the same moment. Send and receive, which are no barrier, do not count.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median

import numpy as np
from msgspec import Struct, field

from tracekit.interval import Floats, Ints
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.job_figures import Clock, ClockBasis

#: Ends that lie closer together are on one clock: 13 us for a ring of NCCL's LL protocol, 7 us between V100s.
ONE_CLOCK_NS = 60_000
#: With fewer common collectives a drift cannot be told from chance.
LEAST_FOR_DRIFT = 8
#: One collective fits any offset, and so do two where some other was taken for one of them.
LEAST_FOR_OFFSET = 4
#: Ends of one collective on two hosts, once their clocks are aligned.
ON_A_LINE_NS = 30_000
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


class Clocks(Struct, frozen=True):
    """The clocks of all ranks. `base_ns` keeps numbers small: common times count from it."""

    base_ns: int
    origins: dict[int, int]
    offsets: dict[int, Offset]
    basis: ClockBasis
    uncertainty_ns: float | None
    hosts: int
    #: Between ends of one collective no more is possible.
    tolerance_ns: float = field(default=float("inf"))
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
        own = self.offsets.get(rank, Offset())
        if not own.offset_ns and not own.drift:
            return since
        moved: Ints = since + np.rint(own.offset_ns + own.drift * (since - own.since_ns)).astype(np.int64)
        return moved

    def told(self) -> Clock:
        return Clock(self.basis, None if self.uncertainty_ns is None else self.uncertainty_ns / 1e3)


def one_clock(digests: dict[int, RankDigest]) -> Clocks:
    """As if all recordings had been made by one clock."""
    origins = {rank: each.origin_ns for rank, each in digests.items()}
    return Clocks(min(origins.values()), origins, {}, "one_host", None, 1)


def align_clocks(digests: dict[int, RankDigest], pairs: Iterable[dict[int, tuple[int, int]]]) -> Clocks:
    """`pairs` are the starts and ends of collectives that names alone have joined, by rank, as `one_clock` gives them.

    Ranks whose ends agree with each other share a clock. Of the others each is moved onto the clock of the largest such
    host by a line through the differences of ends. Where no such line fits the clocks stay unknown.
    """
    plain = one_clock(digests)
    joined = [each for each in pairs if len(each) > 1]
    ranks = sorted(digests)
    if not joined:
        return Clocks(plain.base_ns, plain.origins, {}, "bound", None, 1) if len(ranks) > 1 else plain
    known = [{rank: end for rank, (_, end) in each.items()} for each in joined]
    common = [min(end for _, end in each.values()) - max(start for start, _ in each.values()) for each in joined]
    apart = median(max(ends.values()) - min(ends.values()) for ends in known)
    unmoved: Clocks | None = None
    if min(common) > 0 and apart <= MOST_SCATTER * median(common):
        unmoved = Clocks(plain.base_ns, plain.origins, {}, "one_host", apart, 1, _tolerance_ns(apart), at_once=True)
        if _level(known):
            return unmoved
        unmoved = unmoved if apart <= MOST_APART * median(common) else None
    # Ranks of which nothing is joined yet may have any clock: what ends at once with the others' shows whose it is.
    seen = {rank for each in known for rank in each}
    by_rank = _by_rank(known)
    hosts = _hosts([rank for rank in ranks if rank in seen], by_rank)
    largest = max(hosts, key=lambda host: (len(host), -host[0]))
    middles = {at: median(some) for at, some in _by_collective(largest, by_rank).items()}
    offsets: dict[int, Offset] = {}
    aligned = True
    unaligned: list[int] = []
    for host in hosts:
        if host is largest:
            continue
        found = _offset(host, middles, by_rank)
        if found is not None:
            offsets |= dict.fromkeys(host, found)
        elif any(set(each) & set(host) and not set(each) <= set(host) for each in known):
            aligned = False
            unaligned += host
        # Ranks that share no collective with others need no common clock with them.
    moved = Clocks(plain.base_ns, plain.origins, offsets, "aligned", None, len(hosts))
    spreads = [_spread(moved, each) for each in known]
    usual = median(spreads)
    # Ends of one collective that lie apart by more than all others do are of two.
    if not aligned or usual > ONE_CLOCK_NS * (1 if len(hosts) == 1 else 4):
        # In a ring over a slow network some ranks end before others each time: as uncertain as that is their clock.
        bound = Clocks(plain.base_ns, plain.origins, {}, "bound", None, len(hosts), unaligned=tuple(unaligned))
        return unmoved or bound
    basis: ClockBasis = "one_host" if len(hosts) == 1 else "aligned"
    at_once = len(hosts) == 1 and unmoved is not None
    return Clocks(plain.base_ns, plain.origins, offsets, basis, usual, len(hosts), _tolerance_ns(usual), at_once)


def _tolerance_ns(usual: float) -> float:
    """How far apart two ends of one collective may be, of which most are apart by this."""
    return max(FAR * usual, LEAST_TOLERANCE_NS)


def _level(known: list[dict[int, int]]) -> bool:
    """Whether each rank's ends scatter around the others' without an offset or a drift: with as little as their number
    and their scatter let one see."""
    for apart in _from_others(known):
        if len(apart) < LEAST_FOR_OFFSET:
            return False
        values = apart[np.argsort(apart[:, 0]), 1]
        scatter = float(np.median(np.abs(values - np.median(values))))
        for some in (values, values[: len(values) // 2], values[len(values) // 2 :]):
            if abs(float(np.median(some))) > max(ONE_CLOCK_NS, SCATTER * scatter / len(some) ** 0.5):
                return False
    return True


def _from_others(known: list[dict[int, int]]) -> list[Floats]:
    """Of each rank, by its collectives: when its part ended, and how much earlier the median of the others' did."""
    found: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for ends in known:
        ordered = sorted(ends, key=ends.__getitem__)
        values = [ends[rank] for rank in ordered]
        # The middle ones of all but one, whose place is taken by the next.
        middles = (len(values) // 2 - 1, (len(values) - 1) // 2)
        for at, rank in enumerate(ordered):
            low, high = (values[each + (each >= at)] for each in middles)
            found[rank].append((ends[rank], (low + high) / 2 - ends[rank]))
    return [np.array(each, dtype=np.float64) for each in found.values()]


def _spread(clocks: Clocks, ends: dict[int, int]) -> float:
    """How far the ends of one collective lie apart."""
    moved = []
    for rank, end in ends.items():
        own = clocks.offsets.get(rank, Offset())
        moved.append(end + own.offset_ns + own.drift * (end - own.since_ns))
    return max(moved) - min(moved)


def _by_rank(known: list[dict[int, int]]) -> dict[int, dict[int, int]]:
    """Each rank's ends, by the number of the collective."""
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for number, ends in enumerate(known):
        for rank, end in ends.items():
            found[rank][number] = end
    return found


def _by_collective(ranks: Iterable[int], by_rank: Mapping[int, dict[int, int]]) -> dict[int, list[int]]:
    """The ranks' ends of each of their collectives."""
    found: dict[int, list[int]] = defaultdict(list)
    for rank in ranks:
        for number, end in by_rank[rank].items():
            found[number].append(end)
    return found


def _hosts(ranks: list[int], by_rank: Mapping[int, dict[int, int]]) -> list[tuple[int, ...]]:
    """Ranks by clock: those whose ends agree, the median of their differences being small. A rank is held against the
    middles of a host's ends, which are kept as it grows: the time taken grows with the ranks, not with their square."""
    hosts: list[list[int]] = []
    ordered: list[dict[int, list[int]]] = []
    middles: list[dict[int, float]] = []
    for rank in ranks:
        own = by_rank[rank]
        at = next((at for at, middle in enumerate(middles) if _agree(_differences(own, middle))), len(hosts))
        if at == len(hosts):
            hosts.append([])
            ordered.append(defaultdict(list))
            middles.append({})
        hosts[at].append(rank)
        for number, end in own.items():
            same = ordered[at][number]
            insort(same, end)
            middles[at][number] = (same[(len(same) - 1) // 2] + same[len(same) // 2]) / 2
    return [tuple(host) for host in hosts]


def _agree(apart: Floats) -> bool:
    """Whether differences are small, and do not grow over the recording: clocks that drift cross once."""
    if not len(apart) or abs(float(np.median(apart[:, 1]))) > ONE_CLOCK_NS:
        return False
    half = len(apart) // 2
    if half < LEAST_FOR_DRIFT:
        return True
    ordered = apart[np.argsort(apart[:, 0])]
    return abs(float(np.median(ordered[:half, 1]) - np.median(ordered[half:, 1]))) <= ONE_CLOCK_NS


def _differences(own: dict[int, int], middles: Mapping[int, float]) -> Floats:
    """Of each collective of a rank and a host: when the rank's part ended, and how much earlier the host's did."""
    found = [(end, middles[number] - end) for number, end in own.items() if number in middles]
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def _offset(
    host: tuple[int, ...], middles: Mapping[int, float], by_rank: Mapping[int, dict[int, int]]
) -> Offset | None:
    """The line that moves the host's times onto those of the host with these middles; None where they share too few
    collectives, or these do not lie on a line: then they are not the same."""
    each = [_differences(by_rank[rank], middles) for rank in host]
    if max(map(len, each)) < LEAST_FOR_OFFSET:
        return None
    apart = np.concatenate(each)
    since = int(apart[:, 0].min())
    moments, differences = apart[:, 0] - since, apart[:, 1]
    drift = 0.0
    if len(apart) >= LEAST_FOR_DRIFT and np.ptp(moments) > 0:
        drift = slope(moments, differences)
        drift = drift if abs(drift) <= MOST_DRIFT else 0.0
    rest = differences - drift * moments
    offset = float(np.median(rest))
    return Offset(offset, drift, since) if float(np.median(np.abs(rest - offset))) <= ON_A_LINE_NS else None


def slope(moments: Floats, values: Floats) -> float:
    """Theil-Sen's slope, of at most some hundreds of points: one wrong pair does not move it (Sen, JASA 63, 1968)."""
    order = np.argsort(moments)
    some = order[np.linspace(0, len(order) - 1, min(len(order), 400)).astype(np.int64)]
    x, y = moments[some], values[some]
    first, second = np.triu_indices(len(x), 1)
    apart = x[second] - x[first]
    far = apart > 0
    return float(np.median((y[second] - y[first])[far] / apart[far])) if far.any() else 0.0
