"""Two sequences to cells: library calls first, then what is alike between them, then what was fused, then the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tracekit.comparison.matching.cell import Cell, check_partition
from tracekit.comparison.matching.fusing import join_fused
from tracekit.comparison.matching.helping import join_helpers, join_own_work
from tracekit.comparison.matching.leaving import find_alone, join_places
from tracekit.comparison.matching.pairing import Pairing
from tracekit.comparison.matching.same import join_same
from tracekit.comparison.matching.taking_over import join_taken_over
from tracekit.comparison.matching.units import Unit, cut_into_units
from tracekit.model import sequence as work
from tracekit.model.comparison import MatchedBy

#: Units of either side, how they were matched, and whether one by one.
_Group = tuple[Sequence[int], Sequence[int], MatchedBy, bool]


def align(a: work.Sequence, b: work.Sequence) -> tuple[Cell, ...]:
    """Which activities of A and of B do the same work: every position of either side in exactly one cell, in order.

    Library calls (matrix products, attention, convolutions) with the same shapes tie the sides together. What stands
    between two of them is divided as finely as operators and the names of Triton kernels prove. Where a side knows the
    names of kernels alone, cells are matched by `names`, and none is exact.
    """
    by_names = "none" in (a.operators, b.operators)
    one, other = (cut_into_units(side, by_kernel=by_names) for side in (a, b))
    # Operators are assigned to fused kernels; where A is the compiled side, from B to A.
    if _fused_count(one) > _fused_count(other):
        turned = _groups(Pairing(other, one, by_names=by_names))
        groups = [(right, left, how, exact) for left, right, how, exact in turned]
    else:
        groups = list(_groups(Pairing(one, other, by_names=by_names)))
    cells = tuple(sorted((_cell(one, other, *group) for group in groups), key=lambda cell: (cell.a or cell.b, cell.b)))
    check_partition(cells, len(a.activities), len(b.activities))
    return cells


def _fused_count(units: Sequence[Unit]) -> int:
    return sum(unit.fused is not None for unit in units)


def _groups(pairing: Pairing) -> Iterator[_Group]:
    join_same(pairing)
    join_fused(pairing)
    join_helpers(pairing)
    join_own_work(pairing)
    join_taken_over(pairing)
    join_places(pairing)
    alone = find_alone(pairing)
    how: MatchedBy = "names" if pairing.by_names else "anchors"
    for plain, fused, exact in pairing.groups():
        yield plain, fused, how if plain and fused else "unmatched", exact and not pairing.by_names
    yield from (([i], [], how if i in alone.plain else "unmatched", True) for i in pairing.plain_left())
    yield from (([], [j], how if j in alone.fused else "unmatched", True) for j in pairing.fused_left())


def _cell(
    one: Sequence[Unit], other: Sequence[Unit], a: Iterable[int], b: Iterable[int], how: MatchedBy, exact: bool
) -> Cell:
    return Cell(
        tuple(sorted(at for each in a for at in one[each].positions)),
        tuple(sorted(at for each in b for at in other[each].positions)),
        how,
        exact=exact,
    )
