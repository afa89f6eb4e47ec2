"""Refuses what says nothing of the code: sides of other work, or of another GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracekit.errors import TracekitError

if TYPE_CHECKING:
    from tracekit.model.comparison import Side


def refuse_to_gate(a: Side, b: Side) -> None:
    """Raises TracekitError where a gate would compare other work, or another GPU."""
    if different := _differences(a, b):
        raise TracekitError(f"--gate compares like with like: {' '.join(different)}")


def refuse_side_by_side(sides: Sequence[Side], paths: Sequence[str]) -> None:
    """Raises TracekitError where a run does other work than the first, or ran on another GPU: their figures differ
    whatever the code."""
    for side, path in zip(sides[1:], paths[1:], strict=True):
        if different := _differences(sides[0], side):
            raise TracekitError(
                f"{paths[0]} and {path} cannot stand side by side: {different[0]} Compare two of them at a time, or "
                "record runs that differ in --mode or --scope alone"
            )


def _differences(a: Side, b: Side) -> tuple[str, ...]:
    from tracekit.comparison.judging.fairness import find_other_work
    from tracekit.report.words.notes import note_sentences

    return note_sentences(find_other_work(a, b))
