"""What is known so far of two sides that are being put together, and what comes of it: cells.

At first that is which library call of A is which of B: matrix products, attention and convolutions tie the two sides
together, and cut both into segments.
"""

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Generic, Literal, TypeVar

from msgspec import Struct, field

from tracekit.comparison.matching.common_subsequence import common_subsequence
from tracekit.comparison.matching.operators import Kind, is_helper, kind_of_operator
from tracekit.comparison.matching.units import Unit
from tracekit.model.comparison import MatchedBy

Thing = TypeVar("Thing", bound=Hashable)
#: A side, and a unit of it.
Node = tuple[Literal["plain", "fused"], int]

#: How many anchors further on the same call may stand on the other side: compilers reorder within a block of a model.
NEAR = 48
#: With less than this share of sizes known on either side, anchors are told by their kind alone.
KNOWN_ENOUGH = 0.9

#: By which anchors are paired: kind and size, say.
Key = tuple[Hashable, ...]
#: Such a key, and the kernels of the anchor.
Named = tuple[Key, Key]
#: Positions among the anchors of A and of B.
Pairs = list[tuple[int, int]]


class Cell(Struct, frozen=True):
    """The activities of A and of B that do one piece of work: positions in the activities of the two sequences.

    Cells of one alignment are a partition: every position of either side is in exactly one. `where` names source lines
    or module paths, where they are known. `exact` is False where it was found by elimination, not one by one: what was
    left of both sides in one place, or what names alone tell.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    how: MatchedBy
    where: tuple[str, ...] = ()
    exact: bool = True


def check_partition(cells: tuple[Cell, ...], a_count: int, b_count: int) -> None:
    """Raises AssertionError where a position is in no cell or in two: no figure would add up."""
    for side, count, positions in (
        ("A", a_count, sorted(each for cell in cells for each in cell.a)),
        ("B", b_count, sorted(each for cell in cells for each in cell.b)),
    ):
        if positions != list(range(count)):
            raise AssertionError(f"the cells of {side} hold {len(positions)} positions, not each of {count} once")


class UnionFind(Generic[Thing]):
    """A partition that grows coarser: each thing knows another one of its group."""

    def __init__(self) -> None:
        self._parent: dict[Thing, Thing] = {}

    def join(self, things: Sequence[Thing]) -> None:
        """One group of all the groups these are in; a thing that is not known yet is a group of its own first."""
        for each in things:
            self._parent[self._root(each)] = self._root(things[0])

    def groups(self) -> list[list[Thing]]:
        """Each group's things, in the order in which they were first named."""
        found: dict[Thing, list[Thing]] = {}
        for each in self._parent:
            found.setdefault(self._root(each), []).append(each)
        return list(found.values())

    def _root(self, thing: Thing) -> Thing:
        while (parent := self._parent.setdefault(thing, thing)) != thing:
            self._parent[thing] = thing = self._parent[parent]
        return thing


class Side(Struct, frozen=True):
    """The units of one side, the segment of each, and which of them have found their place."""

    units: Sequence[Unit]
    segments: Sequence[int]
    done: set[int] = field(default_factory=set)

    def left(self) -> list[int]:
        return [at for at in range(len(self.units)) if at not in self.done]


class Pairing:
    """Units of two sides, and which belong together. Operators of the plain side are put to kernels of the fused side.
    `ties` are the library calls that do the same on both sides."""

    def __init__(self, plain: Sequence[Unit], fused: Sequence[Unit], *, by_names: bool) -> None:
        self.ties, self.by_names = tie_anchors(plain, fused), by_names
        plain_segments, fused_segments = cut_into_segments(self.ties, len(plain), len(fused))
        self.plain, self.fused = Side(plain, plain_segments), Side(fused, fused_segments)
        self.fused_tied = {j for tie in self.ties for j in tie.b}
        self._joined: UnionFind[Node] = UnionFind()
        self._inexact: set[Node] = set()
        for tie in self.ties:
            self.join(tie.a, tie.b, exact=tie.exact)

    def join(self, plain: Iterable[int], fused: Iterable[int], *, exact: bool = True) -> None:
        """These belong together, with all that belonged to one of them. Not `exact`: told by elimination."""
        plain, fused = list(plain), list(fused)
        nodes: list[Node] = [*(("plain", i) for i in plain), *(("fused", j) for j in fused)]
        self._joined.join(nodes)
        self.plain.done.update(plain)
        self.fused.done.update(fused)
        if not exact:
            self._inexact.update(nodes)

    def groups(self) -> list[tuple[list[int], list[int], bool]]:
        """Units of either side that belong together, and whether each was told one by one."""
        return [
            (
                [at for side, at in nodes if side == "plain"],
                [at for side, at in nodes if side == "fused"],
                self._inexact.isdisjoint(nodes),
            )
            for nodes in self._joined.groups()
        ]


