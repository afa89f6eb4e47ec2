"""Two sequences to cells: library calls first, then what is alike between them, then what was fused, then the rest."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.comparison.matching.joining import (
    join_fused,
    join_helpers,
    join_own_work,
    join_places,
    join_same,
    join_taken_over,
)
from tracekit.comparison.matching.pairing import Cell, Pairing, check_partition
from tracekit.comparison.matching.units import cut_into_units
from tracekit.comparison.matching.unmatched import find_unmatched
from tracekit.model import sequence as work
from tracekit.model.comparison import MatchedBy

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
    yield from (([i], [], how if i in gone else "unmatched", True) for i in pairing.plain_left())
    yield from (([], [j], how if j in new else "unmatched", True) for j in pairing.fused_left())
