"""How the timed calls were made, how sure they make one, and what a reader must know of the recordings."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median

from tracekit.model.comparison import Comparison, Side
from tracekit.model.timing import FormTiming
from tracekit.names import clipped, printable
from tracekit.numbers import MISSING, count, duration, percent, size, times
from tracekit.report.document import Column, Table
from tracekit.report.sides import Sides, side_name
from tracekit.report.words.common import extent
from tracekit.report.words.health import health_sentence

#: Why timing stopped, in words.
STOPPED = {
    "asked number": "the number of calls that was asked for",
    "target reached": "the interval was narrow enough",
    "budget spent": "the time was spent before the interval was narrow enough",
    "most rounds": "the most rounds there may be were made before the interval was narrow enough",
    "interrupted": "it was interrupted",
}

NOTE = "Control calls are second calls of a form in one round: what they differ by from the first is noise."

#: What is told of each form's timing.
TIMING: dict[str, Callable[[FormTiming], str]] = {
    "Control calls": lambda how: count(len(how.controls)),
    "Stopped because": lambda how: STOPPED[how.stopped],
    "Target": lambda how: (
        MISSING
        if how.target is None or how.budget_seconds is None
        else f"±{how.target * 100:g} % within {how.budget_seconds:g} s"
    ),
    "Timing took, all forms of the run": lambda how: duration(how.seconds * 1e6),
}

#: What is told of each recording.
RECORDING: dict[str, Callable[[Side], str]] = {
    "Read over": extent,
    "Steps or spans": lambda side: count(side.analysis.window.steps),
    "Window": lambda side: duration(side.analysis.window.span_us),
    "Against an unprofiled call": lambda side: (
        f"{times(side.recorded_ratio)} as long" if side.recorded_ratio is not None else MISSING
    ),
    "Events": lambda side: count(side.analysis.trace.events),
    "File size": lambda side: size(side.analysis.trace.bytes),
    "Events skipped": lambda side: _skipped(side.analysis.trace.skipped),
}


def timing_table(sides: Sides) -> Table | None:
    """How the sides were timed; None when one was not, or by an older version that did not say."""
    forms = [side.form for _, side in sides if side.form and side.wall_us is not None]
    if len(forms) < len(sides) or not any(form.timing for form in forms):
        return None
    rows = (
        ("Timed calls", *(count(len(form.wall_us)) for form in forms)),
        *(
            (label, *(told(form.timing) if form.timing else MISSING for form in forms))
            for label, told in TIMING.items()
        ),
        (
            "Median by the device's clock",
            *(duration(median(form.device_us) if form.device_us else None) for form in forms),
        ),
    )
    columns = (Column("", numeric=False), *(Column(side_name(*each)) for each in sides))
    return Table("How the calls were timed", columns, rows, NOTE)


def certainty_table(comparison: Comparison) -> Table | None:
    """What the verdict rests on, number by number; None where there is no interval."""
    verdict = comparison.verdict
    if verdict.speedup is None or verdict.ci95 is None or verdict.n is None:
        return None
    half = math.sqrt(verdict.ci95[1] / verdict.ci95[0]) - 1
    rows = (
        ("Speed-up", times(verdict.speedup)),
        ("95 % interval", f"{verdict.ci95[0]:.4f} to {verdict.ci95[1]:.4f} (±{percent(half, 2)})"),
        ("Rounds" if verdict.basis != "apart" else "Calls of the side with fewer", count(verdict.n)),
        ("Processes" if verdict.basis != "apart" else "Processes of the side with fewer", count(verdict.processes)),
        ("Neighbouring rounds resampled together", count(verdict.block)),
        ("Noise floor", percent(verdict.noise_floor, 2)),
        ("Smallest change that counts besides", percent(verdict.least_change, 2)),
    )
    return Table("How sure the verdict is", (Column("", numeric=False), Column("Value")), rows)


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


def recording_table(sides: Sides) -> Table:
    """The traces: how large, over what window they were read, what of them could not be."""
    rows = tuple((label, *(figure(side) for _, side in sides)) for label, figure in RECORDING.items())
    caption = "The recordings" if len(sides) > 1 else "The recording"
    return Table(caption, (Column("Recording", numeric=False), *(Column(side_name(*each)) for each in sides)), rows)


def _skipped(skipped: dict[str, int]) -> str:
    reasons = (f"{number:,} {printable(reason)}" for reason, number in skipped.items() if number)
    return clipped(", ".join(reasons), 200) or "none"


def health_table(sides: Sides) -> Table | None:
    """What was noticed about the recordings; None when nothing was."""
    rows = tuple(
        (letter, finding.severity, clipped(printable(health_sentence(finding)), 300), count(finding.count))
        for letter, side in sides
        for finding in side.health
    )
    if not rows:
        return None
    columns = (*(Column(each, numeric=False) for each in ("Side", "Severity", "What was noticed")), Column("Events"))
    if len(sides) == 1:
        return Table("Health of the recording", columns[1:], tuple(row[1:] for row in rows))
    return Table("Health of the recordings", columns, rows)