class Tie(Struct, frozen=True):
    """Library calls that do the same work: positions among the units of either side. Several stand on one side where
    attention was decomposed, or composed. Not `exact`: their sizes differ or are not known, or others of their size
    could be meant, and they were paired by kernel and order."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    exact: bool = True


def tie_anchors(a: Sequence[Unit], b: Sequence[Unit]) -> tuple[Tie, ...]:
    """Pairs in order of A. Anchors without a partner are in none."""
    one, other = ([i for i, unit in enumerate(side) if unit.kind] for side in (a, b))
    calls = [a[i] for i in one], [b[j] for j in other]
    by_size = all(sum(unit.size is not None for unit in side) >= KNOWN_ENOUGH * len(side) for side in calls)
    a_keys, b_keys = ([(unit.kind, unit.size) if by_size else (unit.kind,) for unit in side] for side in calls)
    a_kernels, b_kernels = (
        [(unit.kind, *(name for name in unit.signature.names if not is_helper(name))) for unit in side]
        for side in calls
    )
    sure: set[tuple[int, int]] = set()
    if by_size:
        a_named, b_named = ([*zip(*each, strict=True)] for each in ((a_keys, a_kernels), (b_keys, b_kernels)))
        pairs = _names_first(_pair(a_keys, b_keys), a_named, b_named)
        sure = _surely_paired(pairs, a_named, b_named)
    else:
        # Calls of the same kernels with the same helpers, then of the same library kernels.
        pairs = _pair(*([(unit.signature.names,) for unit in side] for side in calls))
        pairs = sorted((*pairs, *_moved(a_kernels, b_kernels, pairs)))
    decomposed = _decomposed_attention(a_keys, b_keys, pairs)
    composed = [(parts, j) for j, parts in _decomposed_attention(b_keys, a_keys, sorted((j, i) for i, j in pairs))]
    a_taken = {i for i, _ in (*pairs, *decomposed)} | {i for parts, _ in composed for i in parts}
    b_taken = {j for _, j in (*pairs, *composed)} | {j for _, parts in decomposed for j in parts}
    if by_size:
        # Between two pairs that stand next to each other in both orders, anchors of one kind and number are the same
        # calls with other sizes (padded, say).
        for (i, j), (k, m) in pairwise([(-1, -1), *pairs, (len(one), len(other))]):
            left = [each for each in range(i + 1, k) if each not in a_taken]
            right = [each for each in range(j + 1, m) if each not in b_taken]
            if 0 < len(left) == len(right) <= NEAR and [a_keys[p][0] for p in left] == [b_keys[q][0] for q in right]:
                pairs = [*pairs, *zip(left, right, strict=True)]
    else:
        # By what the kernels do; then by what the operators ask for that one side knows: products do convolutions too.
        pairs = sorted((*pairs, *_moved(a_keys, b_keys, pairs, (a_taken, b_taken))))
        a_asked, b_asked = ([(_asked_for(unit),) for unit in side] for side in calls)
        pairs = [*pairs, *_moved(a_asked, b_asked, pairs, (a_taken, b_taken))]
    ties = [Tie((one[i],), (other[j],), (i, j) in sure) for i, j in sorted(pairs)]
    ties += [Tie((one[i],), tuple(other[j] for j in parts), by_size) for i, parts in decomposed]
    ties += [Tie(tuple(one[i] for i in parts), (other[j],), by_size) for parts, j in composed]
    return tuple(sorted(ties, key=lambda tie: tie.a))


def _asked_for(unit: Unit) -> Kind | None:
    """What the operators around the call ask for; what its kernel does where they are not known."""
    return next(filter(None, map(kind_of_operator, sorted(unit.words))), unit.kind)


def _pair(a: Sequence[Key], b: Sequence[Key]) -> Pairs:
    """Anchors of one key, those that stand in the same order first, and then those that moved a little.

    Of several of one key the first of A is the first of B: they do not overtake each other.
    """
    in_order = common_subsequence(a, b)
    by_key: dict[Key, Pairs] = defaultdict(list)
    for i, j in (*in_order, *_moved(a, b, in_order)):
        by_key[a[i]].append((i, j))
    a_places, b_places = _places(a), _places(b)
    found: Pairs = []
    for key, some in by_key.items():
        # Where blocks repeat, the longest common order may pair the call of one block with that of the next.
        every = list(zip(a_places[key], b_places[key], strict=False))
        as_many = len(a_places[key]) == len(b_places[key])
        if as_many and all(abs(_expected_place(i, in_order) - j) <= 2 * NEAR for i, j in every):
            found += every
        else:
            found += zip(sorted(i for i, _ in some), sorted(j for _, j in some), strict=True)
    return sorted(found)


def _names_first(pairs: Pairs, a: Sequence[Named], b: Sequence[Named]) -> Pairs:
    """The pairs of anchors of one key, those of equal kernels first: what changed places, or stands beside one more of
    its size, is paired with the nearest one of its kernels."""
    equal = [(i, j) for i, j in pairs if a[i] == b[j]]
    waiting = _places(b, {j for _, j in equal})
    paired, nearer = {i for i, _ in equal}, []
    for i in (i for i in range(len(a)) if i not in paired and waiting.get(a[i])):
        place = _expected_place(i, pairs)
        j = min(waiting[a[i]], key=lambda each: abs(each - place))
        if abs(j - place) <= NEAR:
            waiting[a[i]].remove(j)
            nearer.append((i, j))
    if not nearer:
        return pairs
    by_name: dict[Named, Pairs] = defaultdict(list)
    for i, j in (*equal, *nearer):
        by_name[a[i]].append((i, j))
    # Of several of one name, too, the first of A is the first of B.
    found = [pair for some in by_name.values() for pair in zip(*map(sorted, zip(*some, strict=True)), strict=True)]
    a_taken, b_taken = {i for i, _ in found}, {j for _, j in found}
    found += [(i, j) for i, j in pairs if i not in a_taken and j not in b_taken]
    found.sort()
    # Those that had a partner which is another's now.
    return sorted((*found, *_moved([key for key, _ in a], [key for key, _ in b], found)))


def _surely_paired(pairs: Pairs, a: Sequence[Named], b: Sequence[Named]) -> set[tuple[int, int]]:
    """The pairs of one key and equal kernels; and those of other kernels where all that is left of the key has one name
    on each side and a partner that stands in the same order. Else another one of the size could be meant, or the one
    is gone and the other new."""
    equal = {(i, j) for i, j in pairs if a[i] == b[j]}
    kernels: dict[Key, tuple[Counter[Key], Counter[Key]]] = defaultdict(lambda: (Counter(), Counter()))
    for side, (anchors, paired) in enumerate(((a, {i for i, _ in equal}), (b, {j for _, j in equal}))):
        for at, (key, names) in enumerate(anchors):
            if at not in paired:
                kernels[key][side][names] += 1
    places = [j for _, j in pairs]
    in_order = {at for at, _ in common_subsequence(places, sorted(places))}
    for at, (i, j) in enumerate(pairs):
        some, others = kernels[a[i][0]]
        alike = len(some) == len(others) == 1 and some.total() == others.total()
        if at in in_order and a[i][0] == b[j][0] and alike:
            equal.add((i, j))
    return equal


def _places(keys: Sequence[Key], taken: Collection[int] = ()) -> dict[Key, deque[int]]:
    """Where each key stands, in order, but for what is taken."""
    found: dict[Key, deque[int]] = defaultdict(deque)
    for i, key in enumerate(keys):
        if i not in taken:
            found[key].append(i)
    return found


def _moved(
    a: Sequence[Key], b: Sequence[Key], pairs: Pairs, also_taken: tuple[set[int], set[int]] = (set(), set())
) -> Pairs:
    """What is not taken and stands near on the two sides, measured by the pairs before it."""
    a_taken, b_taken = ({pair[side] for pair in pairs} | also_taken[side] for side in (0, 1))
    waiting = _places(b, b_taken)
    nearest = ((i, _take_near(waiting[key], _expected_place(i, pairs))) for i, key in enumerate(a) if i not in a_taken)
    return [(i, near) for i, near in nearest if near is not None]


def _take_near(waiting: deque[int], place: int) -> int | None:
    """Takes the next one that is near the place; those too far before it are dropped."""
    while waiting and waiting[0] < place - NEAR:
        waiting.popleft()
    return waiting.popleft() if waiting and waiting[0] <= place + NEAR else None


def _expected_place(i: int, pairs: Pairs) -> int:
    """Where A's anchor would stand in B, by the pair before it."""
    before = bisect_left(pairs, (i, -1))
    if before:
        return pairs[before - 1][1] + i - pairs[before - 1][0]
    return pairs[0][1] - pairs[0][0] + i if pairs else i


