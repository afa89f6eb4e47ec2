"""Cells of two sides: what provenance says of them, and what alignment says of the rest."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import PurePath

from tracekit.comparison.matching import Cell, align
from tracekit.comparison.provenance import Linked, link
from tracekit.model.comparison import Side
from tracekit.model.provenance import CompiledSites, EagerOps
from tracekit.model.sequence import Sequence


def find_cells(a: Side, b: Side) -> tuple[tuple[Cell, ...] | None, tuple[str, ...]]:
    """A partition of both sides' activities, and what is amiss with the provenance they came with.

    Provenance tells eager operators from compiled launches exactly, within one run whose steps are all alike; alignment
    takes what it leaves. None where a side has no activities in order.
    """
    if a.sequence is None or b.sequence is None:
        return None, ()
    eager, compiled = a.provenance, b.provenance
    amiss = _why_no_provenance(a, b)
    if amiss or not isinstance(eager, EagerOps) or not isinstance(compiled, CompiledSites):
        return align(a.sequence, b.sequence), amiss
    linked = link(a.sequence, b.sequence, eager, compiled)
    exact = [Cell(each.a_positions, each.b_positions, "provenance", each.where) for each in linked.links]
    return (*exact, *_align_rest(a.sequence, b.sequence, linked)), linked.notes


def _why_no_provenance(a: Side, b: Side) -> tuple[str, ...]:
    """A sentence where a side has provenance that is of no use for this comparison."""
    if a.provenance is None and b.provenance is None:
        return ()
    if not isinstance(a.provenance, EagerOps) or not isinstance(b.provenance, CompiledSites):
        reason = "it leads from an eager form to a compiled one"
    elif PurePath(a.path).parent != PurePath(b.path).parent:
        reason = "the sides are of two runs"
    elif a.sequence and b.sequence and (a.sequence.per_step, b.sequence.per_step) != (1, 1):
        reason = "the steps of a side do not all run the same kernels"
    else:
        return ()
    return (f"Kernels are matched by operators, shapes and order, not by provenance: {reason}.",)


def evened(a: Side, b: Side) -> tuple[Side, Side]:
    """Both sides over as many steps: where those of one differ among each other, the other's one step is repeated."""
    if a.sequence is None or b.sequence is None or a.sequence.per_step == b.sequence.per_step:
        return a, b
    steps = math.lcm(*(round(1 / each.per_step) for each in (a.sequence, b.sequence)))
    return replace(a, sequence=_over(a.sequence, steps)), replace(b, sequence=_over(b.sequence, steps))


def _over(sequence: Sequence, steps: int) -> Sequence:
    times = round(steps * sequence.per_step)
    return replace(sequence, activities=sequence.activities * times, per_step=1 / steps)


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
