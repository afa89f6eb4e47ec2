"""Operators to the fused kernels that do their work."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tracekit.comparison.matching.assigning import MOST, REACH, Bounds, Kernels, Side, assign, list_kernels
from tracekit.comparison.matching.likeness import likeness, spread_words
from tracekit.comparison.matching.pairing import Pairing

#: How many kernels further one may take an operator from.
NEIGHBOURS = 8


def join_fused(pairing: Pairing) -> None:
    """What the kernels' names list, as sizes and order have it."""
    free = [i for i in pairing.plain_left() if pairing.plain[i].kind is None]
    # A product from a template of Inductor's is tied, and may do more than the product.
    candidates = [
        j
        for j, unit in enumerate(pairing.fused)
        if unit.fused and (j not in pairing.fused_done or unit.kind is not None)
    ]
    plain = Side(pairing.plain, pairing.plain_segments, free)
    fused = Side(pairing.fused, pairing.fused_segments, candidates)
    kernels = list_kernels(fused)
    found = assign(plain, fused, kernels, _bounds(pairing, free), sorted(pairing.fused_tied))
    assigned: dict[int, list[int]] = defaultdict(list)
    for i, k in sorted(found.items()):
        assigned[k].append(i)
    _share_out(pairing, kernels, assigned)
    for k, some in assigned.items():
        for operators, members in _dealt(pairing, some, kernels[k].members):
            pairing.join(operators, members)


def _bounds(pairing: Pairing, free: Sequence[int]) -> list[Bounds]:
    """Where on the fused side each free unit would stand if the library calls around it were all that counted:
    behind the call before it, and before the next one that stands behind that."""
    partner = {i: tie.b for tie in pairing.ties for i in tie.a}
    tied = sorted(partner)
    ranks = sorted(pairing.fused_tied)
    found = []
    for i in free:
        at = bisect_left(tied, i)
        before = max(partner[tied[at - 1]]) if at else -1
        behind = (min(partner[each]) for each in tied[at : at + MOST])
        after = next((each for each in behind if each > before), len(pairing.fused))
        found.append(Bounds(bisect_left(ranks, before + 1), bisect_left(ranks, after)))
    return found


def _share_out(pairing: Pairing, kernels: Sequence[Kernels], assigned: dict[int, list[int]]) -> None:
    """A kernel that got nothing takes one operator for each time it ran from a kernel nearby, if it is named and
    sized as well by it: the last ones of a kernel before it, the first ones of a kernel behind it."""
    for k, each in enumerate(kernels):
        if assigned.get(k):
            continue
        near = [n for n in range(max(k - NEIGHBOURS, 0), min(k + NEIGHBOURS + 1, len(kernels))) if assigned.get(n)]
        spare = {n: _spare(pairing, assigned[n], kernels[n], each) for n in near}
        best = max(near, key=lambda n: (_likeness(pairing, spare[n], each), -abs(n - k)), default=None)
        if best is not None and spare[best]:
            assigned[k] = spare[best]
            assigned[best] = [i for i in assigned[best] if i not in spare[best]]


def _likeness(pairing: Pairing, some: list[int], kernels: Kernels) -> float:
    return max((likeness(pairing.plain[i], pairing.fused[kernels.members[0]]) for i in some), default=0.0)


def _spare(pairing: Pairing, some: list[int], owner: Kernels, other: Kernels) -> list[int]:
    """What `other` could do as well, and `owner` has one too many of to do the same each time it runs."""
    if abs(owner.segment - other.segment) > REACH:
        return []
    one, another = pairing.fused[owner.members[0]], pairing.fused[other.members[0]]
    by_kind: dict[object, list[int]] = defaultdict(list)
    for i in some:
        unit = pairing.plain[i]
        shared = not unit.sizes or not another.sizes or not unit.sizes.isdisjoint(another.sizes)
        if shared and likeness(unit, another) and not spread_words(one.fused or "") & unit.words:
            by_kind[unit.signature].append(i)
    wanted = len(other.members)
    for same in by_kind.values():
        over = len(same) % len(owner.members) if len(owner.members) > 1 else len(same) - 1
        if over >= wanted:
            return same[-wanted:] if other.members > owner.members else same[:wanted]
    return []


def _dealt(pairing: Pairing, some: list[int], members: tuple[int, ...]) -> Iterable[tuple[list[int], list[int]]]:
    """The operators dealt to equal kernels, in order, where there are as many of each for every one of them."""
    by_kind: dict[object, list[int]] = defaultdict(list)
    for i in some:
        by_kind[pairing.plain[i].signature].append(i)
    count = len(members)
    if count > 1 and all(len(same) % count == 0 for same in by_kind.values()):
        for at, member in enumerate(members):
            dealt = [i for same in by_kind.values() for i in _slice(same, at, count)]
            yield sorted(dealt), [member]
    elif some:
        yield some, list(members)


def _slice(things: list[int], at: int, count: int) -> list[int]:
    """One of `count` equal parts."""
    size = len(things) // count
    return things[at * size : (at + 1) * size]