def _decomposed_attention(
    whole: Sequence[Key], parts: Sequence[Key], pairs: Pairs
) -> list[tuple[int, tuple[int, int]]]:
    """Attention of one side that the other does with two batched products: queries by keys, and what comes of them by
    values."""
    tied, waiting = {i for i, _ in pairs}, _places(parts, {j for _, j in pairs})
    found: list[tuple[int, tuple[int, int]]] = []
    for i, key in enumerate(whole):
        if key[0] != "attention" or i in tied:
            continue
        by_keys: Key = ("product", *key[1:])
        by_values = by_keys
        if isinstance(size := key[-1], tuple):
            heads, queries, keys, width = size
            by_keys, by_values = ("product", (heads, queries, keys, width)), ("product", (heads, queries, width, keys))
        first = _take_near(waiting[by_keys], _expected_place(i, pairs))
        second = _take_near(waiting[by_values], first) if first is not None else None
        if first is not None and second is not None:
            found.append((i, (first, second)))
    return found


def cut_into_segments(ties: Sequence[Tie], a_count: int, b_count: int) -> tuple[list[int], list[int]]:
    """The segment of every unit of A and of B: both sides are cut wherever all library calls before the cut are tied to
    calls before it. Odd ones hold library calls, even ones what stands between them. Ties are in order of A."""
    # For each tie the first unit of A and of B in all ties behind it.
    behind = [(a_count, b_count)]
    for tie in reversed(ties[1:]):
        behind.append((min(behind[-1][0], *tie.a), min(behind[-1][1], *tie.b)))
    behind.reverse()
    # First and last unit of each side in ties that cross each other.
    a_blocks: list[tuple[int, int]] = []
    b_blocks: list[tuple[int, int]] = []
    begun, a_high, b_high = 0, -1, -1
    for at, tie in enumerate(ties):
        a_high, b_high = max(a_high, *tie.a), max(b_high, *tie.b)
        if a_high < behind[at][0] and b_high < behind[at][1]:
            a_blocks.append((min(i for each in ties[begun : at + 1] for i in each.a), a_high))
            b_blocks.append((min(j for each in ties[begun : at + 1] for j in each.b), b_high))
            begun = at + 1
    return _numbers(a_blocks, a_count), _numbers(b_blocks, b_count)


def _numbers(blocks: list[tuple[int, int]], count: int) -> list[int]:
    last = [high for _, high in blocks]
    found = []
    for unit in range(count):
        at = bisect_left(last, unit)
        found.append(2 * at + (at < len(blocks) and unit >= blocks[at][0]))
    return found
