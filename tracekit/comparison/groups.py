"""Which kernels of A and of B do the same work, and what became of them?

The groups are a partition: every GPU activity of both sides is in exactly one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tracekit.comparison.cost.peaks import peak_of_side
from tracekit.comparison.matching import Cell
from tracekit.comparison.matching.by_cells import group_by_cells
from tracekit.comparison.matching.by_names import group_by_names
from tracekit.comparison.members import time_of
from tracekit.model.comparison import Coverage, KernelGroup, Side
from tracekit.model.labels import label_order


def group_kernels(a: Side, b: Side, cells: tuple[Cell, ...] | None = None) -> tuple[KernelGroup, ...]:
    """Every kernel and copy of both sides in exactly one group, per step, largest change of GPU time first.

    `cells` say what belongs together; without them kernels are told by their names. Empty when a side has no GPU
    figures.
    """
    if not (a.analysis.kernels and b.analysis.kernels):
        return ()
    if a.sequence is None or b.sequence is None or cells is None:
        groups = group_by_names(a, b)
    else:
        groups = group_by_cells(a.sequence, b.sequence, cells, (peak_of_side(a), peak_of_side(b)))
    _check_partition(groups, a, b)
    return tuple(sorted(groups, key=lambda group: (-abs(group.delta_us), label_order(group.label))))


def measure_coverage(groups: Iterable[KernelGroup]) -> Coverage:
    """How much of each side's GPU time was matched, and how; of a side that did nothing all was."""
    groups = tuple(groups)
    matched = [group for group in groups if group.a and group.b and group.kind != "unmatched"]
    inexact = [group for group in matched if not group.exact]
    alone = [group for group in groups if group.kind in ("eliminated", "added")]
    a_us, b_us = _time_a(groups), _time_b(groups)
    return Coverage(
        a_time_matched=_share(_time_a(matched), a_us) if a_us else 1.0,
        b_time_matched=_share(_time_b(matched), b_us) if b_us else 1.0,
        a_time_inexact=_share(_time_a(inexact), a_us),
        b_time_inexact=_share(_time_b(inexact), b_us),
        a_time_alone=_share(_time_a(alone), a_us),
        b_time_alone=_share(_time_b(alone), b_us),
    )


def _time_a(groups: Iterable[KernelGroup]) -> float:
    return math.fsum(time_of(group.a) for group in groups)


def _time_b(groups: Iterable[KernelGroup]) -> float:
    return math.fsum(time_of(group.b) for group in groups)


def _share(part: float, whole: float) -> float:
    return min(part / whole, 1.0) if whole else 0.0


def _check_partition(groups: Iterable[KernelGroup], a: Side, b: Side) -> None:
    """Raises AssertionError if an activity is in no group or in two: the figures would not add up."""
    groups = tuple(groups)
    for side, members in ((a, [m for g in groups for m in g.a]), (b, [m for g in groups for m in g.b])):
        kernels, copies = side.analysis.kernels, side.analysis.copies
        whole = ((kernels.total_us if kernels else 0.0) + (copies.total_us if copies else 0.0)) / side.steps
        if not math.isclose(time_of(members), whole, rel_tol=1e-6, abs_tol=1e-3):
            raise AssertionError(f"kernel groups of {side.label} add up to {time_of(members)} us, not to {whole} us")
