"""Cells of two sides: what provenance says of them, and what alignment says of the rest."""

import math
from collections.abc import Hashable, Iterable
from collections.abc import Sequence as PySequence
from itertools import pairwise
from pathlib import PurePath

from msgspec.structs import replace

from tracekit.comparison.matching.alignment import align
from tracekit.comparison.matching.common_subsequence import common_subsequence
from tracekit.comparison.matching.operators import without_number
from tracekit.comparison.matching.pairing import Cell
from tracekit.comparison.matching.provenance_links import link
from tracekit.model.comparison import Side
from tracekit.model.note import Note, distinct
from tracekit.model.provenance import CompiledSites, EagerOps
from tracekit.model.sequence import OperatorSource, Sequence
from tracekit.statements.notes.matching import NoProvenance

#: A recording lacks operators when more than this share of its activities has none.
LACKING = 0.1


def find_cells(a: Side, b: Side) -> tuple[tuple[Cell, ...] | None, tuple[Note, ...]]:
    """A partition of both sides' activities, and what is amiss with the provenance they came with.

    Provenance tells eager operators from compiled launches, within one run; alignment takes what it leaves. Steps that
    are not all alike are matched step by step. None where a side has no activities in order.
    """
    if a.sequence is None or b.sequence is None:
        return None, ()
    one, other = _steps(a.sequence), _steps(b.sequence)
    if len(one) == len(other) and sum(map(bool, one)) == sum(map(bool, other)):
        # Steps without activities stand beside none.
        one, other = list(filter(None, one)), list(filter(None, other))
    if len(one) != len(other) or len(one) == 1:
        return _match(a.sequence, b.sequence, a, b)
    found_notes: list[Note] = []
    found: list[Cell] = []
    matched: dict[Hashable, tuple[tuple[Cell, ...], tuple[Note, ...]]] = {}
    for a_at, b_at in zip(one, other, strict=True):
        a_step, b_step = _part(a.sequence, a_at), _part(b.sequence, b_at)
        key = _content(a_step), _content(b_step)
        if key not in matched:
            matched[key] = _match(a_step, b_step, a, b)
        cells, notes = matched[key]
        found += [_placed(cell, a_at, b_at) for cell in cells]
        found_notes += notes
    return tuple(found), distinct(found_notes)


def _steps(sequence: Sequence) -> list[range]:
    begins = sequence.starts or (0,)
    return [range(begin, end) for begin, end in zip(begins, (*begins[1:], len(sequence.activities)), strict=True)]


def _part(sequence: Sequence, at: Iterable[int]) -> Sequence:
    """These activities as one step."""
    return replace(sequence, activities=tuple(sequence.activities[each] for each in at), per_step=1.0, starts=())


def _placed(cell: Cell, a_at: PySequence[int], b_at: PySequence[int]) -> Cell:
    """The cell of a part of both sides, with its positions in the whole."""
    return replace(cell, a=tuple(a_at[at] for at in cell.a), b=tuple(b_at[at] for at in cell.b))


def _content(sequence: Sequence) -> Hashable:
    """All that matching looks at: steps that are alike in it are matched once."""
    calls = (each.call for each in sequence.activities)
    begun = [call is None or call != before for before, call in pairwise((None, *calls))]
    return tuple(
        (each.name, each.operator, each.within, new) for each, new in zip(sequence.activities, begun, strict=True)
    )


