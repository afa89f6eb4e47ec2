"""A comparison's answer: what was demanded, and the waterfall between both sides."""

import math
from collections import Counter

from tracekit.model.comparison import Comparison, Side
from tracekit.model.gate import Checked
from tracekit.model.groups import Label
from tracekit.model.waterfall import WaterfallPart
from tracekit.names import short_kernel_name
from tracekit.numbers import MINUS, count, counted, duration, duration_change, percent, size
from tracekit.report.document import GateText, Table, columns
from tracekit.report.sections.groups import distinct_places
from tracekit.report.words.common import cause_words, shared_scope
from tracekit.report.words.groups import label_words

OUTCOMES = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}
#: Metrics of a gate that are times.
TIMES = ("wall", "busy", "idle", "exposed", "waiting")
#: Less than a nanosecond.
ROUNDING_US = 1e-3


def gate_text(comparison: Comparison) -> GateText | None:
    """What was demanded, and of a gate that could not be decided what it ends as, where that was asked; None where
    nothing was demanded."""
    if (gate := comparison.gate) is None:
        return None
    taken_for = gate.taken_for if gate.outcome == "inconclusive" else None
    ends = {"pass": ", which passes here", "fail": ", which fails here"}
    asked = f"{ends[taken_for]} (--inconclusive {taken_for})" if taken_for in ends else ""
    conditions = []
    for checked in gate.checked:
        # `wall<=+3%: failed. 1.00 ms to 1.05 ms, +4.6 % to +5.4 %; all of its interval says so.`
        said = ". ".join(filter(None, (OUTCOMES[checked.outcome], _gate_figures(checked))))
        conditions.append((checked.outcome, f"{checked.condition.text}: {said}; {checked.because}."))
    return GateText(f"Gate: {OUTCOMES[gate.outcome]}{asked}", gate.ends_as, tuple(conditions))


def _gate_figures(checked: Checked) -> str | None:
    """Of both sides, and what is known of what is limited; None where neither side has one."""
    metric, low, high = checked.condition.metric, checked.low, checked.high
    if checked.base is None and checked.new is None:
        return None
    if metric == "groups_lost" and low is not None and high is not None:
        places = count(high) if low == high else f"{count(low)} to {count(high)}"
        return f"{places} {'place' if places == '1' else 'places'} per step where B needs more kernels"
    shown = duration if metric in TIMES else size if metric == "memory" else count

    def in_terms_of_the_limit(value: float) -> str:
        sign = "+" if value > 0 and checked.condition.kind != "value" else ""
        return f"{sign}{percent(value) if checked.condition.kind == 'relative' else shown(value)}".replace("-", MINUS)

    both = f"{shown(checked.base)} to {shown(checked.new)}"
    if low is None or high is None:
        return both
    ends = dict.fromkeys((in_terms_of_the_limit(low), in_terms_of_the_limit(high)))
    return f"{both}, {' to '.join(ends)}"


#: What the two ends go by.
Names = tuple[str, str]
LETTERS: Names = ("A", "B")


def part_label(part: WaterfallPart) -> str:
    words = label_words(part.label)
    if part.kind == "communication":
        return words
    return f"idle: {cause_words(words)}" if part.kind == "idle" else f"GPU: {short_kernel_name(words)}"


def part_labels(comparison: Comparison) -> tuple[str, ...]:
    """The label of each part; what several groups are called alike is followed by the module."""
    parts = comparison.waterfall.parts if comparison.waterfall else ()
    labels = [part_label(part) for part in parts]
    repeated = Counter(labels)
    if not any(number > 1 for number in repeated.values()):
        return tuple(labels)
    # The place of the group that a part was made from, by the part's label and change.
    places: dict[tuple[Label, float], str] = {}
    for group, place in zip(comparison.groups, distinct_places(comparison.groups), strict=True):
        places.setdefault((group.label, group.delta_us), place)
    return tuple(
        f"{label}, {place}" if repeated[label] > 1 and (place := places.get((part.label, part.delta_us), "")) else label
        for part, label in zip(parts, labels, strict=True)
    )


#: Parts that make less of the change than this have one row together, where they are drawn.
LEAST_PART = 0.01


