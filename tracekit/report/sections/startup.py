"""What starting up costs, and after how many calls compiling has paid for itself."""

from __future__ import annotations

import math

from tracekit.model.comparison import Comparison
from tracekit.model.startup import BreakEven
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
    rows = (("eager", _eager_first(comparison), duration(starts[0].eager_startup_us), MISSING, ""), *map(_row, starts))
    return Table(
        caption="Starting up",
        columns=(Column("Start", numeric=False), *map(Column, COLUMNS)),
        rows=rows,
        note=(
            "Start-up is what the calls until the form was quiet took longer than steady ones. It pays after so many "
            f"calls that eager would have taken as long, start-up and all. {_range_of(comparison)}{_source(comparison)}"
        ),
    )


def _range_of(comparison: Comparison) -> str:
    """What the range of calls knows, where there is one."""
    if not any(each.calls_ci95 for each in comparison.break_even):
        return ""
    if (comparison.verdict.processes or 1) > 1:
        return "Its range holds the speed-up's interval and how fast eager was in each process. "
    return "Its range holds the speed-up's interval, and not that calls take another time in other processes. "


def break_even_sentence(comparison: Comparison) -> str | None:
    """The answer for the first start, for the terminal; None where nothing is known or established."""
    if not comparison.break_even or comparison.break_even[0].calls is None:
        return None
    estimate = ", by the run's own warm-up" if comparison.break_even[0].source == "warm_up" else ""
    told = ", ".join(f"{pays_after(each)} ({_name(each)})" for each in comparison.break_even)
    return f"Compiling pays after: {told}{estimate}."


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


def _row(each: BreakEven) -> tuple[str, ...]:
    cached = MISSING if each.cache_hits is None else f"{each.cache_hits} of {each.graphs}"
    return _name(each), duration(each.first_call_us), duration(each.startup_us), cached, pays_after(each)


def _name(each: BreakEven) -> str:
    return KINDS[each.kind]


def _eager_first(comparison: Comparison) -> str:
    form = comparison.a.form
    if form is None:
        return MISSING
    fresh = next((start.calls_us[0] for start in form.startups if start.kind == "eager"), None)
    own = form.warmup_us[0] if form.warmup_us else None
    return duration(fresh if comparison.break_even[0].source == "fresh_process" else own)


def _source(comparison: Comparison) -> str:
    if comparison.break_even[0].source == "warm_up":
        return WARM_UP
    forms = (side.form for side in (comparison.a, comparison.b))
    loads = [start.load_seconds for form in forms if form for start in form.startups]
    return FRESH.format(load=f"{min(loads):.1f} to {max(loads):.1f} s")
