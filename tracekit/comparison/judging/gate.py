"""Does a change keep within what was allowed? Answered pass or fail only where the figures are certain enough."""

from __future__ import annotations

import math
import re

from tracekit.comparison.judging.ranges import RANGES, Doubt, Range, Span, is_slight
from tracekit.errors import TracekitError
from tracekit.model.comparison import Comparison
from tracekit.model.gate import Checked, Condition, Gate, LimitKind, Metric, Outcome
from tracekit.numbers import duration, percent

#: What each metric is measured in, and the factor of each unit that may be written.
TIME = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
SIZE = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
UNITS: dict[Metric, dict[str, float]] = {
    "wall": TIME,
    "busy": TIME,
    "idle": TIME,
    "kernels": {},
    "launches": {},
    "memory": SIZE,
    "recompiles": {},
    "breaks": {},
    "groups_lost": {},
}
NO_SHARE = "A has 0, and anything is more than any share of that: limit the change or B's own figure"
WRITTEN = re.compile(
    r"\s*(?P<metric>[a-z_]+)\s*<=\s*(?P<sign>[+-]?)(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|[A-Za-zµ]*)\s*"
)


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """`wall<=+3%,kernels<=+0,memory<=40GiB`. A limit with a sign or `%` is a change from the base, else a value.

    Raises TracekitError that shows how a condition is written.
    """
    conditions = tuple(_parse(part) for part in text.split(",") if part.strip())
    if not conditions:
        raise TracekitError('--gate has no condition: write one like "wall<=+3%"')
    return conditions


def _parse(text: str) -> Condition:
    match = WRITTEN.fullmatch(text)
    if match is None or match["metric"] not in UNITS:
        raise TracekitError(
            f'"{text.strip()}" is no condition: write METRIC<=LIMIT, like "wall<=+3%", "kernels<=+0" or'
            f' "memory<=40GiB"; metrics are {", ".join(UNITS)}'
        )
    metric: Metric = match["metric"]
    number, unit = float(f"{match['sign']}{match['number']}"), match["unit"]
    if unit == "%":
        return Condition(metric, "relative", number / 100, text.strip())
    units = UNITS[metric]
    # Nothing is nothing in any unit.
    if (unit or (units and number)) and unit not in units:
        known = f"one of {', '.join(units)} or %" if units else "none, or %"
        raise TracekitError(f'"{text.strip()}": the unit of {metric} is {known}')
    kind: LimitKind = "change" if match["sign"] else "value"
    return Condition(metric, kind, number * units.get(unit, 1.0), text.strip())


def check(comparison: Comparison, conditions: tuple[Condition, ...], taken_for: Outcome | None = None) -> Gate:
    """What became of each condition; `taken_for` is what it ends as where it cannot be decided. The sides are of the
    same work and GPU."""
    return Gate(tuple(_check(comparison, condition) for condition in conditions), taken_for)


def _check(comparison: Comparison, condition: Condition) -> Checked:
    measured = RANGES[condition.metric](comparison)
    own = condition.kind == "value"
    span = measured.own if own else measured.beside
    if span is None:
        unknown = measured.own_unknown if own else measured.unknown
        return Checked(condition, "inconclusive", measured.base, measured.new, None, None, unknown)
    low, high = (_in_terms_of(condition.kind, measured.base, each) for each in (span.low, span.high))
    outcome = _decide(condition.limit, *(_in_terms_of(condition.kind, measured.base, each) for each in span.held_to))
    because = _because(condition, measured, span, outcome)
    if outcome == "fail" and _is_slight(condition, measured, span):
        outcome, because = "pass", "the limit is exceeded by less than is held against anybody (docs/gate.md)"
    # Where nothing was decided what is assumed of other processes is among the doubts.
    if span.assumed and not (outcome == "inconclusive" and span.counted):
        because = f"{because}; {span.assumed}"
    if math.isinf(low) or math.isinf(high):
        because = NO_SHARE if outcome == "fail" else f"{because}; {NO_SHARE}"
        return Checked(condition, outcome, measured.base, measured.new, None, None, because)
    return Checked(condition, outcome, measured.base, measured.new, low, high, because)


def _is_slight(condition: Condition, measured: Range, span: Span) -> bool:
    """Whether a time is beyond its limit by less than the floors; of forms of one run the time that rounds tell, where
    medians may say another."""
    if UNITS[condition.metric] is not TIME or measured.new is None:
        return False
    # A limit of B's own time asks for no base.
    base = measured.new if measured.base is None else measured.base
    allowed = {
        "relative": base * (1 + condition.limit),
        "change": base + condition.limit,
        "value": condition.limit,
    }
    figure = measured.new if span.middle is None else span.middle
    return is_slight(figure - allowed[condition.kind], base)


def _in_terms_of(kind: LimitKind, base: float | None, value: float) -> float:
    """What a condition limits, of a figure that may be `value`; infinite for more than a base of 0, as a share."""
    if kind == "value" or base is None:
        return value
    if kind == "change":
        return value - base
    if base:
        return value / base - 1
    return 0.0 if value == base else math.inf


def _decide(limit: float, low: float, high: float) -> Outcome:
    # A limit of +3 % is met at 3 %, whatever the last bit of the division.
    slack = 1e-9 * max(abs(limit), 1.0)
    if high <= limit + slack:
        return "pass"
    return "fail" if low > limit + slack else "inconclusive"


def _because(condition: Condition, measured: Range, span: Span, outcome: Outcome) -> str:
    if outcome != "inconclusive":
        return span.settled if span.low == span.high else "all of its interval says so"
    ends = (_in_terms_of(condition.kind, measured.base, each) for each in (span.low, span.high))
    if _decide(condition.limit, *ends) != "inconclusive":
        floor = Doubt(span.floor, *span.floored)
        return f"the limit is no further from the figure than {_doubt(condition, measured.base, floor)}"
    doubts = sorted(span.doubts, key=lambda doubt: -doubt.by)
    told = [_doubt(condition, measured.base, doubt) for doubt in doubts if doubt.by]
    return "its interval holds the limit" + (f": {'; '.join(told)}" if told else "")


def _doubt(condition: Condition, base: float | None, doubt: Doubt) -> str:
    """`±2.0 % is how calls differ (more calls narrow that: --iterations)`, in the limit's own terms."""
    by = percent(doubt.by / base) if condition.kind == "relative" and base else duration(doubt.by)
    return f"±{by} is {doubt.what} ({doubt.narrowed})"
