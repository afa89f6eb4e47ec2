"""Is planted idle time shown under its cause? The rules of `planted_idle.py`, of figures alone.

A cell, which is a plant in a variant, is right where each planted cause is shown within max(10 %, 0.1 ms) of its length
and inside its range, where no other cause has more than 10 % of what was planted, where no advice offers more than it
can remove, nor less than Python takes at the graph break that it removes, and where causes and residual make all idle
time. All lengths are the plant's less its twin's. Where Python is planted in a compiled program, its line is to be on
the first screen: that of the graph break, for recordings hold no stacks. Of an eager program they tell no line.

What is planted alone has two lengths: the program's own measurement, and by how much longer the GPU was idle in the
unprofiled calls. That is more by what a plant does to the code behind it, which no longer lies in the processor's
caches: a figure between them is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

NEAR, NEAR_US, OTHERS = 0.1, 100.0, 0.1
#: How far causes and residual may be off all idle time: roundings.
CLOSED_US = 1.0
#: Where a part of a plant may stand under other causes, because nobody can measure it apart: what its own must have.
NAMED = 0.25
#: What CUDA graphs, which a mode asks for, can take off a call.
GRAPHS_TAKE = {"launch_call", "op_dispatch", "compiled_wrapper", "launch_latency", "device"}


@dataclass(frozen=True)
class Expected:
    """What was measured under `label` is to be shown under `causes`, all together. `beside` are causes that may have a
    part of it by construction: Python between operators. Where `less_busy`, the GPU worked in some of that time."""

    label: str
    causes: tuple[str, ...]
    beside: tuple[str, ...] = ()
    less_busy: bool = False


@dataclass(frozen=True)
class Shown:
    """What a program measured of its unprofiled calls, and what tracekit said of them: `per_step` of its JSON, its
    findings, and whether the plant's line is on the first screen, None of an eager program."""

    measured_us: Mapping[str, float]
    per_step: Mapping[str, Any]
    advice: tuple[Mapping[str, Any], ...] = ()
    line_on_screen: bool | None = None

    def causes_us(self) -> dict[str, float]:
        return self.per_step["unprofiled_idle_by_cause_us"] or {}


def score(expected: tuple[Expected, ...], plant: Shown, twin: Shown) -> dict[str, Any]:
    """The cell: what was planted, what was shown, and what of that is wrong."""
    planted = {each.label: _planted_us(each, plant, twin) for each in expected}
    cell: dict[str, Any] = {"planted_us": planted, "line_on_screen": plant.line_on_screen}
    idle_us, twin_idle_us = (each.per_step["unprofiled_idle_us"] for each in (plant, twin))
    if idle_us is None or twin_idle_us is None:
        return {**cell, "verdict": "not measured", "wrong": ["no GPU figures"]}
    causes, twin_causes = plant.causes_us(), twin.causes_us()
    names = sorted({*causes, *twin_causes})
    shown = {name: causes.get(name, 0.0) - twin_causes.get(name, 0.0) for name in names}
    ranges = {each.label: _range_us(each, plant, twin) for each in expected}
    gross_us = sum(_measured_us(each, plant, twin) for each in expected)
    wrong = [*_others(expected, gross_us, shown), *_over_promised(expected, planted, plant)]
    wrong += _under_promised(expected, planted, plant)
    wrong += [*_not_closed("plant", plant), *_not_closed("twin", twin)]
    if plant.line_on_screen is False and any("python" in each.causes for each in expected):
        wrong.append("its line is not on the screen")
    for each in expected:
        least_us = planted[each.label]
        most_us = max(least_us, idle_us - twin_idle_us) if len(expected) == 1 else least_us
        wrong += _misplaced(each, (least_us, most_us), shown, ranges[each.label])
    return {
        **cell,
        # Not the causes' business: whether the plant lay open, as it was built to.
        "idle_us": idle_us - twin_idle_us,
        "shown_us": shown,
        "range_us": ranges,
        "offered_us": {each["code"]: each["saving_us"] for each in plant.advice if each["saving_us"]},
        "with_plant": _figures(plant),
        "without": _figures(twin),
        "verdict": "wrong" if wrong else "right",
        "wrong": wrong,
    }


def _figures(shown: Shown) -> dict[str, Any]:
    names = ("wall_us", "busy_us", "unprofiled_idle_us", "unprofiled_idle_residual_us")
    return {"measured_us": shown.measured_us, **{name: shown.per_step.get(name) for name in names}}


def _measured_us(expected: Expected, plant: Shown, twin: Shown) -> float:
    return plant.measured_us[expected.label] - twin.measured_us[expected.label]


def _planted_us(expected: Expected, plant: Shown, twin: Shown) -> float:
    us = _measured_us(expected, plant, twin)
    if expected.less_busy and plant.per_step["busy_us"] is not None:
        us -= plant.per_step["busy_us"] - twin.per_step["busy_us"]
    return us


