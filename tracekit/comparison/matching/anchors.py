"""Which library call of A is which of B? Matrix products, attention and convolutions tie the two sides together."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tracekit.comparison.matching.library import is_helper
from tracekit.comparison.matching.subsequence import common_subsequence
from tracekit.comparison.matching.units import Unit

#: How many anchors apart the same call may stand on the two sides: compilers reorder within a block of a model.
NEAR = 48
#: With less than this share of sizes known on either side, anchors are told by their kind alone.
KNOWN_ENOUGH = 0.9


#: By which anchors are paired.
Key = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Tie:
    """Library calls that do the same work: positions among the units of either side. Several stand on one side where
    attention was taken apart, or put together. Not `exact`: their sizes differ or are not known, and they were
    paired by kernel and order."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    exact: bool = True


def tie_anchors(a: Sequence[Unit], b: Sequence[Unit]) -> tuple[Tie, ...]:
    """Pairs in order of A. Anchors without a partner are in none."""
    one, other = ([i for i, unit in enumerate(side) if unit.kind] for side in (a, b))
    by_size = _sizes_known(a, one) and _sizes_known(b, other)
    a_kinds, b_kinds = _kinds(a, one, by_size), _kinds(b, other, by_size)
    pairs = _pair(a_kinds, b_kinds) if by_size else _pair_by_names(a, b, one, other)
    defused = _taken_apart(a_kinds, b_kinds, pairs)
    fused = [(parts, j) for j, parts in _taken_apart(b_kinds, a_kinds, _turned(pairs))]
    a_taken = {i for i, _ in pairs} | {i for i, _ in defused} | {i for parts, _ in fused for i in parts}
    b_taken = {j for _, j in pairs} | {j for _, parts in defused for j in parts} | {j for _, j in fused}
    if by_size:
        pairs = _pair_by_place([key[:1] for key in a_kinds], [key[:1] for key in b_kinds], pairs, a_taken, b_taken)
    else:
        left = [i for i in range(len(one)) if i not in a_taken], [j for j in range(len(other)) if j not in b_taken]
        pairs = sorted([*pairs, *_moved(a_kinds, b_kinds, pairs, *left)])
    ties = [Tie((one[i],), (other[j],), by_size and a_kinds[i] == b_kinds[j]) for i, j in pairs]
    ties += [Tie((one[i],), tuple(other[j] for j in parts), by_size) for i, parts in defused]
    ties += [Tie(tuple(one[i] for i in parts), (other[j],), by_size) for parts, j in fused]
    return tuple(sorted(ties, key=lambda tie: tie.a))


def _pair_by_names(a: Sequence[Unit], b: Sequence[Unit], one: list[int], other: list[int]) -> list[tuple[int, int]]:
    """Where sizes are not known: calls of the same kernels with the same helpers, then of the same library kernels."""
    pairs = _pair([(a[i].signature.names,) for i in one], [(b[j].signature.names,) for j in other])
    a_taken, b_taken = {i for i, _ in pairs}, {j for _, j in pairs}
    left = [i for i in range(len(one)) if i not in a_taken], [j for j in range(len(other)) if j not in b_taken]
    return sorted([*pairs, *_moved([_main(a[i]) for i in one], [_main(b[j]) for j in other], pairs, *left)])


def _main(unit: Unit) -> Key:
    return unit.kind, tuple(name for name in unit.signature.names if not is_helper(name))


def _kinds(units: Sequence[Unit], anchors: list[int], by_size: bool) -> list[Key]:
    """Kind and sizes; the kind alone where sizes are not known."""
    return [(units[i].kind, units[i].size) if by_size else (units[i].kind,) for i in anchors]


def _sizes_known(units: Sequence[Unit], anchors: list[int]) -> bool:
    return sum(units[i].size is not None for i in anchors) >= KNOWN_ENOUGH * len(anchors)


def _pair(a: list[Key], b: list[Key]) -> list[tuple[int, int]]:
    """Anchors of one key, those that stand in the same order first, and then those that moved a little.

    Of several of one key the first of A is the first of B: they do not overtake each other.
    """
    pairs = common_subsequence(a, b)
    a_left, b_left = set(range(len(a))) - {i for i, _ in pairs}, set(range(len(b))) - {j for _, j in pairs}
    in_order = list(pairs)
    pairs += list(_moved(a, b, in_order, sorted(a_left), sorted(b_left)))
    by_key: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    for i, j in pairs:
        by_key[a[i]].append((i, j))
    a_places, b_places = _places(a), _places(b)
    return sorted(
        pair
        for key, some in by_key.items()
        for pair in (
            _as_they_come(a_places[key], b_places[key], in_order)
            or zip(sorted(i for i, _ in some), sorted(j for _, j in some), strict=True)
        )
    )


