"""A recording that knows no operators borrows those of another one of the same work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tracekit.comparison.matching.operators import without_number
from tracekit.comparison.matching.subsequence import common_subsequence
from tracekit.model.sequence import Activity, OperatorSource, Sequence

#: A recording lacks operators when more than this share of its activities has none.
LACKING = 0.1


def lacks_operators(sequence: Sequence) -> bool:
    """CUDA activity alone was recorded, or CUDA graphs were replayed."""
    lacking = sum(activity.operator is None for activity in sequence.activities)
    return lacking > LACKING * len(sequence.activities)


def lend_operators(sequence: Sequence, other: Sequence, source: OperatorSource) -> Sequence:
    """The sequence, with the operators of `other` where it has none of its own.

    Kernels are told by their names, in order: the same work makes the same sequence. Where names differ, what stands in
    the same order on both sides is lent; the rest keeps no operator.
    """
    lenders = other.activities * max(round(len(sequence.activities) / max(len(other.activities), 1)), 1)
    activities = list(sequence.activities)
    for at, lender in _pairs(sequence.activities, lenders):
        if activities[at].operator is None and lenders[lender].operator is not None:
            activities[at] = _lent(activities[at], lenders[lender], round_=lender // len(other.activities))
    lent = activities != list(sequence.activities)
    return replace(sequence, activities=tuple(activities), operators=source if lent else sequence.operators)


def _pairs(one: tuple[Activity, ...], other: tuple[Activity, ...]) -> Iterable[tuple[int, int]]:
    names, lenders = ([without_number(each.name) for each in side] for side in (one, other))
    if names == lenders:
        return ((at, at) for at in range(len(names)))
    return common_subsequence(names, lenders)


def _lent(activity: Activity, lender: Activity, *, round_: int) -> Activity:
    """Calls of the lender are numbered apart from one's own."""
    call, operator_call = (
        None if number is None else -1 - number - round_ * (1 << 32) for number in (lender.call, lender.operator_call)
    )
    return replace(activity, operator=lender.operator, within=lender.within, call=call, operator_call=operator_call)
