"""Does a change keep within what was allowed? Answered pass or fail only where the figures are certain enough."""

import math
import re
from typing import get_args

import numpy as np

from tracekit.comparison.judging import thresholds
from tracekit.comparison.judging.estimates import MEASURES, Measured, is_slight
from tracekit.comparison.judging.processes import process_medians
from tracekit.errors import TracekitError
from tracekit.model.comparison import Comparison
from tracekit.model.estimate import Doubt, Estimate, Reason, compare_estimates, exactly
from tracekit.model.gate import Checked, Condition, Gate, LimitKind, Metric, Outcome, RankMetric
from tracekit.model.option import MOST_PROCESSES
from tracekit.statements import reasons as statements
from tracekit.statistics.interval import NORMAL, t_quantile

#: What each metric is measured in, and the factor of each unit that may be written.
TIME = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
SIZE = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
UNITS: dict[Metric, dict[str, float]] = {
    **{metric: {} for metric in get_args(Metric)},
    **dict.fromkeys(("wall", "busy", "idle", *get_args(RankMetric)), TIME),
    "memory": SIZE,
}
#: What is assumed of processes that were not timed, and stands among the doubts where nothing was decided.
AMONG_DOUBTS = (statements.ProcessSpreadAssumed, statements.NoiseForProcessSpread, statements.JobSpreadAssumed)
WRITTEN = re.compile(
    r"\s*(?P<metric>[a-z_]+)\s*<=\s*(?P<sign>[+-]?)(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|[A-Za-zµ]*)\s*"
)


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """`wall<=+3%,kernels<=+0,memory<=40GiB`. A limit with a sign or `%` is a change from the base, else a value.

    Raises TracekitError that shows how a condition is written.
    """
    conditions = []
    for written in filter(None, map(str.strip, text.split(","))):
        match = WRITTEN.fullmatch(written)
        if match is None or match["metric"] not in UNITS:
            raise TracekitError(
                f'"{written}" is not a condition: write METRIC<=LIMIT, like "wall<=+3%", "kernels<=+0" or'
                f' "memory<=40GiB"; metrics are {", ".join(UNITS)}'
            )
        metric: Metric = match["metric"]
        number, unit, units = float(f"{match['sign']}{match['number']}"), match["unit"], UNITS[metric]
        # Nothing is nothing in any unit.
        if unit != "%" and (unit or (units and number)) and unit not in units:
            known = f"one of {', '.join(units)} or %" if units else "none, or %"
            raise TracekitError(f'"{written}": the unit of {metric} is {known}')
        kind: LimitKind = "relative" if unit == "%" else "change" if match["sign"] else "value"
        limit = number / 100 if kind == "relative" else number * units.get(unit, 1.0)
        conditions.append(Condition(metric, kind, limit, written))
    if not conditions:
        raise TracekitError('--gate is empty: pass a condition like "wall<=+3%"')
    return tuple(conditions)


def check(comparison: Comparison, conditions: tuple[Condition, ...], taken_for: Outcome | None = None) -> Gate:
    """What became of each condition; `taken_for` is what it ends as where it cannot be decided. The sides are of the
    same work and GPU."""
    return Gate(tuple(_check(comparison, condition) for condition in conditions), taken_for)


def of_ranks(conditions: tuple[Condition, ...]) -> Condition | None:
    """The first condition that only runs over several ranks can meet."""
    return next((each for each in conditions if each.metric in get_args(RankMetric)), None)


def _check(comparison: Comparison, condition: Condition) -> Checked:
    measured = MEASURES[condition.metric](comparison)
    own = condition.kind == "value"
    estimate, base, new = measured.own if own else measured.given_base, measured.base, measured.new
    if estimate is None:
        unknown = measured.own_unknown if own else measured.unknown
        return Checked(condition, "inconclusive", base, new, None, None, (unknown,))

    def limited(figure: float) -> float:
        # What the condition limits of a figure; infinite for more than a base of 0, as a share.
        if own or base is None:
            return figure
        if condition.kind == "change":
            return figure - base
        return figure / base - 1 if base else 0.0 if figure == base else math.inf

    value, low, high, lowest, highest = map(limited, (estimate.value, estimate.low, estimate.high, *estimate.bounds))
    outcome = _decide(condition.limit, Estimate(value, lowest, highest))
    assumptions = estimate.assumptions
    reasons: tuple[Reason, ...]
    if outcome == "inconclusive":
        within_floor = _decide(condition.limit, Estimate(value, low, high)) != "inconclusive"
        reasons = (_why_open(condition, base, estimate, within_floor=within_floor),)
        if condition.metric == "wall":
            reasons += _enough_processes(comparison, estimate, _allowed(condition, measured), own=own)
        assumptions = tuple(each for each in assumptions if not isinstance(each, AMONG_DOUBTS))
    elif outcome == "fail" and (tolerance := _tolerance(condition, measured, estimate)):
        outcome, reasons = "pass", (tolerance,)
    elif estimate.low < estimate.high:
        reasons = (statements.WholeInterval(),)
    else:
        # How much was matched stands among what is assumed.
        reasons = () if estimate.basis == "matching" else (statements.Exact(),)
    reasons += assumptions
    if math.isinf(low) or math.isinf(high):
        reasons = (*(() if outcome == "fail" else reasons), statements.NoShareOf0())
        return Checked(condition, outcome, base, new, None, None, reasons)
    return Checked(condition, outcome, base, new, low, high, reasons)