def _places(keys: list[Key]) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = defaultdict(list)
    for i, key in enumerate(keys):
        found[key].append(i)
    return found


def _as_they_come(a: list[int], b: list[int], pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Anchors of one key paired one by one; empty where their numbers differ, or it would take one far away.

    Where blocks repeat, the longest common order may pair the call of one block with that of the next.
    """
    if len(a) != len(b):
        return []
    near = all(abs(_place(i, pairs) - j) <= 2 * NEAR for i, j in zip(a, b, strict=True))
    return list(zip(a, b, strict=True)) if near else []


def _moved(
    a: list[Key],
    b: list[Key],
    pairs: list[tuple[int, int]],
    a_left: list[int],
    b_left: list[int],
) -> Iterable[tuple[int, int]]:
    """What is left and stands near on the two sides, measured by the pairs before it."""
    waiting: dict[Key, list[int]] = defaultdict(list)
    for j in reversed(b_left):
        waiting[b[j]].append(j)
    for i in a_left:
        others = waiting[a[i]]
        place = _place(i, pairs)
        while others and others[-1] < place - NEAR:
            others.pop()
        if others and others[-1] <= place + NEAR:
            yield i, others.pop()


def _place(i: int, pairs: list[tuple[int, int]]) -> int:
    """Where A's anchor would stand in B."""
    before = bisect_left(pairs, (i, -1))
    if before:
        return pairs[before - 1][1] + i - pairs[before - 1][0]
    return pairs[0][1] - pairs[0][0] + i if pairs else i


def _taken_apart(whole: list[Key], parts: list[Key], pairs: list[tuple[int, int]]) -> list[tuple[int, tuple[int, int]]]:
    """Attention of one side that the other does with two batched products: queries by keys, and what comes of them by
    values."""
    free = set(range(len(parts))) - {j for _, j in pairs}
    tied = {i for i, _ in pairs}
    waiting: dict[Key, list[int]] = defaultdict(list)
    for j in sorted(free, reverse=True):
        waiting[parts[j]].append(j)
    found: list[tuple[int, tuple[int, int]]] = []
    for i, key in enumerate(whole):
        if key[0] != "attention" or i in tied:
            continue
        place = _place(i, pairs)
        one, other = _products_of(key)
        first = _take(waiting[one], place)
        second = _take(waiting[other], first) if first is not None else None
        if first is not None and second is not None:
            found.append((i, (first, second)))
    return found


def _products_of(attention: Key) -> tuple[Key, Key]:
    """The keys of the two products that attention is made of; of any products where its sizes are not known."""
    size = attention[-1]
    if not isinstance(size, tuple):
        unknown = ("product", *attention[1:])
        return unknown, unknown
    heads, queries, keys, width = size
    return ("product", (heads, queries, keys, width)), ("product", (heads, queries, width, keys))


def _take(others: list[int], place: int) -> int | None:
    """The next one that is near."""
    while others and others[-1] < place - NEAR:
        others.pop()
    return others.pop() if others and others[-1] <= place + NEAR else None


def _turned(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted((j, i) for i, j in pairs)


def _pair_by_place(
    a: list[Key], b: list[Key], pairs: list[tuple[int, int]], a_taken: set[int], b_taken: set[int]
) -> list[tuple[int, int]]:
    """Between two pairs that stand next to each other in both orders, anchors of one kind and number are the same calls
    with other sizes (padded, say)."""
    found = list(pairs)
    edges = [(-1, -1), *pairs, (len(a), len(b))]
    for (i, j), (k, m) in pairwise(edges):
        left = [each for each in range(i + 1, k) if each not in a_taken]
        right = [each for each in range(j + 1, m) if each not in b_taken]
        if 0 < len(left) == len(right) <= NEAR and [a[p] for p in left] == [b[q] for q in right]:
            found += zip(left, right, strict=True)
    return sorted(found)
