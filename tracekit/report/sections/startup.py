"""What starting up costs, and after how many calls compiling has paid for itself."""

from __future__ import annotations

import math

from tracekit.model.comparison import Comparison
from tracekit.model.timing import BreakEven
from tracekit.numbers import MISSING, calls_span, count, duration
from tracekit.report.document import Column, Table

KINDS = {
    "compiled_no_cache": "compiled, no cache",
    "compiled_warm_cache": "compiled, warm cache",
    None: "compiled, cache as it was",
}

FRESH = (
    "Each start in a fresh process. Importing torch and the model's libraries and building the model went before "
    "({load}) and are left out."
)

WARM_UP = (
    "An estimate from this run's own warm-up: the compiled form came after the eager one, which alone paid what a "
    "process does once (the device's context, handles of libraries). The smaller number takes all of eager's start-up "
    "off the compiled one's, the larger nothing. What the cache held was left to chance. --startup measures each start "
    "in a fresh process."
)

COLUMNS = ("First call", "Start-up", "Graphs from cache", "Pays after")


def startup_table(comparison: Comparison) -> Table | None:
    """The starts of both forms; None where the warm-up is not known."""
    starts = comparison.break_even
    if not starts:
        return None
    of_own_warm_up, form = starts[0].source == "warm_up", comparison.a.form
    first_us = None
    if form and of_own_warm_up:
        first_us = form.warmup_us[0] if form.warmup_us else None
    elif form:
        first_us = next((start.calls_us[0] for start in form.startups if start.kind == "eager"), None)
    rows = [("eager", duration(first_us), duration(starts[0].eager_startup_us), MISSING, "")]
    for each in starts:
        cached = MISSING if each.cache_hits is None else f"{each.cache_hits} of {each.graphs}"
        times = (duration(each.first_call_us), duration(each.startup_us))
        rows.append((KINDS[each.kind], *times, cached, pays_after(each)))
    spread = ""
    if any(each.calls_ci95 for each in starts):
        spread = "Its range holds the speed-up's interval, and not that calls take another time in other processes. "
        if (comparison.verdict.processes or 1) > 1:
            spread = "Its range holds the speed-up's interval and how fast eager was in each process. "
    forms = (side.form for side in (comparison.a, comparison.b))
    loads = [start.load_seconds for each in forms if each for start in each.startups]
    source = WARM_UP if of_own_warm_up else FRESH.format(load=f"{min(loads):.1f} to {max(loads):.1f} s")
    return Table(
        caption="Starting up",
        columns=(Column("Start", numeric=False), *map(Column, COLUMNS)),
        rows=tuple(rows),
        note=(
            "Start-up is what the calls until the form was quiet took longer than steady ones. It pays after so many "
            f"calls that eager would have taken as long, start-up and all. {spread}{source}"
        ),
    )


def break_even_sentence(comparison: Comparison) -> str | None:
    """The answer for the first start, for the terminal; None where nothing is known or established."""
    if not comparison.break_even or comparison.break_even[0].calls is None:
        return None
    estimate = ", by the run's own warm-up" if comparison.break_even[0].source == "warm_up" else ""
    paid = ", ".join(f"{pays_after(each)} ({KINDS[each.kind]})" for each in comparison.break_even)
    return f"Compiling pays after: {paid}{estimate}."


def pays_after(each: BreakEven) -> str:
    """`1,200 calls (1,100 to 1,350)`, `never`, or a dash where no saving was established."""
    if each.calls is None:
        return MISSING
    if math.isinf(each.calls):
        return "never"
    if each.calls == 0 and not each.calls_at_most:
        return "the first call"
    low, high = each.calls_ci95 or (each.calls, each.calls)
    spread = f" ({count(math.ceil(low))} to {count(math.ceil(high))})" if each.calls_ci95 else ""
    return f"{calls_span(each.calls, each.calls_at_most)} calls{spread}"
