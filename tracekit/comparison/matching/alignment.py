"""Two sequences to cells: library calls first, then what is alike between them, then what was fused, then the rest.

What has found no partner is not called gone for want of a partner alone. It takes evidence: everything around it is
matched, and on the other side nothing is left that could do its work. docs/kinds.md has the rule in words.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tracekit.comparison.matching.fusion import REACH, likeness
from tracekit.comparison.matching.joining import (
    join_fused,
    join_helpers,
    join_own_work,
    join_places,
    join_same,
    join_taken_over,
)
from tracekit.comparison.matching.pairing import Cell, Pairing, Side, check_partition
from tracekit.comparison.matching.units import cut_into_units
from tracekit.model import sequence as work
from tracekit.model.comparison import MatchedBy

#: By segment: what library calls of the other side do there that their partners do not.
Epilogues = Mapping[int, set[str]]
#: Units of either side, how they were matched, and whether one by one.
_Group = tuple[list[int], list[int], MatchedBy, bool]


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
    if a_fused > b_fused:
        turned = _groups(Pairing(other, one, by_names=by_names))
        groups = [(right, left, how, exact) for left, right, how, exact in turned]
    else:
        groups = list(_groups(Pairing(one, other, by_names=by_names)))
    cells = [
        Cell(
            tuple(sorted(at for unit in left for at in one[unit].positions)),
            tuple(sorted(at for unit in right for at in other[unit].positions)),
            how,
            exact=exact,
        )
        for left, right, how, exact in groups
    ]
    found = tuple(sorted(cells, key=lambda cell: (cell.a or cell.b, cell.b)))
    check_partition(found, len(a.activities), len(b.activities))
    return found


def _groups(pairing: Pairing) -> Iterator[_Group]:
    join_same(pairing)
    join_fused(pairing)
    join_helpers(pairing)
    join_own_work(pairing)
    join_taken_over(pairing)
    join_places(pairing)
    gone, new = find_unmatched(pairing)
    how: MatchedBy = "names" if pairing.by_names else "anchors"
    for plain, fused, exact in pairing.groups():
        yield plain, fused, how if plain and fused else "unmatched", exact and not pairing.by_names
    yield from (([i], [], how if i in gone else "unmatched", True) for i in pairing.plain.left())
    yield from (([], [j], how if j in new else "unmatched", True) for j in pairing.fused.left())


def find_unmatched(pairing: Pairing) -> tuple[frozenset[int], frozenset[int]]:
    """Units of each side, of what is left once all else is joined, for which it is certain that the other side has no
    counterpart."""
    if pairing.by_names:
        # Names of kernels tell too little to say that nothing does the same.
        return frozenset(), frozenset()
    plain_matched, fused_matched = _matched(pairing)
    plain_epilogues, fused_epilogues = _epilogues_of_others(pairing)
    found: list[frozenset[int]] = []
    for own, other, matched, epilogues in (
        (pairing.plain, pairing.fused, plain_matched, plain_epilogues),
        (pairing.fused, pairing.plain, fused_matched, fused_epilogues),
    ):
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
            if beside and beside <= matched and not _may_be_done_by(other, left, at, own):
                certain.add(at)
        found.append(frozenset(certain))
    return found[0], found[1]


def _matched(pairing: Pairing) -> tuple[set[int], set[int]]:
    """Units of each side that have a partner on the other, and not by elimination. A library call that is another one
    on the other side is none of them: nobody knows what else that does."""
    plain: set[int] = set()
    fused: set[int] = set()
    for some, others, exact in pairing.groups():
        if some and others and exact:
            plain.update(some)
            fused.update(others)
    for tie in pairing.ties:
        one, other = pairing.plain.units[tie.a[0]].signature, pairing.fused.units[tie.b[0]].signature
        same_operators = [name for name, _ in one.operators] == [name for name, _ in other.operators]
        if not (len(tie.a) == len(tie.b) == 1 and one.names == other.names and same_operators):
            plain.difference_update(tie.a)
            fused.difference_update(tie.b)
    return plain, fused


def _epilogues_of_others(pairing: Pairing) -> tuple[Epilogues, Epilogues]:
    plain: dict[int, set[str]] = defaultdict(set)
    fused: dict[int, set[str]] = defaultdict(set)
    for tie in pairing.ties:
        one = {word for i in tie.a for word in pairing.plain.units[i].epilogue}
        other = {word for j in tie.b for word in pairing.fused.units[j].epilogue}
        segment = pairing.plain.segments[tie.a[0]]
        plain[segment] |= other - one
        fused[segment] |= one - other
    return plain, fused


def _may_be_done_by(other: Side, left: Sequence[int], at: int, side: Side) -> bool:
    """Whether anything is left of the other side within reach, or a fused kernel there names what the unit does."""
    unit, segment = side.units[at], side.segments[at]
    near = range(bisect_left(other.segments, segment - REACH), bisect_right(other.segments, segment + REACH))
    if bisect_left(left, near.start) != bisect_left(left, near.stop):
        return True
    for each in (other.units[other_at] for other_at in near):
        plain, fused = (each, unit) if unit.fused is not None and each.fused is None else (unit, each)
        if fused.fused is not None and fused.kind is None and likeness(plain, fused) > 0:
            return True
    return False
