"""Why compiled code counts as accurate as eager code or not, in English."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracekit.report.words.saying import say

OFF = "{place} is off by {compiled:.2g} compiled and {eager:.2g} eager, relative to {reference}"
INTEGERS = (
    "{place}: {compiled_share:percent 1} of the integers are {reference}'s compiled, {eager_share:percent 1} eager"
)
REASONS = {
    "equal": "Both forms return the same numbers, every one of them",
    "same_without_finite_numbers": "{place} is the same, but holds no finite number",
    "no_tensors": "The outputs hold no tensors that could be compared",
    "not_comparable": "{place} {problem}",
    "not_held_against_reference": "{place} could not be held against {reference} in either form",
    "error": OFF + "; {allowed:.2g} is allowed",
    "largest_error": "{place} has one number off by {compiled:.2g} compiled and at most {eager:.2g} eager, from"
    " {reference}; {allowed:.2g} is allowed",
    "rounding_amplified": OFF + ": the model amplifies rounding until it hides everything else",
    "no_numbers": "{place}: there is no number to measure an error by",
    "no_finite_numbers": "{place} holds no finite number to hold against {reference}",
    "zeros": "{place} is 0 in {reference}; compiled is off by up to {compiled:.2g}, eager by {eager:.2g}",
    "not_finite": "{place}: {more:,} more numbers are NaN or infinite on one side and not {beside}",
    "integers": INTEGERS,
    "integers_diverge": INTEGERS + ": one choice between near equals changes all that follow",
    "integers_beside_eager": "{place}: {share:percent 1} of the integers are eager's",
    "difference": "{place} differs by {compiled:.2g} between the forms; {allowed:.2g} is tolerated",
}


def accuracy_because(code: str, facts: Mapping[str, Any]) -> str:
    """`The output is off by 0.035 compiled and 0.01 eager, relative to float32; 0.034 is allowed.`"""
    path, reference, own = facts.get("path"), facts.get("reference"), facts.get("compiled_from_itself")
    place, beside = f"Output {path}" if path else "The output", f"in {reference}" if reference else "eager"
    said = say(REASONS[code], {**facts, "place": place, "beside": beside})
    if own is not None:
        said += f", and compiled differs from itself by {own:.2g} from call to call"
    return f"{said}. No reference: {facts['no_reference']}." if facts.get("no_reference") else f"{said}."