def _range_us(expected: Expected, plant: Shown, twin: Shown) -> tuple[float, float] | None:
    """From the plant's low less the twin's high to its high less the twin's low; None where tracekit says no ranges."""
    ranges = [shown.per_step.get("unprofiled_idle_by_cause_range_us") for shown in (plant, twin)]
    if None in ranges:
        return None
    causes = (*expected.causes, *expected.beside)
    (low, high), (twin_low, twin_high) = (
        [sum(each.get(cause, (0.0, 0.0))[end] for cause in causes) for end in (0, 1)] for each in ranges if each
    )
    return low - twin_high, high - twin_low


def _others(expected: Iterable[Expected], gross_us: float, shown: Mapping[str, float]) -> Iterator[str]:
    own = {cause for each in expected for cause in (*each.causes, *each.beside)}
    for cause, us in shown.items():
        if cause not in own and us > OTHERS * gross_us:
            yield f"{cause} {us:.0f} us, planted none"


def _misplaced(
    expected: Expected,
    planted_us: tuple[float, float],
    shown: Mapping[str, float],
    range_us: tuple[float, float] | None,
) -> Iterator[str]:
    least_us, most_us = planted_us
    named_us = sum(shown.get(cause, 0.0) for cause in expected.causes)
    whole_us = named_us + sum(shown.get(cause, 0.0) for cause in expected.beside)
    causes, whole = " + ".join(expected.causes), " + ".join((*expected.causes, *expected.beside))
    told = f"{least_us:.0f}" if least_us == most_us else f"{least_us:.0f} to {most_us:.0f}"
    if max(least_us - whole_us, whole_us - most_us) > max(NEAR * most_us, NEAR_US):
        yield f"{whole} {whole_us:.0f} us, planted {told}"
    if expected.beside and named_us < NAMED * least_us:
        yield f"{causes} only {named_us:.0f} us of {told}"
    if range_us is not None and (range_us[0] > most_us or range_us[1] < least_us):
        yield f"{whole} {range_us[0]:.0f} to {range_us[1]:.0f} us, planted {told}"


def _not_closed(name: str, shown: Shown) -> Iterator[str]:
    whole_us = sum(shown.causes_us().values()) + shown.per_step["unprofiled_idle_residual_us"]
    if abs(whole_us - shown.per_step["unprofiled_idle_us"]) > CLOSED_US:
        yield f"causes and residual of the {name} make {whole_us:.0f} of {shown.per_step['unprofiled_idle_us']:.0f} us"


def _over_promised(expected: Iterable[Expected], planted: Mapping[str, float], plant: Shown) -> Iterator[str]:
    """CUDA graphs leave the user's own code what it takes, whatever else is idle; no other advice saves over a call."""
    kept_us = sum(planted[each.label] for each in expected if not GRAPHS_TAKE.issuperset(each.causes))
    slack_us = max(NEAR * sum(planted.values()), NEAR_US)
    for finding in plant.advice:
        idle_us, wall_us = plant.per_step["unprofiled_idle_us"], plant.per_step["wall_us"]
        most_us = idle_us - kept_us if "mode" in finding["changes"] else wall_us
        if (finding["saving_us"] or 0.0) > most_us + slack_us:
            yield f"{finding['code']} offers {finding['saving_us']:.0f} us of at most {most_us:.0f}"


def _under_promised(expected: Iterable[Expected], planted: Mapping[str, float], plant: Shown) -> Iterator[str]:
    """Removing the graph break that lets Python in saves what that takes: "at most" is no less."""
    python_us = sum(planted[each.label] for each in expected if "python" in each.causes)
    slack_us = max(NEAR * python_us, NEAR_US)
    for finding in plant.advice:
        if finding["code"] == "broken_graphs" and finding["saving_us"] < python_us - slack_us:
            yield f"{finding['code']} offers at most {finding['saving_us']:.0f} us of {python_us:.0f}"


def row(cell: Mapping[str, Any]) -> str:
    """A cell as a line of the table."""
    planted = ", ".join(f"{label} {us:.0f}" for label, us in cell.get("planted_us", {}).items())
    largest = sorted(cell.get("shown_us", {}).items(), key=lambda each: -abs(each[1]))[:4]
    shown = ", ".join(f"{cause} {us:.0f}" for cause, us in largest)
    idle = f"{cell['idle_us']:.0f}" if "idle_us" in cell else ""
    why = cell.get("why") or "; ".join(cell["wrong"])
    return (
        f"{cell['plant']:13} {cell['variant']:15} {planted:20} {idle:6} {shown:62} {cell['verdict']:12} {why}".rstrip()
    )


def compact(result: Mapping[str, Any]) -> dict[str, Any]:
    """What stays of an earlier result beside a new one; of one that has such a part itself, that part."""
    if "before" in result:
        return dict(result["before"])
    cells = [
        {key: cell[key] for key in ("plant", "variant", "verdict", "shown_us") if key in cell}
        for cell in result["cells"]
    ]
    return {"started": result["started"], "device": result["device"], "summary": result["summary"], "cells": cells}


def summary(cells: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """How many cells have which verdict, and the share of right ones in those that apply."""
    counts = Counter(cell["verdict"] for cell in cells)
    applied = counts["right"] + counts["wrong"] + counts["failed"]
    return {**counts, "right_share": counts["right"] / applied if applied else None}
