"""Does a change keep within what was allowed? Answered pass or fail only where the figures are certain enough."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from tracekit.comparison.apart import process_medians
from tracekit.comparison.compiling_calls import compilations_while_timed
from tracekit.comparison.fairness import find_other_work
from tracekit.errors import TracekitError
from tracekit.model.comparison import BUSY_MOVES, Comparison, Side
from tracekit.model.gate import Checked, Condition, Gate, LimitKind, Metric, Outcome
from tracekit.statistics.interval import Interval, interval_of_processes

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
#: Two recordings of one process may agree by chance: GPU time is never taken for more certain than this share.
LEAST_BUSY_MARGIN = 0.005

ASSUMED = "±2 % of it are assumed for what differs from process to process, which --repeat-process measures"
ONE_PROCESS = "one process was timed, and what differs from process to process is not in it (--repeat-process)"
MORE_PROCESSES = "processes (--repeat-process)"
OF_THE_OTHER = "{} was timed in one process, which is assumed to differ from others as the processes of {} do"


@dataclass(frozen=True)
class Span:
    """What a figure may really be; `assumed` is what of that was not measured, in words, and `more` what makes it
    narrower."""

    low: float
    high: float
    assumed: str | None = None
    more: str = "calls"

    def widened(self, below: float, above: float) -> Span:
        return replace(self, low=max(self.low - below, 0.0), high=self.high + above)


@dataclass(frozen=True)
class Range:
    """A figure of either side. `beside` is what the new side's may really be, given the base's; `own` the same where
    nothing is held against the base: both None where nobody knows, and then `unknown` may say why."""

    base: float | None
    new: float | None
    beside: Span | None = None
    own: Span | None = None
    unknown: str = "it was not measured on both sides"


NOT_MEASURED = Range(None, None)
COMPILED = "something was compiled inside timed calls, so that times are not of compiled code alone"


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
    span = measured.own if condition.kind == "value" else measured.beside
    low, high = (
        _in_terms_of(condition.kind, measured.base, each) for each in ((span.low, span.high) if span else (None, None))
    )
    outcome = _decide(condition.limit, low, high)
    because = measured.unknown if low is None else _because(low, high, outcome, span.more if span else "")
    if outcome == "fail" and _is_slight(condition, measured):
        outcome, because = "pass", "the limit is exceeded by less than is held against anybody (docs/gate.md)"
    if span and span.assumed:
        because = f"{because}; {span.assumed}"
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


def _because(low: float, high: float | None, outcome: Outcome, more: str) -> str:
    if outcome != "inconclusive":
        return "the figure is exact" if low == high else "all of its interval says so"
    return f"its interval holds the limit: measure more {more}"


def _wall(comparison: Comparison) -> Range:
    verdict, (of_a, of_b) = comparison.verdict, (process_medians(side) for side in (comparison.a, comparison.b))
    if verdict.ci95 is None or not (of_a and of_b):
        return Range(verdict.a_wall_us, verdict.b_wall_us)
    base, new = (_typical(side, of) for side, of in ((comparison.a, of_a), (comparison.b, of_b)))
    if any(compilations_while_timed(side) for side in (comparison.a, comparison.b)):
        return Range(base, new, unknown=COMPILED)
    floor_us, assumed_us = (verdict.noise_floor or 0.0) * new, PROCESS_FLOOR * new
    low, high = (base / speedup for speedup in reversed(verdict.ci95))
    if _together(comparison):
        alone = verdict.processes == 1
        beside = Span(low, high, ONE_PROCESS) if alone else Span(low, high, more=MORE_PROCESSES)
        beside = beside.widened(floor_us, floor_us)
    elif len(of_a) == len(of_b) == 1:
        beside = Span(low, high, ASSUMED).widened(*(max(assumed_us, floor_us),) * 2)
    else:
        beside = Span(low, high, _of_the_other(comparison, len(of_a), len(of_b)), MORE_PROCESSES)
    return Range(base, new, beside, _own_wall(of_b, max(assumed_us, floor_us)))


def _typical(side: Side, processes: tuple[Interval, ...]) -> float:
    """The side's median call; of several processes the mean (of logarithms) of their medians."""
    if len(processes) == 1 and side.wall_us is not None:
        return side.wall_us
    return math.exp(math.fsum(each.middle for each in processes) / len(processes))


