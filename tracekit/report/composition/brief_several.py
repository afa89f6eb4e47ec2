"""Several ways to compile in thirty lines: which is fastest, a row a way, and what to type next."""

from __future__ import annotations

from tracekit.model.comparison import Comparison
from tracekit.model.comparisons import Comparisons
from tracekit.names import clipped_within, printable
from tracekit.numbers import MISSING, percent, times_within
from tracekit.report.composition.brief import BLANK, calls_to_pay, last_lines, more, scale_of
from tracekit.report.document import Column, Line, Summary, Table
from tracekit.report.sections import several
from tracekit.report.sections.findings import listed
from tracekit.report.sections.outputs import RESULTS as OUTPUTS
from tracekit.report.words import common as words
from tracekit.report.words import short
from tracekit.report.words.findings import finding_title

WIDTH, NAME = 100, 26
#: Ways, notes and findings that find room.
MOST_WAYS, MOST_NOTES, MOST_FINDINGS = 12, 3, 4

COLUMNS = ("speed-up", "95 % CI", "eager", "compiled", "busy", "idle", "compile s", "pays off")


def verdict_line(compared: Comparisons) -> Line:
    return Line(f"  {several.headline(compared)}", "bold green" if compared.fastest else "bold yellow")


def comparisons_brief(compared: Comparisons, page: str, look_at: str) -> Summary:
    """At most thirty lines at 100 columns. `page` is where the page lies, `look_at` shows one of the runs."""
    ways = compared.comparisons[:MOST_WAYS]
    notes = short.headline_notes((*compared.notes, *(note for each in compared.comparisons for note in each.notes)))
    found = [listed(each.findings) for each in compared.comparisons]
    findings = [
        Line(f"{printable(each.b.label)}: {finding_title(of_way[0])}", "", "  ")
        for each, of_way in zip(ways, found, strict=False)
        if of_way and of_way[0].severity != "info"
    ]
    wrong = [
        Line(f"{printable(each.b.label)}: {OUTPUTS[each.accuracy.result]}", "", "  !! ", "bold red")
        for each in ways
        if each.accuracy and each.accuracy.result == "less_accurate"
    ]
    hidden = max(len(notes) - MOST_NOTES, 0) + sum(map(len, found)) - len(findings)
    walls = (side.wall_us or 0.0 for each in ways for side in (each.a, each.b))
    unit, scale, decimals = scale_of(max(walls, default=0.0))
    table = Table(
        "",
        (Column(f"Each beside its own eager, {unit}", numeric=False), *map(Column, COLUMNS)),
        tuple(_row(each, scale, decimals) for each in ways),
    )
    return (
        Line(clipped_within(several.subjects(compared), WIDTH), "dim"),
        BLANK,
        verdict_line(compared),
        *(Line(note, "", "  ! ", "yellow") for note in notes[:MOST_NOTES]),
        *wrong,
        BLANK,
        table,
        *((BLANK, Line("Found", "bold"), *findings[:MOST_FINDINGS]) if findings else ()),
        BLANK,
        *last_lines(f"Report {page}", look_at, more(hidden)),
    )


def _row(each: Comparison, scale: float, decimals: int) -> tuple[str, ...]:
    verdict, side = each.verdict, each.b
    compilation = side.form.compilation if side.form else None
    even = each.break_even[0] if each.break_even else None
    times = ("" if us is None else f"{us / scale:,.{decimals}f}" for us in (each.a.wall_us, side.wall_us, side.busy_us))
    return (
        f" {clipped_within(printable(side.label), NAME)}",
        times_within(verdict.speedup, verdict.ci95) if verdict.speedup else words.result_word(each).lower(),
        f"{verdict.ci95[0]:.3f}-{verdict.ci95[1]:.3f}" if verdict.ci95 else MISSING,
        *times,
        percent(side.idle_share, 0),
        f"{compilation.seconds:.1f}" if compilation else MISSING,
        calls_to_pay(even).rpartition(" to ")[2].removesuffix(" calls") if even else MISSING,
    )
