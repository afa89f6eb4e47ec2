"""Cells to groups: what happens again and again in the same way is one group, with its number of repeats."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from statistics import fmean

from tracekit.comparison.describing import describe, is_library
from tracekit.comparison.evidence import find_evidence
from tracekit.comparison.matching import Cell, check_partition
from tracekit.comparison.matching.operators import without_number
from tracekit.comparison.members import largest_first
from tracekit.comparison.roofline import rates_of
from tracekit.comparison.traffic import traffic_of
from tracekit.model.comparison import GroupKind, GroupMember, KernelGroup
from tracekit.model.rates import Peak, Rates, Traffic
from tracekit.model.sequence import Activity, Sequence

#: Work of more different shapes than this is a loop whose lengths grow: it is one group.
MOST_SHAPES = 4
#: The number of a block in a module's path; a line is `file.py:12`.
NUMBER = re.compile(r"\.\d+(?=\.|$)")


@dataclass(frozen=True, slots=True)
class Piece:
    """What a cell holds: the activities of either side, in order."""

    cell: Cell
    a: tuple[Activity, ...]
    b: tuple[Activity, ...]


def group_by_cells(
    a: Sequence, b: Sequence, cells: tuple[Cell, ...], peak: Peak | None = None
) -> tuple[KernelGroup, ...]:
    """Cells with the same kernels, operators and shapes together, per step. The cells are a partition of both sides,
    however they were found. `peak` is that of the device, for shares of it."""
    return tuple(group for group, _ in gather_cells(a, b, cells, peak))


def gather_cells(
    a: Sequence, b: Sequence, cells: tuple[Cell, ...], peak: Peak | None = None
) -> tuple[tuple[KernelGroup, tuple[Cell, ...]], ...]:
    """Each group with its cells."""
    check_partition(cells, len(a.activities), len(b.activities))
    pieces = [
        Piece(cell, tuple(a.activities[at] for at in cell.a), tuple(b.activities[at] for at in cell.b))
        for cell in cells
    ]
    return tuple(
        (_group(some, a.per_step, b.per_step, peak), tuple(piece.cell for piece in some)) for some in _alike(pieces)
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
    """Kernels of both sides and the operators of A: the numbers in names of Triton kernels say nothing."""
    a = tuple((each.name, each.operator.name if each.operator else None) for each in piece.a)
    return piece.cell.how, _places((piece,)), a, tuple(without_number(each.name) for each in piece.b)


def _places(pieces: Iterable[Piece]) -> tuple[str, ...]:
    """Modules and lines, equal blocks of a model as one: `blocks.*.norm` for `blocks.0.norm`."""
    return tuple(dict.fromkeys(NUMBER.sub(".*", place) for piece in pieces for place in piece.cell.where))


def _shapes(piece: Piece) -> Hashable:
    return tuple(each.operator.dims if each.operator else None for each in piece.a)


def _group(pieces: list[Piece], a_per_step: float, b_per_step: float, peak: Peak | None) -> KernelGroup:
    first, typical = pieces[0], _typical(pieces)
    kind = kind_of(first)
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
        evidence=find_evidence(kind, typical.a, typical.b),
        traffic=_traffic(pieces, a_per_step if first.a else b_per_step),
        rates=_rates(typical, peak),
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


def _traffic(pieces: list[Piece], per_step: float) -> Traffic | None:
    """Of all pieces, which are of the same shapes or of many."""
    if len({_shapes(piece) for piece in pieces}) == 1:
        found = traffic_of(pieces[0].a, pieces[0].b).times(len(pieces) * per_step)
    else:
        a, b = ([each for piece in pieces for each in getattr(piece, side)] for side in ("a", "b"))
        found = traffic_of(a, b).times(per_step)
    return None if found.eager_bytes is None and found.compiled_bytes is None else found


def _rates(piece: Piece, peak: Peak | None) -> Rates | None:
    """Those of the longest kernel, if anything is known of it."""
    found = rates_of(max(piece.b or piece.a, key=lambda activity: activity.duration_us), peak)
    return None if found.bytes is None and found.flops is None else found


def _members(activities: Iterable[Activity], per_step: float) -> tuple[GroupMember, ...]:
    counts: Counter[str] = Counter()
    times: dict[str, float] = defaultdict(float)
    for each in activities:
        counts[each.name] += 1
        times[each.name] += each.duration_us
    return largest_first(GroupMember(name, count * per_step, times[name] * per_step) for name, count in counts.items())


def kind_of(piece: Piece) -> GroupKind:
    """What became of A's kernels."""
    if piece.cell.how == "unmatched":
        return "unmatched"
    if not piece.b:
        return "eliminated"
    if not piece.a:
        return "added"
    if _names(piece.a) == _names(piece.b):
        return "unchanged"
    a_library, b_library = (sum(map(is_library, side)) for side in (piece.a, piece.b))
    if a_library and a_library < b_library and _families(piece.a) != _families(piece.b):
        return "defused"
    if len(piece.b) < len(piece.a) and not (a_library and a_library == b_library):
        return "fused"
    return "substituted" if a_library or len(piece.b) == len(piece.a) else "defused"


def _names(activities: tuple[Activity, ...]) -> Counter[str]:
    return Counter(without_number(each.name) for each in activities)


def _families(activities: tuple[Activity, ...]) -> set[str]:
    return {each.family for each in activities if is_library(each)}