def waterfall_changes(comparison: Comparison) -> tuple[tuple[str, float], ...]:
    """The parts worth drawing with their microseconds, the rest of them in one, and the residual; they add up to the
    change. Empty where the sides have no waterfall."""
    waterfall = comparison.waterfall
    if waterfall is None:
        return ()
    parts = list(zip(part_labels(comparison), (part.delta_us for part in waterfall.parts), strict=True))
    least = LEAST_PART * max(abs(us) for us in (waterfall.b_us - waterfall.a_us, *(us for _, us in parts)))
    small = [us for _, us in parts if abs(us) < least]
    rest = [(counted(len(small), "smaller part"), math.fsum(small))] if any(small) else []
    large = [(label, us) for label, us in parts if abs(us) >= least and us]
    return (*large, *rest, ("residual", waterfall.residual_us))


def waterfall_table(comparison: Comparison, names: Names = LETTERS) -> Table | None:
    """From A's time to B's, which go by these names; None when the sides have no waterfall."""
    waterfall = comparison.waterfall
    if waterfall is None:
        return None
    calibrated = waterfall.basis == "unprofiled"
    ends = "wall time" if calibrated else "profiled window"
    level, rows = waterfall.a_us, [(f"{_end(names[0], comparison.a)}, {ends}", "", duration(waterfall.a_us), "")]
    for part, label in zip(waterfall.parts, part_labels(comparison), strict=True):
        level += part.delta_us
        recorded = part.recorded_delta_us
        shown = duration_change(recorded) if recorded is not None else ""
        rows.append((label, duration_change(part.delta_us), duration(level), shown))
    rows.append(("residual", duration_change(waterfall.residual_us), duration(waterfall.b_us), ""))
    rows.append((f"{_end(names[1], comparison.b)}, {ends}", "", duration(waterfall.b_us), ""))
    caption, kept = f"From {names[0]} to {names[1]}, {shared_scope(comparison, names)}", 4 if calibrated else 3
    heads = columns("Part", figures=("Change", "Running total", "Profiled"))[:kept]
    return Table(caption, heads, tuple(row[:kept] for row in rows), waterfall_note(comparison, names))


def _end(name: str, side: Side) -> str:
    return name if name == side.label else f"{name}: {side.label}"


def waterfall_note(comparison: Comparison, names: Names = LETTERS) -> str:
    """That it closes, what became of the time that recording added, and what the residual holds where that is known."""
    closes = f"The changes add up from {names[0]} to {names[1]}."
    waterfall = comparison.waterfall
    if waterfall is None or waterfall.basis == "trace":
        return closes
    sides = tuple(zip(names, (comparison.a, comparison.b), strict=True))
    added, lacking = [], []
    for letter, side in sides:
        if (longer_us := (side.recorded_idle_us or 0.0) - (side.unprofiled_idle_us or 0.0)) > 0:
            added.append(f"{duration(longer_us)} to {letter}")
        elif longer_us < 0:
            lacking.append(f"{duration(-longer_us)} of {letter}'s")
    # Idle time is the rest of the call, and can be trusted as far as GPU time.
    differs = [
        f"{duration(us)} ({percent(us / side.busy_us)}) for {letter}"
        for letter, side in sides
        if (us := side.busy_differs_us) is not None and side.busy_us
    ]
    estimated = all(side.idle_estimate for _, side in sides)
    residuals = [
        f"{duration(us)} of {letter}'s"
        for letter, side in sides
        if estimated and abs(us := side.idle_residual_us or 0.0) > ROUNDING_US
    ]
    told = [closes]
    if differs:
        told.append(f"GPU time differs between two traces by {' and '.join(differs)}: the noise of GPU parts.")
    if comparison.verdict.basis == "processes":
        told.append("It is of the recorded process only.")
    if added:
        how = "est." if estimated else "host causes scaled alike, est."
        told.append(f"Idle parts exclude profiler overhead, {' and '.join(added)} ({how}).")
    if residuals:
        told.append(f"Causes do not explain {' and '.join(residuals)} idle time: in the residual.")
    elif lacking:
        told.append(f"Traces lack {' and '.join(lacking)} idle time: in the residual.")
    return " ".join(told)
