"""Alignment against provenance, on every committed run: what anchors say without being told, beside what torch said."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from tracekit.comparison.matching import Cell, align
from tracekit.comparison.matching.cells import find_cells, why_no_provenance, with_as_many_steps
from tracekit.model.comparison import Side
from tracekit.model.sequence import Activity
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side

from ...committed import RUNS

TRACES = Path(__file__).parents[3] / "traces"

#: The share of GPU time, of A and of B, that alignment must put beside the same work as provenance does. Provenance is
#: no truth either: it lists kernels together that alignment tells apart, and may be wrong where it is not exact.
FLOORS = {
    "h200-flux-compiled": (0.945, 0.955),
    "h200-qwen2.5-vl-decode": (0.915, 0.95),
    "h200-vit": (0.99, 0.99),
    "h200-vit-reduce-overhead": (0.99, 0.99),
}


@cache
def sides_of(run: str) -> tuple[Side, Side]:
    reading = Reading(shapes=True)
    return with_as_many_steps(*(load_side(TRACES / run, form=form, reading=reading) for form in ("eager", "compiled")))  # type: ignore[arg-type]


def agreement(
    cells: Sequence[Cell],
    others: Sequence[Cell],
    own: Sequence[Activity],
    far: Sequence[Activity],
    side: Literal["a", "b"],
) -> float:
    """Of each activity's partners on the far side, the share of time that both have of what either has; the mean over
    all activities, by their time. 1 where both say that there is none."""
    one, other = partners(cells, side), partners(others, side)
    agreed = 0.0
    for at, activity in enumerate(own):
        either, both = (
            sum(far[each].duration_us for each in some) for some in (one[at] | other[at], one[at] & other[at])
        )
        agreed += activity.duration_us * (both / either if either else 1.0)
    return agreed / sum(each.duration_us for each in own)


def partners(cells: Sequence[Cell], side: Literal["a", "b"]) -> dict[int, frozenset[int]]:
    if side == "a":
        return {at: frozenset(cell.b) for cell in cells for at in cell.a}
    return {at: frozenset(cell.a) for cell in cells for at in cell.b}


def test_every_committed_run_has_a_floor() -> None:
    assert sorted(FLOORS) == sorted(each.name for each in RUNS)


@pytest.mark.parametrize("run", FLOORS)
def test_alignment_says_mostly_what_provenance_says(run: str) -> None:
    a, b = sides_of(run)
    assert a.sequence is not None
    assert b.sequence is not None
    told, _ = find_cells(a, b)
    assert told is not None
    assert why_no_provenance(a, b) is None
    found = align(a.sequence, b.sequence)
    one, other = a.sequence.activities, b.sequence.activities
    shares = agreement(told, found, one, other, "a"), agreement(told, found, other, one, "b")
    assert min(share - floor for share, floor in zip(shares, FLOORS[run], strict=True)) >= 0, shares
