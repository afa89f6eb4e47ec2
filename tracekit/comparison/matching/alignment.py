"""Two sequences to cells: library calls first, then what is alike between them, then what was fused, then the rest. One
kind of evidence after the other, the surest first, joins what is left.

What has found no partner is not called gone for want of a partner alone. It takes evidence: everything around it is
matched, and on the other side nothing is left that could do its work. docs/kinds.md has the rule in words.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile

from tracekit.comparison.matching import fusion
from tracekit.comparison.matching.common_subsequence import common_subsequence
from tracekit.comparison.matching.fusion import MOST, REACH, Kernels, likeness, named_by, spread_words
from tracekit.comparison.matching.operators import OPERATORS_OF_KIND, decomposed_in
from tracekit.comparison.matching.pairing import Cell, Pairing, Side, check_partition
from tracekit.comparison.matching.units import Unit, cut_into_units
from tracekit.model import sequence as work
from tracekit.model.comparison import MatchedBy

#: How many kernels further one may take an operator from.
NEIGHBOURS = 8
#: What is left of both sides in one place is one cell up to so many units; more of them is no place.
FEW = 40


def align(a: work.Sequence, b: work.Sequence) -> tuple[Cell, ...]:
    """Which activities of A and of B do the same work: every position of either side in exactly one cell, in order.

    Library calls (matrix products, attention, convolutions) with the same shapes tie the sides together. What stands
    between two of them is divided as finely as operators and the names of Triton kernels prove. Where a side knows the
    names of kernels alone, cells are matched by `names`, and none is exact.
    """
    by_names = "none" in (a.operators, b.operators)
    one, other = (cut_into_units(side, by_kernel=by_names) for side in (a, b))
    # Operators are assigned to fused kernels; where A is the compiled side, from B to A.
    a_fused, b_fused = (sum(unit.fused is not None for unit in side) for side in (one, other))
    turned = a_fused > b_fused
    pairing = Pairing(other, one, by_names=by_names) if turned else Pairing(one, other, by_names=by_names)
    for join in (join_same, join_fused, join_helpers, join_own_work, join_taken_over, join_places, join_beside_calls):
        join(pairing)
    gone, new = _find_unmatched(pairing)
    # Units of either side, whether it is known what they are to each other, and whether one by one.
    groups = [(some, others, bool(some and others), exact and not by_names) for some, others, exact in pairing.groups()]
    groups += [([i], [], i in gone, True) for i in pairing.plain.left()]
    groups += [([], [j], j in new, True) for j in pairing.fused.left()]
    cells = []
    for some, others, known, exact in groups:
        a_units, b_units = (others, some) if turned else (some, others)
        a_at = tuple(sorted(at for each in a_units for at in one[each].positions))
        b_at = tuple(sorted(at for each in b_units for at in other[each].positions))
        how: MatchedBy = "unmatched" if not known else "names" if by_names else "anchors"
        cells.append(Cell(a_at, b_at, how, exact=exact))
    found = tuple(sorted(cells, key=lambda cell: (cell.a or cell.b, cell.b)))
    check_partition(found, len(a.activities), len(b.activities))
    return found


def _find_unmatched(pairing: Pairing) -> tuple[set[int], set[int]]:
    """Units of each side, of what is left once all else is joined, for which it is certain that the other side has no
    counterpart."""
    if pairing.by_names:
        # Names of kernels tell too little to say that nothing does the same.
        return set(), set()
    # What has a partner, and not by elimination; by segment what library calls do that their partners do not.
    plain_matched: set[int] = set()
    fused_matched: set[int] = set()
    plain_epilogues: dict[int, set[str]] = defaultdict(set)
    fused_epilogues: dict[int, set[str]] = defaultdict(set)
    for some, others, exact in pairing.groups():
        if some and others and exact:
            plain_matched.update(some)
            fused_matched.update(others)
    for tie in pairing.ties:
        calls, partners = [pairing.plain.units[i] for i in tie.a], [pairing.fused.units[j] for j in tie.b]
        names, others_names = (
            [(unit.signature.names, [name for name, _ in unit.signature.operators]) for unit in units]
            for units in (calls, partners)
        )
        if len(calls) > 1 or names != others_names:
            # A library call that is another one on the other side: nobody knows what else that does.
            plain_matched.difference_update(tie.a)
            fused_matched.difference_update(tie.b)
        one, other = ({word for unit in units for word in unit.epilogue} for units in (calls, partners))
        segment = pairing.plain.segments[tie.a[0]]
        plain_epilogues[segment] |= one - other
        fused_epilogues[segment] |= other - one
    return (
        _without_counterpart(pairing.plain, pairing.fused, plain_matched, fused_epilogues),
        _without_counterpart(pairing.fused, pairing.plain, fused_matched, plain_epilogues),
    )


def _without_counterpart(own: Side, other: Side, matched: set[int], epilogues: dict[int, set[str]]) -> set[int]:
    """`epilogues` are what library calls of the other side do that their partners do not."""
    left, certain = other.left(), set()
    for at in own.left():
        unit, segment = own.units[at], own.segments[at]
        near = range(segment - REACH, segment + REACH + 1)
        # Work that is known, is no library call, and was taken over by none of the other side nearby.
        known = unit.kind is None and (unit.words or unit.fused)
        if not known or any(unit.words & epilogues.get(each, set()) for each in near):
            continue
        # What stands next to it is matched; where the step begins or ends, on the one side that there is.
        before = next((each for each in range(at - 1, -1, -1) if each in own.done), None)
        behind = next((each for each in range(at + 1, len(own.units)) if each in own.done), None)
        beside = {each for each in (before, behind) if each is not None}
        if not beside or not beside <= matched:
            continue
        # Nothing is left of the other side within reach, and no fused kernel there names what the unit does.
        low, high = bisect_left(other.segments, near.start), bisect_left(other.segments, near.stop)
        pairs = ((each, unit) if unit.fused and not each.fused else (unit, each) for each in other.units[low:high])
        named = (fused.fused and fused.kind is None and likeness(plain, fused) > 0 for plain, fused in pairs)
        if bisect_left(left, low) == bisect_left(left, high) and not any(named):
            certain.add(at)
    return certain


def join_same(pairing: Pairing) -> None:
    """Units of one segment that are the same on both sides: by kernel and operator, then by operator alone, with its
    inputs' shapes."""

    def by_kernels(unit: Unit) -> object:
        return unit.signature.names if pairing.by_names else unit.signature

    def by_operators(unit: Unit) -> object:
        # None where nothing is known.
        return None if unit.fused else unit.signature.operators or None

    for key_of in (by_kernels, by_operators):
        for left, right in _left_in_segments(pairing):
            left = [i for i in left if pairing.plain.units[i].kind is None]
            right = [j for j in right if pairing.fused.units[j].kind is None]
            keys = [key_of(pairing.plain.units[i]) for i in left]
            for i, j in common_subsequence(keys, [key_of(pairing.fused.units[j]) for j in right]):
                if keys[i] is not None:
                    pairing.join([left[i]], [right[j]])


