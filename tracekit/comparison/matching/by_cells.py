"""Cells to groups: what happens again and again in the same way is one group, with its number of repeats."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from statistics import fmean

from tracekit.comparison.cost.operator_calls import Call, find_calls, traffic_of
from tracekit.comparison.cost.roofline import rates_of
from tracekit.comparison.evidence import find_evidence
from tracekit.comparison.kinds import kind_of
from tracekit.comparison.matching import Cell, check_partition
from tracekit.comparison.matching.describing import describe
from tracekit.comparison.matching.operators import without_number
from tracekit.comparison.members import largest_first
from tracekit.comparison.sizes import sizes_of
from tracekit.model.comparison import GroupKind, GroupMember, KernelGroup
from tracekit.model.rates import Peak, Rates, Traffic
from tracekit.model.sequence import Activity, Sequence

#: Of the devices that A and B ran on.
Peaks = tuple[Peak | None, Peak | None]

#: Work of more different shapes than this is a loop whose lengths grow: it is one group.
MOST_SHAPES = 4
#: The number of a block in a module's path; a line is `file.py:12`.
NUMBER = re.compile(r"\.\d+(?=\.|$)")


@dataclass(frozen=True, slots=True)
class Piece:
    """What a cell holds: the activities of either side, in order, and the operator calls whose main activities they
    are. What else a call launched may stand in other cells."""

    cell: Cell
    a: tuple[Activity, ...]
    b: tuple[Activity, ...]
    a_calls: tuple[Call, ...] = ()
    b_calls: tuple[Call, ...] = ()


def group_by_cells(
    a: Sequence, b: Sequence, cells: tuple[Cell, ...], peaks: Peaks = (None, None)
) -> tuple[KernelGroup, ...]:
    """Cells with the same kernels, operators and shapes together, per step. The cells are a partition of both sides,
    however they were found. `peaks` are those of the two devices, for shares of them."""
    return tuple(group for group, _ in gather_cells(a, b, cells, peaks))


def gather_cells(
    a: Sequence, b: Sequence, cells: tuple[Cell, ...], peaks: Peaks = (None, None)
) -> tuple[tuple[KernelGroup, tuple[Cell, ...]], ...]:
    """Each group with its cells."""
    check_partition(cells, len(a.activities), len(b.activities))
    a_calls, b_calls = find_calls(a.activities), find_calls(b.activities)
    pieces = [
        Piece(
            cell,
            tuple(a.activities[at] for at in cell.a),
            tuple(b.activities[at] for at in cell.b),
            tuple(a_calls[at] for at in cell.a if at in a_calls),
            tuple(b_calls[at] for at in cell.b if at in b_calls),
        )
        for cell in cells
    ]
    return tuple(
        (_group(some, a.per_step, b.per_step, peaks), tuple(piece.cell for piece in some)) for some in _alike(pieces)
    )


def _alike(pieces: list[Piece]) -> Iterable[list[Piece]]:
    """Pieces of the same work, apart by shape as long as there are few."""
    by_work: dict[Hashable, dict[Hashable, list[Piece]]] = defaultdict(lambda: defaultdict(list))
    for piece in pieces:
        by_work[_work(piece)][_shapes(piece)].append(piece)
    for by_shape in by_work.values():
        if len(by_shape) <= MOST_SHAPES:
            yield from by_shape.values()
        else:
            yield [piece for some in by_shape.values() for piece in some]


def _work(piece: Piece) -> Hashable:
    """What became of it, the kernels of both sides and the operators of A: the numbers in names of Triton kernels say
    nothing."""
    a = tuple(
        (without_number(each.name), without_number(each.operator.name) if each.operator else None) for each in piece.a
    )
    b = tuple(without_number(each.name) for each in piece.b)
    return piece.cell.how, piece.cell.exact, _kind(piece), _places((piece,)), a, b


def _kind(piece: Piece) -> GroupKind:
    return "unmatched" if piece.cell.how == "unmatched" else kind_of(piece.a, piece.b)


def _places(pieces: Iterable[Piece]) -> tuple[str, ...]:
    """Modules and lines, equal blocks of a model as one: `blocks.*.norm` for `blocks.0.norm`."""
    return tuple(dict.fromkeys(NUMBER.sub(".*", place) for piece in pieces for place in piece.cell.where))


def _shapes(piece: Piece) -> Hashable:
    return tuple(
        tuple((each.operator.dims, each.operator.dtypes) if each.operator else None for each in side)
        for side in (piece.a, piece.b)
    )


def _group(pieces: list[Piece], a_per_step: float, b_per_step: float, peaks: Peaks) -> KernelGroup:
    first, typical = pieces[0], _typical(pieces)
    kind = _kind(first)
    a = _members((each for piece in pieces for each in piece.a), a_per_step)
    b = _members((each for piece in pieces for each in piece.b), b_per_step)
    repeats = len(pieces) * (a_per_step if first.a else b_per_step)
    return KernelGroup(
        kind=kind,
        label=describe(kind, first.a, first.b, repeats),
        how="unmatched" if kind == "unmatched" else first.cell.how,
        a=a,
        b=b,
        delta_count=sum(member.count for member in b) - sum(member.count for member in a),
        delta_us=sum(member.total_us for member in b) - sum(member.total_us for member in a),
        where=first.cell.where if len(pieces) == 1 else _places(pieces),
        repeats=repeats,
        exact=first.cell.exact,
        evidence=find_evidence(kind, typical.a, typical.b),
        traffic=_traffic(pieces, a_per_step, b_per_step),
        rates=_rates(pieces, peaks),
        sizes=sizes_of(first.a or first.b) if len({_shapes(piece) for piece in pieces}) == 1 else "",
        a_at=tuple(at for piece in pieces for at in piece.cell.a),
        b_at=tuple(at for piece in pieces for at in piece.cell.b),
    )


def _typical(pieces: list[Piece]) -> Piece:
    """One piece, with the mean times of all."""
    a, b = (
        tuple(
            replace(some[0], duration_us=fmean(each.duration_us for each in some))
            for some in zip(*(getattr(piece, side) for piece in pieces), strict=True)
        )
        for side in ("a", "b")
    )
    return Piece(pieces[0].cell, a, b)


def _traffic(pieces: list[Piece], a_per_step: float, b_per_step: float) -> Traffic | None:
    """Of all pieces together, each with its own sizes; None where those of no call are known."""
    of_one = traffic_of(
        (call for piece in pieces for call in piece.a_calls), (call for piece in pieces for call in piece.b_calls)
    )
    eager, compiled = of_one.eager_bytes, of_one.compiled_bytes
    if not (eager or compiled) and (of_one.eager_missing or of_one.compiled_missing):
        return None
    return Traffic(
        None if eager is None else eager * a_per_step,
        None if compiled is None else compiled * b_per_step,
        of_one.eager_missing * a_per_step,
        of_one.compiled_missing * b_per_step,
    )


def _rates(pieces: list[Piece], peaks: Peaks) -> Rates | None:
    """Those of the call that takes longest, over all pieces, if anything is known of it: one of B's, of A's where B has
    none."""
    on_b = bool(pieces[0].b)
    calls = [piece.b_calls if on_b else piece.a_calls for piece in pieces]
    if not calls[0] or len({len(some) for some in calls}) > 1:
        return None
    alike = zip(*calls, strict=True)
    longest = max(alike, key=lambda some: math.fsum(call.duration_us for call in some))
    found = rates_of(longest, peaks[on_b])
    return None if found.bytes is None and found.flops is None else found


def _members(activities: Iterable[Activity], per_step: float) -> tuple[GroupMember, ...]:
    counts: Counter[str] = Counter()
    times: dict[str, float] = defaultdict(float)
    for each in activities:
        counts[each.name] += 1
        times[each.name] += each.duration_us
    return largest_first(GroupMember(name, count * per_step, times[name] * per_step) for name, count in counts.items())
