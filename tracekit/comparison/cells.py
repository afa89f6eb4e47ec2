"""Cells of two sides: what provenance says of them, and what alignment says of the rest."""

from __future__ import annotations

from dataclasses import replace

from tracekit.comparison.matching import Cell, align
from tracekit.comparison.provenance import Linked, link
from tracekit.model.comparison import Side
from tracekit.model.provenance import CompiledSites, EagerOps
from tracekit.model.sequence import Sequence


def find_cells(a: Side, b: Side) -> tuple[tuple[Cell, ...] | None, tuple[str, ...]]:
    """A partition of both sides' activities, and what is amiss with the provenance they came with.

    Provenance tells eager operators from compiled launches exactly; alignment takes what it leaves. None where a side
    has no activities in order.
    """
    if a.sequence is None or b.sequence is None:
        return None, ()
    if not isinstance(a.provenance, EagerOps) or not isinstance(b.provenance, CompiledSites):
        return align(a.sequence, b.sequence), ()
    linked = link(a.sequence, b.sequence, a.provenance, b.provenance)
    exact = [Cell(each.a_positions, each.b_positions, "provenance", each.where) for each in linked.links]
    return (*exact, *_align_rest(a.sequence, b.sequence, linked)), linked.notes


def _align_rest(a: Sequence, b: Sequence, linked: Linked) -> tuple[Cell, ...]:
    a_rest = _without(a, {at for each in linked.links for at in each.a_positions})
    b_rest = _without(b, {at for each in linked.links for at in each.b_positions})
    cells = align(
        replace(a, activities=tuple(a.activities[at] for at in a_rest)),
        replace(b, activities=tuple(b.activities[at] for at in b_rest)),
    )
    return tuple(
        replace(cell, a=tuple(a_rest[at] for at in cell.a), b=tuple(b_rest[at] for at in cell.b)) for cell in cells
    )


def _without(sequence: Sequence, taken: set[int]) -> list[int]:
    return [at for at in range(len(sequence.activities)) if at not in taken]
