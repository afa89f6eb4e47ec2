"""What was demanded of the change, and whether it was met."""

from __future__ import annotations

from collections.abc import Callable

from tracekit.model.comparison import Comparison
from tracekit.model.gate import Checked, Gate, Metric
from tracekit.numbers import MINUS, count, duration, percent, size
from tracekit.report.words.estimates import reason_words

OUTCOMES = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}
TIMES: tuple[Metric, ...] = ("wall", "busy", "idle")


def gate_outcome(gate: Gate) -> str:
    """`Gate: failed`; of one that could not be decided what it ends as, where that was asked."""
    taken_for = gate.taken_for if gate.outcome == "inconclusive" else None
    ends = {"pass": ", which passes here", "fail": ", which fails here"}
    asked = f"{ends[taken_for]} (--inconclusive {taken_for})" if taken_for in ends else ""
    return f"Gate: {OUTCOMES[gate.outcome]}{asked}"


def gate_sentences(comparison: Comparison) -> tuple[str, ...]:
    """`wall<=+3%: failed. 1.00 ms to 1.05 ms, +4.6 % to +5.4 %; all of its interval says so.`"""
    return tuple(map(_sentence, comparison.gate.checked)) if comparison.gate else ()


def _sentence(checked: Checked) -> str:
    figures = _figures(checked)
    told = f". {figures}" if figures else ""
    return f"{checked.condition.text}: {OUTCOMES[checked.outcome]}{told}; {reason_words(checked.reasons)}."


def _figures(checked: Checked) -> str | None:
    """Of both sides, and what is known of what is limited; None where neither side has one."""
    if checked.base is None and checked.new is None:
        return None
    if checked.condition.metric == "groups_lost" and checked.low is not None and checked.high is not None:
        most = count(checked.high)
        places = most if checked.low == checked.high else f"{count(checked.low)} to {most}"
        return f"{places} {'place' if places == '1' else 'places'} in a step where B needs more kernels than A"
    both = f"{_shown(checked)(checked.base)} to {_shown(checked)(checked.new)}"
    interval = _interval(checked)
    return f"{both}, {interval}" if interval else both


def _shown(checked: Checked) -> Callable[[float | None], str]:
    metric = checked.condition.metric
    return duration if metric in TIMES else size if metric == "memory" else count


def _interval(checked: Checked) -> str | None:
    """What is known of the limited figure, in the limit's own terms; None where that is nothing."""
    if checked.low is None or checked.high is None:
        return None
    low, high = (_in_terms(checked, value) for value in (checked.low, checked.high))
    return low if low == high else f"{low} to {high}"


def _in_terms(checked: Checked, value: float) -> str:
    sign = "+" if value > 0 and checked.condition.kind != "value" else ""
    text = percent(value) if checked.condition.kind == "relative" else _shown(checked)(value)
    return f"{sign}{text}".replace("-", MINUS)
