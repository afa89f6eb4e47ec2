"""How the timed calls were made, and how sure they make one."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median

from tracekit.model.comparison import Comparison, Side
from tracekit.model.timing import FormTiming
from tracekit.numbers import MISSING, count, duration, percent, times
from tracekit.report.document import Column, Table
from tracekit.report.sides import Sides, side_name

#: Why timing stopped, in words.
STOPPED = {
    "asked number": "the number of calls that was asked for",
    "target reached": "the interval was narrow enough",
    "budget spent": "the time was spent before the interval was narrow enough",
    "most rounds": "the most rounds there may be were made before the interval was narrow enough",
    "interrupted": "it was interrupted",
}

NOTE = "Control calls are second calls of a form in one round: what they differ by from the first is noise."


def timing_table(lettered: Sides) -> Table | None:
    """How the sides were timed; None when one was not, or by an older version that did not say."""
    sides = [side for _, side in lettered]
    untimed = any(side.wall_us is None for side in sides)
    if untimed or not any(side.form and side.form.timing for side in sides):
        return None
    rows = [
        ("Timed calls", *(count(_number(side)) for side in sides)),
        ("Control calls", *(_of_timing(side, _controls) for side in sides)),
        ("Stopped because", *(_of_timing(side, _why) for side in sides)),
        ("Target", *(_of_timing(side, _target) for side in sides)),
        (
            "Timing took, all forms of the run",
            *(_of_timing(side, lambda how: duration(how.seconds * 1e6)) for side in sides),
        ),
        ("Median by the device's clock", *(_device(side) for side in sides)),
    ]
    labels = [Column(side_name(*each)) for each in lettered]
    return Table("How the calls were timed", (Column("", numeric=False), *labels), tuple(rows), NOTE)


def certainty_table(comparison: Comparison) -> Table | None:
    """What the verdict rests on, number by number; None where there is no interval."""
    verdict = comparison.verdict
    if verdict.speedup is None or verdict.ci95 is None or verdict.n is None:
        return None
    half = math.sqrt(verdict.ci95[1] / verdict.ci95[0]) - 1
    rows = [
        ("Speed-up", times(verdict.speedup)),
        ("95 % interval", f"{verdict.ci95[0]:.4f} to {verdict.ci95[1]:.4f} (±{percent(half, 2)})"),
        ("Rounds" if verdict.basis != "apart" else "Calls of the side with fewer", count(verdict.n)),
        ("Processes" if verdict.basis != "apart" else "Processes of the side with fewer", count(verdict.processes)),
        ("Neighbouring rounds resampled together", count(verdict.block)),
        ("Noise floor", percent(verdict.noise_floor, 2)),
        ("Smallest change that counts besides", percent(verdict.least_change, 2)),
    ]
    return Table("How sure the verdict is", (Column("", numeric=False), Column("Value")), tuple(rows))


def process_table(comparison: Comparison) -> Table | None:
    """Each process by itself; None where there was but one."""
    a, b = (side.form.timing if side.form else None for side in (comparison.a, comparison.b))
    if comparison.verdict.basis != "processes" or not (a and b):
        return None
    own = [side.form.wall_us for side in (comparison.a, comparison.b) if side.form]
    repeats = [(one.wall_us, other.wall_us) for one, other in zip(a.processes, b.processes, strict=False)]
    rows = tuple(
        (
            str(number) if number else "the run's own",
            count(min(map(len, both))),
            *(duration(median(walls)) for walls in both),
            times(math.exp(median(math.log(one / other) for one, other in zip(*both, strict=False)))),
        )
        for number, both in enumerate([own, *repeats])
        if min(map(len, both))
    )
    columns = ("Rounds", f"A: {comparison.a.label}", f"B: {comparison.b.label}", "Speed-up")
    return Table("Process by process", (Column("Process", numeric=False), *map(Column, columns)), rows)


def _number(side: Side) -> int | None:
    return len(side.form.wall_us) if side.form else None


def _of_timing(side: Side, told: Callable[[FormTiming], str]) -> str:
    how = side.form.timing if side.form else None
    return told(how) if how else MISSING


def _controls(how: FormTiming) -> str:
    return count(len(how.controls))


def _why(how: FormTiming) -> str:
    return STOPPED[how.stopped]


def _target(how: FormTiming) -> str:
    if how.target is None or how.budget_seconds is None:
        return MISSING
    return f"±{how.target * 100:g} % within {how.budget_seconds:g} s"


def _device(side: Side) -> str:
    return duration(median(side.form.device_us) if side.form and side.form.device_us else None)
