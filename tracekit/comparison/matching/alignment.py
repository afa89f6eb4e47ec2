"""Two sequences to cells: library calls first, then what is alike between them, then what was fused, then the rest.

What has found no partner is not called gone for want of a partner alone. It takes evidence: everything around it is
matched, and on the other side nothing is left that could do its work. docs/kinds.md has the rule in words.
"""

from bisect import bisect_left
from collections import defaultdict

from tracekit.comparison.matching.fusion import REACH, likeness
from tracekit.comparison.matching.joining import (
    join_beside_calls,
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
