"""Which fused kernel does the work of each operator between the library calls?

A kernel's name lists operators, and its inputs have sizes. Operators that follow one another tend to be fused into one
kernel, and kernels stand in the order of what they do: the assignment that fits names, sizes and order best as a whole
is found as the best path (Viterbi's) through the kernels.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from tracekit.comparison.matching.operators import is_listed
from tracekit.comparison.matching.pairing import Pairing, Side
from tracekit.comparison.matching.units import Signature, Unit

#: Names of operators that say nothing, when others stand beside them.
GENERIC = frozenset(("copy", "to", "contiguous", "reshape"))
#: Words for work that one kernel cannot finish where a row is long: it may be spread over several.
SPREAD = re.compile(r"norm|softmax|mean|sum|var|amax|amin|argmax|logsumexp|cumsum|topk|sort")
#: A tensor and a part of it, or several of them one behind the other, differ by a factor up to this.
LARGEST_FACTOR = 8
#: Tensors with fewer elements than this (a scalar, a mean of each row) are in many kernels and tell none.
TELLING = 256
#: Two lists of operators are alike from this share of common ones.
ALIKE = 0.5
#: What a name is worth, and what sizes add to it.
NAMED, SIZED, PARTLY_SIZED, OTHER_SIZES = 1.0, 1.0, 0.8, 0.5

#: How many segments away the kernel may stand: three library calls further.
REACH = 6
#: At most this many kernels are considered for an operator.
MOST = 48
#: What it costs to go on to another kernel: later in order, earlier, and right behind a library call.
FORWARD, BACKWARD, NEW_STRETCH = 0.6, 1.2, 0.1
#: What it costs to leave an operator out.
LEFT_OUT = -0.2
#: What it costs for each library call that the kernel stands too early or too late, and what at most. The next call
#: needs the operator's result more often than the operator that of the last call.
TOO_EARLY, TOO_LATE, OUT_OF_ORDER = -0.1, -0.25, -0.8
#: What a kernel that names the operator is worth at least.
LEAST = 0.05

#: How many library calls stand before the place where an operator would stand on the fused side if the calls around it
#: were all that counted, and before the end of that place.
Bounds = tuple[int, int]


def likeness(plain: Unit, fused: Unit) -> float:
    """0 if the fused kernel's name does not list the operator; else 0.5 to 2.5, more the better the sizes agree. Of two
    fused kernels by the share of operators that both list."""
    if plain.fused is not None:
        one, other = (set((each.fused or "").strip("_").split("_")) for each in (plain, fused))
        share = len(one & other) / len(one | other)
        return share * _by_sizes(plain.sizes, fused.sizes) if share >= ALIKE else 0.0
    return _by_sizes(plain.sizes, fused.sizes) if named_by(plain.words, fused.fused or "") else 0.0


@cache
def named_by(words: frozenset[str], fused: str) -> bool:
    """Whether a fused kernel's list has one of the operators that say something, or what it is decomposed into."""
    telling = words - GENERIC or words
    return any(is_listed(word, fused) for word in telling)


@cache
def spread_words(fused: str) -> frozenset[str]:
    """What of its operators one kernel may do in part only."""
    return frozenset(word for word in fused.split("_") if SPREAD.fullmatch(word))


@cache
def _by_sizes(plain: frozenset[int], fused: frozenset[int]) -> float:
    if not plain or not fused or max(plain) < TELLING:
        return NAMED
    exact = len(plain & fused) / len(plain)
    agreement = _agreement(max(plain), fused)
    return NAMED + agreement + SIZED / 2 * exact if agreement else OTHER_SIZES + SIZED / 4 * exact