def _match(one: Sequence, other: Sequence, a: Side, b: Side) -> tuple[tuple[Cell, ...], tuple[Note, ...]]:
    """The cells of one step of each side, by provenance where it is of use. All communication is one cell."""
    eager, compiled = a.provenance, b.provenance
    a_apart, b_apart = (
        tuple(at for at, each in enumerate(side.activities) if each.family == "communication") for side in (one, other)
    )
    cells: tuple[Cell, ...] = (Cell(a_apart, b_apart, "family"),) if a_apart or b_apart else ()
    notes: tuple[Note, ...] = ()
    of_use = one.activities and other.activities and not why_no_provenance(a, b)
    if of_use and isinstance(eager, EagerOps) and isinstance(compiled, CompiledSites):
        linked, notes = link(one, other, eager, compiled)
        # What was linked to communication is aligned like the rest.
        cells += tuple(each for each in linked if not ({*each.a} & {*a_apart} or {*each.b} & {*b_apart}))
    elif not cells:
        return align(one, other), ()
    a_linked, b_linked = {at for cell in cells for at in cell.a}, {at for cell in cells for at in cell.b}
    a_rest = [at for at in range(len(one.activities)) if at not in a_linked]
    b_rest = [at for at in range(len(other.activities)) if at not in b_linked]
    aligned = align(_part(one, a_rest), _part(other, b_rest))
    return (*cells, *(_placed(cell, a_rest, b_rest) for cell in aligned)), notes


def why_no_provenance(a: Side, b: Side) -> NoProvenance | None:
    """Why the provenance that a side has is of no use here; None where it is of use, and where there is none."""
    if a.provenance is None and b.provenance is None:
        return None
    if not isinstance(a.provenance, EagerOps) or not isinstance(b.provenance, CompiledSites):
        return "other_forms"
    if PurePath(a.path).parent != PurePath(b.path).parent:
        return "two_runs"
    # Where each step begins must be known.
    tells_steps = (each is None or each.per_step == 1 or bool(each.starts) for each in (a.sequence, b.sequence))
    return None if all(tells_steps) else "steps_differ"


def with_as_many_steps(a: Side, b: Side) -> tuple[Side, Side]:
    """Both sides over as many steps: where those of one differ among each other, the other's one step is repeated."""
    if a.sequence is None or b.sequence is None or a.sequence.per_step == b.sequence.per_step:
        return a, b
    steps = math.lcm(*(round(1 / each.per_step) for each in (a.sequence, b.sequence)))
    return replace(a, sequence=_repeated(a.sequence, steps)), replace(b, sequence=_repeated(b.sequence, steps))


def _repeated(sequence: Sequence, steps: int) -> Sequence:
    times, length = round(steps * sequence.per_step), len(sequence.activities)
    known = sequence.starts or sequence.per_step == 1
    starts = tuple(length * time + start for time in range(times) for start in sequence.starts or (0,)) if known else ()
    return replace(sequence, activities=sequence.activities * times, per_step=1 / steps, starts=starts)


def lacks_operators(sequence: Sequence) -> bool:
    """CUDA activity alone was recorded, or CUDA graphs were replayed."""
    lacking = sum(activity.operator is None for activity in sequence.activities)
    return lacking > LACKING * len(sequence.activities)


def lend_operators(sequence: Sequence, other: Sequence, source: OperatorSource) -> Sequence:
    """The sequence, with the operators of `other`, another recording of the same work, where it has none of its own.

    Kernels are told by their names, in order: the same work makes the same sequence. Where names differ, what stands in
    the same order on both sides is lent; the rest keeps no operator.
    """
    lenders = other.activities * max(round(len(sequence.activities) / max(len(other.activities), 1)), 1)
    activities = list(sequence.activities)
    names, others = ([without_number(each.name) for each in side] for side in (activities, lenders))
    for at, lender in common_subsequence(names, others):
        lent = lenders[lender]
        if activities[at].operator is None and lent.operator is not None:
            # Calls of the lender get negative numbers, and meet none of one's own.
            offset = 1 + lender // len(other.activities) * (1 << 32)
            call, operator_call = (None if each is None else -offset - each for each in (lent.call, lent.operator_call))
            activities[at] = replace(
                activities[at], operator=lent.operator, within=lent.within, call=call, operator_call=operator_call
            )
    changed = activities != list(sequence.activities)
    return replace(sequence, activities=tuple(activities), operators=source if changed else sequence.operators)
