"""What was demanded of the change, and whether it was met."""

from __future__ import annotations

from collections.abc import Callable

from tracekit.model.comparison import Comparison
from tracekit.model.gate import Checked, Metric
from tracekit.numbers import MINUS, MISSING, count, duration, percent, size
from tracekit.report.table import Column, Table

OUTCOMES = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}
TIMES: tuple[Metric, ...] = ("wall", "busy", "idle")


def gate_table(comparison: Comparison) -> Table | None:
    """A row for each condition; None without a gate."""
    gate = comparison.gate
    if gate is None:
        return None
    rows = tuple(
        (
            each.condition.text,
            OUTCOMES[each.outcome],
            _shown(each)(each.base),
            _shown(each)(each.new),
            _interval(each),
            each.because,
        )
        for each in gate.checked
    )
    return Table(
        caption=f"Gate: {OUTCOMES[gate.outcome]}",
        columns=(
            Column("Condition", numeric=False),
            Column("Outcome", numeric=False),
            Column("A"),
            Column("B"),
            Column("Limited figure, from to"),
            Column("Why", numeric=False),
        ),
        rows=rows,
        note="B is held against A. A limit with a sign or % is of the change, one without of B's figure itself.",
    )


def gate_sentences(comparison: Comparison) -> tuple[str, ...]:
    """`wall<=+3%: failed. 1.00 ms to 1.05 ms, +4.6 % to +5.4 %; all of its interval says so.`"""
    return tuple(
        f"{each.condition.text}: {OUTCOMES[each.outcome]}."
        f" {_shown(each)(each.base)} to {_shown(each)(each.new)}, {_interval(each)}; {each.because}."
        for each in (comparison.gate.checked if comparison.gate else ())
    )


def _shown(checked: Checked) -> Callable[[float | None], str]:
    metric = checked.condition.metric
    return duration if metric in TIMES else size if metric == "memory" else count


def _interval(checked: Checked) -> str:
    """What is known of the limited figure, in the limit's own terms."""
    if checked.low is None or checked.high is None:
        return MISSING
    low, high = (_in_terms(checked, value) for value in (checked.low, checked.high))
    return low if low == high else f"{low} to {high}"


def _in_terms(checked: Checked, value: float) -> str:
    sign = "+" if value > 0 and checked.condition.kind != "value" else ""
    text = percent(value) if checked.condition.kind == "relative" else _shown(checked)(value)
    return f"{sign}{text}".replace("-", MINUS)
