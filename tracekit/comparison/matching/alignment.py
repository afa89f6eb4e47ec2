"""Two sequences to cells: library calls first, then what is alike between them, then what was fused, then the rest.

What has found no partner is not called gone for want of a partner alone. It takes evidence: everything around it is
matched, and on the other side nothing is left that could do its work. docs/kinds.md has the rule in words.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

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
from tracekit.comparison.matching.units import Unit, cut_into_units
from tracekit.model import sequence as work
from tracekit.model.comparison import MatchedBy


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
    cells = []
    for plain, fused, how, exact in _groups(pairing):
        left, right = (fused, plain) if turned else (plain, fused)
        cells.append(Cell(_positions(one, left), _positions(other, right), how, exact=exact))
    found = tuple(sorted(cells, key=lambda cell: (cell.a or cell.b, cell.b)))
    check_partition(found, len(a.activities), len(b.activities))
    return found


def _positions(units: Sequence[Unit], some: list[int]) -> tuple[int, ...]:
    return tuple(sorted(at for unit in some for at in units[unit].positions))


def _groups(pairing: Pairing) -> Iterator[tuple[list[int], list[int], MatchedBy, bool]]:
    """Units of either side, how they were matched, and whether one by one."""
    join_same(pairing)
    join_fused(pairing)
    join_helpers(pairing)
    join_own_work(pairing)
    join_taken_over(pairing)
    join_places(pairing)
    gone, new = _find_unmatched(pairing)
    how: MatchedBy = "names" if pairing.by_names else "anchors"
    for plain, fused, exact in pairing.groups():
        yield plain, fused, how if plain and fused else "unmatched", exact and not pairing.by_names
    yield from (([i], [], how if i in gone else "unmatched", True) for i in pairing.plain.left())
    yield from (([], [j], how if j in new else "unmatched", True) for j in pairing.fused.left())


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
        if not (len(calls) == len(partners) == 1 and _is_same_call(calls[0], partners[0])):
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


def _is_same_call(one: Unit, other: Unit) -> bool:
    same_operators = [name for name, _ in one.signature.operators] == [name for name, _ in other.signature.operators]
    return one.signature.names == other.signature.names and same_operators


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
        if beside and beside <= matched and not _may_be_done_by(other, left, unit, segment):
            certain.add(at)
    return certain


def _may_be_done_by(other: Side, left: Sequence[int], unit: Unit, segment: int) -> bool:
    """Whether anything is left of the other side within reach, or a fused kernel there names what the unit does."""
    near = range(bisect_left(other.segments, segment - REACH), bisect_right(other.segments, segment + REACH))
    if bisect_left(left, near.start) != bisect_left(left, near.stop):
        return True
    for each in (other.units[other_at] for other_at in near):
        plain, fused = (each, unit) if unit.fused is not None and each.fused is None else (unit, each)
        if fused.fused is not None and fused.kind is None and likeness(plain, fused) > 0:
            return True
    return False