def _own_wall(processes: tuple[Interval, ...], assumed_us: float) -> Span:
    if len(processes) == 1:
        (one,) = processes
        return Span(math.exp(one.low), math.exp(one.high), ASSUMED).widened(assumed_us, assumed_us)
    interval = interval_of_processes(processes)
    return Span(math.exp(interval.low), math.exp(interval.high), more=MORE_PROCESSES)


def _of_the_other(comparison: Comparison, a: int, b: int) -> str | None:
    if min(a, b) > 1:
        return None
    labels = comparison.a.label, comparison.b.label
    return OF_THE_OTHER.format(*(labels if a == 1 else labels[::-1]))


def _together(comparison: Comparison) -> bool:
    """Whether both sides ran in the same process: two forms of one run did."""
    return comparison.verdict.basis in ("rounds", "processes")


def _busy(comparison: Comparison) -> Range:
    a, b = comparison.a, comparison.b
    if a.busy_us is None or b.busy_us is None:
        return NOT_MEASURED
    one, other = _busy_margin(a), _busy_margin(b)
    span = Span(b.busy_us, b.busy_us)
    return Range(a.busy_us, b.busy_us, span.widened(one + other, one + other), span.widened(other, other))


def _busy_margin(side: Side) -> float:
    """By how much GPU time differs from recording to recording: as two of this side's do, else as it was seen to."""
    busy_us, differs = side.busy_us or 0.0, side.busy_differs_us
    return BUSY_MOVES * busy_us if differs is None else max(differs, LEAST_BUSY_MARGIN * busy_us)


def _idle(comparison: Comparison) -> Range:
    a, b = comparison.a, comparison.b
    wall = _wall(comparison)
    if a.unprofiled_idle_us is None or b.unprofiled_idle_us is None or wall.new is None:
        return NOT_MEASURED
    one, other = _busy_margin(a), _busy_margin(b)

    def around(span: Span | None, margin: float) -> Span | None:
        if span is None or wall.new is None or b.unprofiled_idle_us is None:
            return None
        idle_us = replace(span, low=b.unprofiled_idle_us, high=b.unprofiled_idle_us)
        return idle_us.widened(wall.new - span.low + margin, span.high - wall.new + margin)

    beside, own = around(wall.beside, one + other), around(wall.own, other)
    return Range(a.unprofiled_idle_us, b.unprofiled_idle_us, beside, own, wall.unknown)


def _exact(of: Callable[[Side], float | None]) -> Callable[[Comparison], Range]:
    """A figure that is the same however often it is counted."""

    def measure(comparison: Comparison) -> Range:
        base, new = of(comparison.a), of(comparison.b)
        # A limit of the new side's own figure needs no base: eager code compiles nothing.
        return NOT_MEASURED if new is None else Range(base, new, Span(new, new), Span(new, new))

    return measure


def _memory(side: Side) -> float | None:
    return side.form.peak_memory_bytes if side.form else None


def _recompiles(side: Side) -> float | None:
    return compilations_while_timed(side) if side.form and side.form.compilation else None


def _breaks(side: Side) -> float | None:
    return side.form.compilation.graph_breaks if side.form and side.form.compilation else None


def _groups_lost(comparison: Comparison) -> Range:
    """Groups of the base's kernels that the new side does with more kernels than before, with their repeats."""
    if not comparison.groups:
        return NOT_MEASURED
    lost = math.fsum(group.repeats for group in comparison.groups if group.kind == "defused")
    return Range(0.0, lost, Span(lost, lost), Span(lost, lost))


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
