"""How calls were timed, what starting up costs, and what a reader must know of the recordings."""

import math
from collections.abc import Callable
from statistics import median

from tracekit.model.comparison import Comparison, Side
from tracekit.model.timing import BreakEven, FormTiming
from tracekit.names import clipped
from tracekit.numbers import MISSING, calls_span, count, duration, percent, size, times
from tracekit.report.document import Table, columns, filled_table
from tracekit.report.words.common import STOPPED, Sides, ratio_span, side_name
from tracekit.statistics.steady import mean_ratio

NOTE = "Control calls: second calls of a variant in a round, for the noise floor (A/A)."

#: What is told of each form's timing.
TIMING: dict[str, Callable[[FormTiming], str]] = {
    "Control calls": lambda how: count(len(how.controls)),
    "Stopped because": lambda how: STOPPED[how.stopped],
    "Target": lambda how: (
        MISSING
        if how.target is None or how.budget_seconds is None
        else f"±{how.target * 100:g} % within {how.budget_seconds:g} s"
    ),
    "Timing duration, whole run": lambda how: duration(how.seconds * 1e6),
}


def _extent(side: Side) -> str:
    kind, what = side.analysis.window.kind, "operator" if side.analysis.gpu is None else "GPU activity"
    return {"steps": "marked steps", "span": "named spans", "whole": f"from the first to the last {what}"}[kind]


#: What is told of each recording.
RECORDING: dict[str, Callable[[Side], str]] = {
    "Window over": _extent,
    "Steps or spans": lambda side: count(side.analysis.window.steps),
    "Window": lambda side: duration(side.analysis.window.span_us),
    "Profiler overhead": lambda side: times(side.recorded_ratio) if side.recorded_ratio is not None else MISSING,
    "Events": lambda side: count(side.analysis.trace.events),
    "File size": lambda side: size(side.analysis.trace.bytes),
    "Events skipped": lambda side: (
        clipped(", ".join(f"{n:,} {reason}" for reason, n in side.analysis.trace.skipped.items() if n), 200) or "none"
    ),
}


def timing_table(sides: Sides) -> Table | None:
    """How the sides were timed; None when one was not."""
    forms = [side.form for _, side in sides if side.form and side.wall_us is not None]
    timings = [form.timing for form in forms]
    if len(forms) < len(sides) or not any(timings):
        return None
    on_device = (duration(median(form.device_us) if form.device_us else None) for form in forms)
    rows = (
        ("Timed calls", *(count(len(form.wall_us)) for form in forms)),
        *((label, *(told(each) if each else MISSING for each in timings)) for label, told in TIMING.items()),
        ("Median by device events", *on_device),
    )
    heads = columns("", figures=(side_name(*each) for each in sides))
    return Table("Timing", heads, rows, NOTE)


def certainty_table(comparison: Comparison) -> Table | None:
    """What the verdict rests on, number by number; None where there is no interval."""
    verdict = comparison.verdict
    if verdict.speedup is None or verdict.ci95 is None or verdict.n is None:
        return None
    half = math.sqrt(verdict.ci95[1] / verdict.ci95[0]) - 1
    rows = (
        ("Speed-up: A's time over B's", times(verdict.speedup)),
        (
            "95 % CI" if verdict.told_range == verdict.ci95 else "Student's t, holds less than 95 %",
            f"{verdict.ci95[0]:.4f}-{verdict.ci95[1]:.4f} (±{percent(half, 2)})",
        ),
        *([("Processes, least to greatest", "{:.4f}-{:.4f}".format(*ends))] if (ends := verdict.process_range) else []),
        ("Next process, 95 %", ratio_span(*verdict.next_process95) if verdict.next_process95 else MISSING),
        ("Rounds" if verdict.basis != "apart" else "Calls, fewer side", count(verdict.n)),
        ("Processes" if verdict.basis != "apart" else "Processes, fewer side", count(verdict.processes)),
        ("Rounds averaged together" if verdict.basis != "apart" else "Bootstrap block, calls", count(verdict.block)),
        ("Independent rounds", count(math.floor(verdict.stretches)) if verdict.stretches else MISSING),
        ("Noise floor (A/A)", percent(verdict.noise_floor, 2)),
        ("Smallest change that counts", percent(verdict.least_change, 2)),
    )
    return Table("Confidence", columns("", figures=("Value",)), rows)