def _left_in_segments(pairing: Pairing) -> list[tuple[list[int], list[int]]]:
    """What is left of the plain and of the fused side, segment by segment."""
    found: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for number, side in enumerate((pairing.plain, pairing.fused)):
        for at in side.left():
            found[side.segments[at]][number].append(at)
    return list(found.values())


def join_fused(pairing: Pairing) -> None:
    """Operators with the kernels whose names list them, as sizes and order have it."""
    free = [i for i in pairing.plain.left() if pairing.plain.units[i].kind is None]
    partner = {i: tie.b for tie in pairing.ties for i in tie.a}
    tied, ranks = sorted(partner), sorted(pairing.fused_tied)
    # Of each free unit: behind the call before it, and before the next one that stands behind that.
    bounds: list[fusion.Bounds] = []
    for i in free:
        at = bisect_left(tied, i)
        before = max(partner[tied[at - 1]]) if at else -1
        behind = (min(partner[each]) for each in tied[at : at + MOST])
        after = next((each for each in behind if each > before), len(pairing.fused.units))
        bounds.append((bisect_left(ranks, before + 1), bisect_left(ranks, after)))
    kernels = fusion.list_kernels(pairing.fused)
    assigned: dict[int, list[int]] = defaultdict(list)
    for i, k in sorted(fusion.assign(pairing, free, kernels, bounds).items()):
        assigned[k].append(i)
    _share_out(pairing, kernels, assigned)
    for k, some in assigned.items():
        members = kernels[k].members
        by_signature: dict[object, list[int]] = defaultdict(list)
        for i in some:
            by_signature[pairing.plain.units[i].signature].append(i)
        # Where there are as many of each operator for every one of the equal kernels, they are dealt in order.
        if some and all(len(same) % len(members) == 0 for same in by_signature.values()):
            for at, member in enumerate(members):
                parts = ((same, len(same) // len(members)) for same in by_signature.values())
                pairing.join(sorted(i for same, size in parts for i in same[at * size : (at + 1) * size]), [member])
        elif some:
            pairing.join(some, members)


def _share_out(pairing: Pairing, kernels: Sequence[Kernels], assigned: dict[int, list[int]]) -> None:
    """A kernel that got nothing takes one operator for each time it ran from a kernel nearby, if it is named and
    sized as well by it: the last ones of a kernel before it, the first ones of a kernel behind it."""
    for k, each in enumerate(kernels):
        if assigned.get(k):
            continue
        kernel = pairing.fused.units[each.members[0]]
        near = range(max(k - NEIGHBOURS, 0), min(k + NEIGHBOURS + 1, len(kernels)))
        spare = {n: some for n in near if (some := _spare(pairing, assigned.get(n, []), kernels[n], each))}
        if spare:
            alike = {n: max(likeness(pairing.plain.units[i], kernel) for i in some) for n, some in spare.items()}
            best = max(spare, key=lambda n: (alike[n], -abs(n - k)))
            assigned[k] = spare[best]
            assigned[best] = [i for i in assigned[best] if i not in spare[best]]


def _spare(pairing: Pairing, some: list[int], owner: Kernels, other: Kernels) -> list[int]:
    """What `other` could do as well, and `owner` has one too many of to do the same each time it runs."""
    if abs(owner.segment - other.segment) > REACH:
        return []
    one, another = pairing.fused.units[owner.members[0]], pairing.fused.units[other.members[0]]
    by_signature: dict[object, list[int]] = defaultdict(list)
    for i in some:
        unit = pairing.plain.units[i]
        could_do_it = _may_share_size(unit, another) and likeness(unit, another)
        if could_do_it and not spread_words(one.fused or "") & unit.words:
            by_signature[unit.signature].append(i)
    wanted = len(other.members)
    for same in by_signature.values():
        over = len(same) % len(owner.members) if len(owner.members) > 1 else len(same) - 1
        if over >= wanted:
            return same[-wanted:] if other.members > owner.members else same[:wanted]
    return []


def _may_share_size(one: Unit, other: Unit) -> bool:
    return not one.sizes or not other.sizes or not one.sizes.isdisjoint(other.sizes)


def join_helpers(pairing: Pairing) -> None:
    """Kernels that got no operator but belong to one that did: part of a norm, of attention, of a product."""
    left = [j for j in pairing.fused.left() if pairing.fused.units[j].fused]
    while left:
        decomposed = {each for tie in pairing.ties if len(tie.b) > 1 for each in tie.b}
        found = {j: helped for j in left if (helped := _helped_by(pairing, j, decomposed)) is not None}
        for j, (other, exact) in found.items():
            pairing.join([], [j, other], exact=exact)
        # Of several that do a row together the next stands beside one that is placed now.
        left = [j for j in left if j not in found] if found else []


def _helped_by(pairing: Pairing, j: int, decomposed: set[int]) -> tuple[int, bool] | None:
    """The unit whose work kernel j has a part in, of those within reach, those behind it first, and whether that is
    sure; None where nothing says so."""
    unit, segments, listed = pairing.fused.units[j], pairing.fused.segments, pairing.fused.units[j].fused or ""
    around = [
        other
        for way in (range(j + 1, len(pairing.fused.units))[:MOST], range(j - 1, -1, -1)[:MOST])
        for other in takewhile(lambda each: abs(segments[each] - segments[j]) <= REACH, way)
        if other in pairing.fused.done and _may_share_size(unit, pairing.fused.units[other])
    ]
    # The kernel that does the rest of what this one does of a row, and reads what it wrote or wrote what it reads: in
    # the same place, else within reach.
    words = spread_words(listed)
    for other in sorted(around, key=lambda each: segments[each] != segments[j]):
        if words & spread_words(pairing.fused.units[other].fused or ""):
            return other, True
    # A product of attention that was decomposed, which this kernel prepares or finishes.
    if (part := next((other for other in around if other in decomposed), None)) is not None:
        return part, True
    # The library call whose operator the kernel's name lists: it lays out inputs, or adds what the call no longer does.
    tied = (other for other in around if other in pairing.fused_tied)
    if found := [(other, True) for other in tied if named_by(pairing.fused.units[other].words, listed)]:
        return found[0]
    # The kernel that does the same decomposed operators, of which this one may do a part, or some.
    operators = decomposed_in(listed)
    same = (other for other in around if operators & decomposed_in(pairing.fused.units[other].fused or ""))
    return next(((other, False) for other in same), None)


def join_own_work(pairing: Pairing) -> None:
    """Element-wise work of a library call that nobody else does stays with the call."""
    for side in (pairing.plain, pairing.fused):
        for at in side.left():
            beside = (each for each in (at - 1, at + 1) if side.units[at].own and 0 <= each < len(side.units))
            if calls := [each for each in beside if side.units[each].call == side.units[at].call]:
                both = [at, calls[0]]
                pairing.join(*((both, []) if side is pairing.plain else ([], both)))


def join_taken_over(pairing: Pairing) -> None:
    """What stands right behind a library call and has no partner, where the call's partner does that work and the call
    does not: `mm` and `add` that became one `addmm`. Each kind of work once; exact where it has the size of the product
    and nothing else could be meant."""
    if pairing.by_names:
        return
    plain_left, fused_left = set(pairing.plain.left()), set(pairing.fused.left())
    for tie in pairing.ties:
        if len(tie.a) == len(tie.b) == 1:
            one, other = pairing.plain.units[tie.a[0]].epilogue, pairing.fused.units[tie.b[0]].epilogue
            for at, exact in _taken_over(pairing.plain.units, tie.a[0], plain_left, other - one):
                pairing.join([at, *tie.a], tie.b, exact=exact)
            for at, exact in _taken_over(pairing.fused.units, tie.b[0], fused_left, one - other):
                pairing.join(tie.a, [at, *tie.b], exact=exact)


def _taken_over(units: Sequence[Unit], at: int, left: set[int], words: frozenset[str]) -> Iterator[tuple[int, bool]]:
    """Of what is left behind the call the first unit for each of the words, and whether that is sure."""
    # How many elements the product has.
    size = math.prod(call.size[:3]) if (call := units[at]).kind == "product" and call.size else None
    # The operators that each unit of a size that fits is; of a Triton kernel all that it does.
    does: dict[int, frozenset[str]] = {}
    for each in takewhile(left.__contains__, range(at + 1, len(units))) if words else ():
        unit = units[each]
        if unit.kind is None and not unit.copies and (size is None or not unit.sizes or size in unit.sizes):
            does[each] = unit.words if unit.fused is None else frozenset([unit.fused.strip("_")])
    for word in sorted(words):
        if fitting := [each for each in does if word in does[each]]:
            yield fitting[0], len(fitting) == 1 and size in units[fitting[0]].sizes


def join_places(pairing: Pairing) -> None:
    """What is left of both sides between two library calls that are the same ones on both: told by elimination. Without
    library calls of its own, nor copies, which no kernel does instead."""
    for plain, fused in _left_in_segments(pairing) if pairing.ties else ():
        units = [*(pairing.plain.units[i] for i in plain), *(pairing.fused.units[j] for j in fused)]
        few = plain and fused and max(len(plain), len(fused)) <= FEW
        if few and not any(unit.kind or unit.copies for unit in units):
            pairing.join(plain, fused, exact=False)


def join_beside_calls(pairing: Pairing) -> None:
    """Kernels left over whose names list an operator of the kind of a library call nearby: they lay its inputs out, or
    do what it no longer does. For sides that know no operators."""
    units, segments = pairing.fused.units, pairing.fused.segments
    for j in [each for each in pairing.fused.left() if units[each].fused] if pairing.by_names else ():
        for call in (each for distance in range(1, MOST) for each in (j + distance, j - distance)):
            kind = units[call].kind if call in pairing.fused_tied else None
            if not kind or abs(segments[call] - segments[j]) > REACH:
                continue
            if named_by(OPERATORS_OF_KIND[kind], units[j].fused or ""):
                pairing.join([], [j, call], exact=False)
                break
