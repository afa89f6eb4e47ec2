"""Cells of two sides: what provenance says of them, and what alignment says of the rest."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePath
from typing import Literal

from tracekit.comparison.matching import Cell, align
from tracekit.comparison.matching.provenance_links import Linked, link
from tracekit.model.comparison import Side
from tracekit.model.note import Note, distinct
from tracekit.model.provenance import CompiledSites, EagerOps
from tracekit.model.sequence import Sequence

#: The provenance leads between other forms than an eager and a compiled one, the sides are of two runs, or the steps of
#: a side do not all run the same kernels.
NoProvenance = Literal["other_forms", "two_runs", "steps_differ"]
#: The positions of one step, on A and on B.
_Round = tuple[range, range]


def find_cells(a: Side, b: Side) -> tuple[tuple[Cell, ...] | None, tuple[Note, ...]]:
    """A partition of both sides' activities, and what is amiss with the provenance they came with.

    Provenance tells eager operators from compiled launches, within one run; alignment takes what it leaves. Steps that
    are not all alike are matched step by step. None where a side has no activities in order.
    """
    if a.sequence is None or b.sequence is None:
        return None, ()
    amiss: list[Note] = []
    rounds = _rounds(a.sequence, b.sequence)
    if len(rounds) == 1:
        cells, notes = _match(a.sequence, b.sequence, a, b)
        return cells, (*amiss, *notes)
    found: list[Cell] = []
    matched: dict[Hashable, tuple[tuple[Cell, ...], tuple[Note, ...]]] = {}
    for a_at, b_at in rounds:
        one, other = _part(a.sequence, a_at), _part(b.sequence, b_at)
        key = _content(one), _content(other)
        if key not in matched:
            matched[key] = _match(one, other, a, b)
        cells, notes = matched[key]
        found += [_moved(cell, a_at.start, b_at.start) for cell in cells]
        amiss += notes
    return tuple(found), distinct(amiss)


def _content(sequence: Sequence) -> Hashable:
    """All that matching looks at: steps that are alike in it are matched once."""
    calls = (each.call for each in sequence.activities)
    begun = [call is None or call != before for before, call in pairwise((None, *calls))]
    return tuple(
        (each.name, each.operator, each.within, new) for each, new in zip(sequence.activities, begun, strict=True)
    )


def _match(one: Sequence, other: Sequence, a: Side, b: Side) -> tuple[tuple[Cell, ...], tuple[Note, ...]]:
    """The cells of one step of each side, by provenance where it is of use."""
    eager, compiled = a.provenance, b.provenance
    if not one.activities or not other.activities:
        return align(one, other), ()
    if not isinstance(eager, EagerOps) or not isinstance(compiled, CompiledSites) or why_no_provenance(a, b):
        return align(one, other), ()
    linked = link(one, other, eager, compiled)
    told = [
        Cell(each.a_positions, each.b_positions, "provenance", each.where, exact=each.exact) for each in linked.links
    ]
    return (*told, *_align_rest(one, other, linked)), linked.notes


def why_no_provenance(a: Side, b: Side) -> NoProvenance | None:
    """Why the provenance that a side has is of no use here; None where it is of use, and where there is none."""
    if a.provenance is None and b.provenance is None:
        return None
    if not isinstance(a.provenance, EagerOps) or not isinstance(b.provenance, CompiledSites):
        return "other_forms"
    if PurePath(a.path).parent != PurePath(b.path).parent:
        return "two_runs"
    if not all(_tells_steps(side.sequence) for side in (a, b)):
        # Where each begins is not known.
        return "steps_differ"
    return None


def _tells_steps(sequence: Sequence | None) -> bool:
    return sequence is None or sequence.per_step == 1 or bool(sequence.starts)


def _rounds(a: Sequence, b: Sequence) -> list[_Round]:
    """The steps of A beside those of B; all at once where the sides are not of as many steps.

    Steps without activities stand beside none where both sides have as many of them.
    """
    one, other = _steps(a), _steps(b)
    if len(one) == len(other):
        if sum(map(bool, one)) == sum(map(bool, other)):
            one, other = list(filter(None, one)), list(filter(None, other))
        return list(zip(one, other, strict=True))
    return [(range(len(a.activities)), range(len(b.activities)))]


def _steps(sequence: Sequence) -> list[range]:
    begins = sequence.starts or (0,)
    return [range(begin, end) for begin, end in zip(begins, (*begins[1:], len(sequence.activities)), strict=True)]


def _part(sequence: Sequence, at: range) -> Sequence:
    """One step."""
    return replace(sequence, activities=sequence.activities[at.start : at.stop], per_step=1.0, starts=())


def _moved(cell: Cell, a_by: int, b_by: int) -> Cell:
    return replace(cell, a=tuple(at + a_by for at in cell.a), b=tuple(at + b_by for at in cell.b))


def evened(a: Side, b: Side) -> tuple[Side, Side]:
    """Both sides over as many steps: where those of one differ among each other, the other's one step is repeated."""
    if a.sequence is None or b.sequence is None or a.sequence.per_step == b.sequence.per_step:
        return a, b
    steps = math.lcm(*(round(1 / each.per_step) for each in (a.sequence, b.sequence)))
    return replace(a, sequence=_over(a.sequence, steps)), replace(b, sequence=_over(b.sequence, steps))


def _over(sequence: Sequence, steps: int) -> Sequence:
    times, length = round(steps * sequence.per_step), len(sequence.activities)
    known = sequence.starts or sequence.per_step == 1
    starts = tuple(length * time + start for time in range(times) for start in sequence.starts or (0,)) if known else ()
    return replace(sequence, activities=sequence.activities * times, per_step=1 / steps, starts=starts)


def _align_rest(a: Sequence, b: Sequence, linked: Linked) -> tuple[Cell, ...]:
    a_rest = _without(a, {at for each in linked.links for at in each.a_positions})
    b_rest = _without(b, {at for each in linked.links for at in each.b_positions})
    cells = align(
        replace(a, activities=tuple(a.activities[at] for at in a_rest), starts=()),
        replace(b, activities=tuple(b.activities[at] for at in b_rest), starts=()),
    )
    return tuple(
        replace(cell, a=tuple(a_rest[at] for at in cell.a), b=tuple(b_rest[at] for at in cell.b)) for cell in cells
    )


def _without(sequence: Sequence, taken: set[int]) -> list[int]:
    return [at for at in range(len(sequence.activities)) if at not in taken]