def process_table(comparison: Comparison) -> Table | None:
    """Each process by itself; None where there was but one."""
    a, b = (side.form.timing if side.form else None for side in (comparison.a, comparison.b))
    if comparison.verdict.basis != "processes" or not (a and b):
        return None
    own = [side.form.steady_us for side in (comparison.a, comparison.b) if side.form]
    repeats = [(one.steady_us, other.steady_us) for one, other in zip(a.processes, b.processes, strict=False)]
    rows = tuple(
        (
            str(number) if number else "recorded",
            count(min(map(len, both))),
            *(duration(median(walls)) for walls in both),
            times(mean_ratio(*both)),
        )
        for number, both in enumerate([own, *repeats])
        if min(map(len, both))
    )
    figures = ("Rounds", f"A: {comparison.a.label}", f"B: {comparison.b.label}", "Speed-up")
    return Table("Processes", columns("Process", figures=figures), rows)


def recording_table(sides: Sides) -> Table:
    """The traces: how large, over what window they were read, what of them could not be."""
    rows = tuple((label, *(figure(side) for _, side in sides)) for label, figure in RECORDING.items())
    caption = "Traces" if len(sides) > 1 else "Trace"
    return Table(caption, columns("Trace", figures=(side_name(*each) for each in sides)), rows)


def health_table(sides: Sides) -> Table | None:
    """What was noticed about the recordings; None when nothing was."""
    rows = [
        (letter, finding.severity, clipped(finding.long(), 300), count(finding.count))
        for letter, side in sides
        for finding in side.health
    ]
    heads = columns("Side", "Severity", "Problem", figures=("Events",))
    if len(sides) == 1:
        return filled_table("Trace health", heads[1:], (row[1:] for row in rows))
    return filled_table("Trace health", heads, rows)


KINDS = {
    "compiled_no_cache": "compiled, no cache",
    "compiled_warm_cache": "compiled, warm cache",
    None: "compiled, cache unknown",
}

FRESH = "Each start is in a new process; imports and model building ({load}) are excluded."

WARM_UP = (
    "Estimated from the run's warm-up, where eager ran first and so includes process start-up: the lower number "
    "subtracts all of it, the upper none."
)
STARTUP = " --startup measures each start in a new process."
OF_PROGRAM = (
    "Estimated from the program's first steps. Compiled ones came first and so include process start-up: "
    "compiling may pay earlier. The lower number subtracts eager's start-up, the upper none."
)


def startup_table(comparison: Comparison) -> Table | None:
    """The starts of both forms; None where the warm-up is not known."""
    starts = comparison.break_even
    if not starts:
        return None
    of_own_warm_up, form = starts[0].source == "warm_up", comparison.a.form
    firsts = [start.calls_us[0] for start in form.startups if start.kind == "eager"] if form else []
    first_us = next(iter(form.warmup_us if form and of_own_warm_up else firsts), None)
    rows = [("eager", duration(first_us), duration(starts[0].eager_startup_us), MISSING, "")]
    for each in starts:
        cached = MISSING if each.cache_hits is None else f"{each.cache_hits} of {each.graphs}"
        times = (duration(each.first_call_us), duration(each.startup_us))
        rows.append((KINDS[each.kind], *times, cached, pays_after(each)))
    spread = ""
    if any(each.calls_ci95 for each in starts):
        spread = "It lies between these numbers by the speed-up's CI. "
        if (comparison.verdict.processes or 1) > 1:
            spread = "It lies between these numbers by the speed-up's CI and eager's process spread. "
    forms = (side.form for side in (comparison.a, comparison.b))
    loads = [start.load_seconds for each in forms if each for start in each.startups]
    settings = comparison.b.settings
    if not of_own_warm_up:
        source = FRESH.format(load=f"{min(loads):.1f} to {max(loads):.1f} s")
    elif settings and settings.is_of_program:
        source = OF_PROGRAM
    else:
        source = WARM_UP if comparison.b.ranks or (settings and settings.in_program) else f"{WARM_UP}{STARTUP}"
    note = (
        "Start-up: warm-up calls minus steady calls. Break-even: calls after which compiled and eager are equal. "
        f"{spread}{source}"
    )
    heads = columns("Start", figures=("First call", "Start-up", "Graphs from cache", "Break-even"))
    return Table("Cold start", heads, tuple(rows), note)


def pays_after(each: BreakEven) -> str:
    """`1,100 to 1,350 calls`, `never`, or a dash where no saving was established."""
    if each.span is None:
        return MISSING
    if math.isinf(each.span[0]):
        return "never"
    return "the first call" if each.calls == 0 and not each.calls_at_most else f"{calls_span(*each.span)} calls"