def _agreement(size: int, others: frozenset[int]) -> float:
    """Whether one of the others is as large, a part of it, or several times it."""
    if size in others:
        return SIZED
    pairs = [(min(size, other), max(size, other)) for other in others]
    factors = [whole // part for part, whole in pairs if part > 1 and whole % part == 0]
    return PARTLY_SIZED / math.sqrt(min(factors)) if factors and min(factors) <= LARGEST_FACTOR else 0.0


class Kernels(NamedTuple):
    """Fused kernels of one segment that are all the same: positions among the units of their side."""

    segment: int
    members: tuple[int, ...]


def list_kernels(side: Side) -> list[Kernels]:
    """In order of segments, and within a segment of the first of them."""
    found: dict[tuple[int, Signature], list[int]] = defaultdict(list)
    for at, unit in enumerate(side.units):
        # A product from a template of Inductor's is tied, and may do more than the product.
        if unit.fused and (at not in side.done or unit.kind is not None):
            found[side.segments[at], unit.signature].append(at)
    return sorted(Kernels(segment, tuple(members)) for (segment, _), members in found.items())


def assign(
    pairing: Pairing, free: Sequence[int], kernels: Sequence[Kernels], bounds: Sequence[Bounds]
) -> dict[int, int]:
    """For operators among the free units that a kernel's name lists: the number of that kernel in `kernels`.
    `bounds` are those of the free units."""
    if not kernels:
        return {}
    plain, fused, calls = pairing.plain, pairing.fused, sorted(pairing.fused_tied)
    stretches: list[list[int]] = []
    numbers = [each.segment for each in kernels]
    ranks = [[bisect_left(calls, member) for member in each.members] for each in kernels]
    found: dict[int, int] = {}
    path = _Path()
    for place, at in enumerate(free):
        # Units that follow one another without a library call in between.
        new_stretch = not stretches or stretches[-1][-1] != at - 1
        stretches += [[]] if new_stretch else []
        stretches[-1].append(at)
        near = _near(numbers, plain.segments[at], place / len(free))
        if not near:
            found |= path.best()
            path = _Path()
            continue
        fits: list[float] = []
        for k in near:
            score, (after, before) = likeness(plain.units[at], fused.units[kernels[k].members[0]]), bounds[place]
            # What it costs that library calls stand between the operator's place and the nearest of equal kernels.
            costs = (TOO_EARLY * max(after - r, 0) + TOO_LATE * max(r - before, 0) for r in ranks[k])
            fits.append(max(score + max(*costs, OUT_OF_ORDER), LEAST) if score else 0.0)
        path.extend(at, near, fits, new_stretch=new_stretch and place > 0)
    found |= path.best()
    return _with_known_size(pairing, stretches, kernels, found)


def _near(segments: list[int], segment: int, progress: float) -> range:
    """The kernels within reach, as numbers; of too many those at the same progress."""
    low, high = bisect_left(segments, segment - REACH), bisect_right(segments, segment + REACH)
    if high - low > MOST:
        middle = low + round(progress * (high - low)) if high - low == len(segments) else bisect_left(segments, segment)
        low = min(max(middle - MOST // 2, low), high - MOST)
        high = low + MOST
    return range(low, high)


class _Path:
    """The best way to every kernel that the last operator could be in, and how it went."""

    def __init__(self) -> None:
        self._steps: list[tuple[int, range, list[bool], list[int]]] = []
        self._near = range(0)
        self._scores: list[float] = []

    def extend(self, operator: int, near: range, fits: list[float], *, new_stretch: bool) -> None:
        """By an operator, how well it fits the kernels near it, and whether a library call stands before it."""
        forward, backward = (NEW_STRETCH, NEW_STRETCH) if new_stretch else (FORWARD, BACKWARD)
        before, behind = _running_best(self._scores), _running_best(self._scores[::-1])
        last = len(self._scores) - 1
        came_from: list[int] = []
        scores: list[float] = []
        for k, fit in zip(near, fits, strict=True):
            at = k - self._near.start
            # For the first operator there is no kernel before.
            ways = [] if self._scores else [(0.0, -1)]
            if 0 <= at <= last:
                ways.append((self._scores[at], at))
            if self._scores and at > 0:
                best = before[min(at - 1, last)]
                ways.append((self._scores[best] - forward, best))
            if at < last:
                best = last - behind[last - max(at + 1, 0)]
                ways.append((self._scores[best] - backward, best))
            score, way = max(ways)
            came_from.append(way + self._near.start)
            scores.append(score + (fit or LEFT_OUT))
        self._steps.append((operator, near, [fit > 0 for fit in fits], came_from))
        self._near, self._scores = near, scores

    def best(self) -> dict[int, int]:
        """For each operator that fits it the kernel."""
        found: dict[int, int] = {}
        k = self._near.start + max(range(len(self._scores)), key=self._scores.__getitem__, default=0)
        for operator, near, fits, came_from in reversed(self._steps):
            if fits[k - near.start]:
                found[operator] = k
            k = came_from[k - near.start]
        return found


def _running_best(scores: list[float]) -> list[int]:
    """Where the best of the first 1, 2, 3 ... stands."""

    def better(best: int, at: int) -> int:
        return at if scores[at] > scores[best] else best

    return list(accumulate(range(len(scores)), better))


def _with_known_size(
    pairing: Pairing, stretches: list[list[int]], kernels: Sequence[Kernels], found: dict[int, int]
) -> dict[int, int]:
    """Without stretches of operators whose largest tensors are none of the kernel's, nor parts of one: the name alone
    is too little. Sizes that are not known agree with any."""
    kept: dict[int, int] = {}
    for stretch in stretches:
        by_kernel: dict[int, list[int]] = defaultdict(list)
        for at in stretch:
            if at in found:
                by_kernel[found[at]].append(at)
        for k, some in by_kernel.items():
            others = pairing.fused.units[kernels[k].members[0]].sizes
            own = [pairing.plain.units[at].sizes for at in some]
            if any(not sizes or not others or _agreement(max(sizes), others) > 0 for sizes in own):
                kept |= dict.fromkeys(some, k)
    return kept
