"""Does a change keep within what was allowed? Answered pass or fail only where the figures are certain enough."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from tracekit.comparison.fairness import find_other_work
from tracekit.errors import TracekitError
from tracekit.model.comparison import BUSY_MOVES, Comparison, Side
from tracekit.model.gate import Checked, Condition, Gate, LimitKind, Metric, Outcome

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
WRITTEN = re.compile(
    r"\s*(?P<metric>[a-z_]+)\s*<=\s*(?P<sign>[+-]?)(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|[A-Za-zµ]*)\s*"
)

#: A time that exceeds its limit by less than the larger of these (a share of the base's, microseconds) is not held
#: against anybody, however certain it is.
RELATIVE_FLOOR = 0.005
ABSOLUTE_FLOOR_US = 5.0
#: Added to intervals that know one process of each side. It is assumed, not measured: docs/gate.md.
PROCESS_FLOOR = 0.02


@dataclass(frozen=True)
class Range:
    """A figure of either side and what it may really be: `low` and `high` are the new side's, given the base's."""

    base: float | None
    new: float | None
    low: float | None
    high: float | None


NOT_MEASURED = Range(None, None, None, None)


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


def check(comparison: Comparison, conditions: tuple[Condition, ...]) -> Gate:
    """What became of each condition. Raises TracekitError where the sides are not the same work or GPU."""
    different = tuple(find_other_work(comparison.a, comparison.b))
    if different:
        raise TracekitError(f"--gate compares like with like: {' '.join(different)}")
    return Gate(tuple(_check(comparison, condition) for condition in conditions))


def _check(comparison: Comparison, condition: Condition) -> Checked:
    measured = RANGES[condition.metric](comparison)
    low, high = (_in_terms_of(condition.kind, measured.base, value) for value in (measured.low, measured.high))
    outcome = _decide(condition.limit, low, high)
    because = _because(low, high, outcome)
    if outcome == "fail" and _is_slight(condition, measured):
        outcome, because = "pass", "the limit is exceeded by less than is held against anybody (docs/gate.md)"
    return Checked(condition, outcome, measured.base, measured.new, low, high, because)


def _is_slight(condition: Condition, measured: Range) -> bool:
    """Whether a time is beyond its limit by less than the floors."""
    if UNITS[condition.metric] is not TIME or measured.base is None or measured.new is None:
        return False
    allowed = {
        "relative": measured.base * (1 + condition.limit),
        "change": measured.base + condition.limit,
        "value": condition.limit,
    }
    return measured.new - allowed[condition.kind] < max(RELATIVE_FLOOR * measured.base, ABSOLUTE_FLOOR_US)


def _in_terms_of(kind: LimitKind, base: float | None, value: float | None) -> float | None:
    if value is None or kind == "value":
        return value
    if base is None:
        return None
    if kind == "change":
        return value - base
    if base:
        return value / base - 1
    return 0.0 if value == base else math.inf


def _decide(limit: float, low: float | None, high: float | None) -> Outcome:
    if low is None or high is None:
        return "inconclusive"
    # A limit of +3 % is met at 3 %, whatever the last bit of the division.
    slack = 1e-9 * max(abs(limit), 1.0)
    if high <= limit + slack:
        return "pass"
    return "fail" if low > limit + slack else "inconclusive"


def _because(low: float | None, high: float | None, outcome: Outcome) -> str:
    if low is None:
        return "it was not measured on both sides"
    if outcome != "inconclusive":
        return "the figure is exact" if low == high else "all of its interval says so"
    return "its interval holds the limit: measure more calls"


def _wall(comparison: Comparison) -> Range:
    verdict = comparison.verdict
    if verdict.a_wall_us is None or verdict.b_wall_us is None:
        return NOT_MEASURED
    if verdict.ci95 is None:
        return Range(verdict.a_wall_us, verdict.b_wall_us, None, None)
    low, high = (verdict.a_wall_us / speedup for speedup in reversed(verdict.ci95))
    margin = 0.0 if _together(comparison) else PROCESS_FLOOR * verdict.b_wall_us
    margin = max(margin, (verdict.noise_floor or 0.0) * verdict.b_wall_us)
    return Range(verdict.a_wall_us, verdict.b_wall_us, low - margin, high + margin)


def _together(comparison: Comparison) -> bool:
    """Whether both sides ran in the same process: two forms of one run did."""
    one, other = (side.path.rpartition("/")[0] for side in (comparison.a, comparison.b))
    return one == other and comparison.a.form is not None and comparison.b.form is not None


def _busy(comparison: Comparison) -> Range:
    a, b = comparison.a, comparison.b
    if a.busy_us is None or b.busy_us is None:
        return NOT_MEASURED
    margin = _busy_margin(a) + _busy_margin(b)
    return Range(a.busy_us, b.busy_us, b.busy_us - margin, b.busy_us + margin)


def _busy_margin(side: Side) -> float:
    """By how much GPU time differs from recording to recording: as two of this side's do, else as it was seen to."""
    differs = side.busy_differs_us
    return differs if differs is not None else BUSY_MOVES * (side.busy_us or 0.0)


def _idle(comparison: Comparison) -> Range:
    a_us, b_us = comparison.a.unprofiled_idle_us, comparison.b.unprofiled_idle_us
    wall = _wall(comparison)
    if a_us is None or b_us is None or wall.low is None or wall.high is None or wall.new is None:
        return Range(a_us, b_us, None, None)
    margin = _busy_margin(comparison.a) + _busy_margin(comparison.b)
    below, above = wall.new - wall.low + margin, wall.high - wall.new + margin
    return Range(a_us, b_us, max(b_us - below, 0.0), b_us + above)


def _exact(of: Callable[[Side], float | None]) -> Callable[[Comparison], Range]:
    """A figure that is the same however often it is counted."""

    def measure(comparison: Comparison) -> Range:
        base, new = of(comparison.a), of(comparison.b)
        # A limit of the new side's own figure needs no base: eager code compiles nothing.
        return NOT_MEASURED if new is None else Range(base, new, new, new)

    return measure


def _memory(side: Side) -> float | None:
    return side.form.peak_memory_bytes if side.form else None


def _recompiles(side: Side) -> float | None:
    return side.form.compilation.during_timing if side.form and side.form.compilation else None


def _breaks(side: Side) -> float | None:
    return side.form.compilation.graph_breaks if side.form and side.form.compilation else None


def _groups_lost(comparison: Comparison) -> Range:
    """Groups of the base's kernels that the new side does with more kernels than before, with their repeats."""
    if not comparison.groups:
        return NOT_MEASURED
    lost = math.fsum(group.repeats for group in comparison.groups if group.kind == "defused")
    return Range(0.0, lost, lost, lost)


RANGES: dict[Metric, Callable[[Comparison], Range]] = {
    "wall": _wall,
    "busy": _busy,
    "idle": _idle,
    "kernels": _exact(lambda side: side.kernels_per_step),
    "launches": _exact(lambda side: side.launches_per_step),
    "memory": _exact(_memory),
    "recompiles": _exact(_recompiles),
    "breaks": _exact(_breaks),
    "groups_lost": _groups_lost,
}