def _decide(limit: float, limited: Estimate) -> Outcome:
    # A limit of +3 % is met at 3 %, whatever the last bit of the division.
    slack = 1e-9 * max(abs(limit), 1.0)
    order = compare_estimates(limited, exactly(limit + slack))
    return "inconclusive" if order is None else "pass" if order == "smaller" else "fail"


def _tolerance(condition: Condition, measured: Measured, estimate: Estimate) -> Reason | None:
    """Why what is beyond its limit passes: a time by less than the floors, of forms of one run the time that rounds
    give, where medians may say another; memory by less than the allocator's slack. None where it does not."""
    if measured.new is None:
        return None
    excess = (measured.new if estimate.floor is None else estimate.value) - _allowed(condition, measured)
    if UNITS[condition.metric] is TIME and is_slight(excess, _base(measured)):
        return statements.Slight()
    if condition.metric == "memory" and excess <= thresholds.MEMORY_SLACK:
        return statements.AllocatorSlack(slack_bytes=thresholds.MEMORY_SLACK)
    return None


def _allowed(condition: Condition, measured: Measured) -> float:
    """The most that B's figure may be, in the metric's unit."""
    base = _base(measured)
    allowed = {"relative": base * (1 + condition.limit), "change": base + condition.limit, "value": condition.limit}
    return allowed[condition.kind]


def _base(measured: Measured) -> float:
    # A limit of B's own figure asks for no base.
    return (measured.new or 0.0) if measured.base is None else measured.base


def _why_open(condition: Condition, base: float | None, estimate: Estimate, *, within_floor: bool) -> Reason:
    """What makes the interval hold the limit, the largest part first, each in the limit's own terms."""

    def of_limit(each: Doubt) -> statements.DoubtOfLimit:
        if condition.kind == "relative" and base:
            return statements.DoubtOfLimit(each.code, by_share=each.by / base)
        return statements.DoubtOfLimit(each.code, by_us=each.by)

    if within_floor and estimate.floor:
        return statements.WithinFloor(doubt=of_limit(estimate.floor))
    doubts = sorted(estimate.doubts, key=lambda each: -each.by)
    return statements.HoldsLimit(doubts=[of_limit(each) for each in doubts if each.by])


def _enough_processes(comparison: Comparison, estimate: Estimate, limit_us: float, *, own: bool) -> tuple[Reason, ...]:
    """The fewest processes a side whose interval would leave the limit out, were the call to stay as measured; or that
    not even the most that may be asked for would do. Nothing of sides that were timed together, of jobs of ranks, and
    where the spread of calls alone holds the limit."""
    if (comparison.verdict.basis != "apart" and not own) or any(each.code == "other_jobs" for each in estimate.doubts):
        return ()
    medians = [process_medians(side) for side in ((comparison.b,) if own else (comparison.a, comparison.b))]
    if limit_us <= 0 or estimate.value <= 0 or not all(medians):
        return ()
    apart = abs(math.log(estimate.value / limit_us))
    if apart <= math.hypot(*(min(each.half_width for each in side) for side in medians)):
        return ()
    # The standard deviation of the difference of one process of each side, of logarithms: as the several of a side
    # differ, which stand for the other side too where that has one; else as is assumed of one process.
    several = [float(np.std([each.middle for each in side], ddof=1)) for side in medians if len(side) > 1]
    if several:
        deviation = math.hypot(*several) * math.sqrt(len(medians) / len(several))
    else:
        deviation = math.hypot(*(each.by for each in estimate.doubts)) / estimate.value / NORMAL
    for processes in range(max(map(len, medians)) + 1, MOST_PROCESSES + 1):
        if t_quantile(len(medians) * (processes - 1)) * deviation / math.sqrt(processes) < apart:
            return (statements.ProcessesWouldDo(processes=processes),)
    return (statements.NoProcessesWouldDo(most=MOST_PROCESSES),)
