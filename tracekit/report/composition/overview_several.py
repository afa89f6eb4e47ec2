"""Several ways to compile: which is fastest, a row a way."""

import math

from tracekit.model.comparison import Comparison
from tracekit.model.comparisons import Comparisons
from tracekit.names import clipped_within
from tracekit.numbers import MISSING, calls_span, percent, scale_of, times_within
from tracekit.report.composition.overview import MOST_NOTES, bars
from tracekit.report.document import Check, Column, Overview, Table, columns
from tracekit.report.sections import several
from tracekit.report.sections.findings import listed
from tracekit.report.sections.outputs import RESULTS as OUTPUTS
from tracekit.report.words import common as words
from tracekit.report.words import short

#: Ways and findings that find room, and characters of a way's name.
MOST_WAYS, MOST_FINDINGS, NAME = 12, 4, 26
COLUMNS = ("speed-up", "95 % CI", "eager", "compiled", "busy", "idle", "compile s", "pays off")


def comparisons_overview(compared: Comparisons) -> Overview:
    ways = compared.comparisons[:MOST_WAYS]
    every = (*compared.notes, *(note for each in compared.comparisons for note in each.notes))
    notes = short.headline_notes(every)
    wrong = [
        Check("!!", f"{each.b.label}: {OUTPUTS[each.accuracy.result]}")
        for each in ways
        if each.accuracy and each.accuracy.result == "less_accurate"
    ]
    found = [
        (each.b.label, each.findings[0].statement.title())
        for each in ways
        if each.findings and each.findings[0].severity != "info"
    ][:MOST_FINDINGS]
    walls = (side.wall_us or 0.0 for each in ways for side in (each.a, each.b))
    unit, scale, decimals = scale_of(max(walls, default=0.0))
    heads = (Column(f"Each vs its own eager, {unit}", numeric=False), *map(Column, COLUMNS))
    left = len(compared.comparisons) - len(ways)
    figures = Table("", heads, tuple(_row(each, scale, decimals) for each in ways), f"and {left} more" if left else "")
    findings = [Table("", columns("Gravest finding", ""), tuple(found))] if found else []
    told = min(len(notes), MOST_NOTES) + len(found)
    return Overview(
        subject=several.subjects(compared),
        headline=several.headline(compared),
        result=("", "faster" if compared.fastest else "inconclusive"),
        notes=notes[:MOST_NOTES],
        bars=bars(compared.comparisons, compared.sides),
        tables=(figures, *findings),
        checks=tuple(wrong),
        hidden=max(len(notes) + sum(len(listed(each.findings)) for each in compared.comparisons) - told, 0),
    )


def _row(each: Comparison, scale: float, decimals: int) -> tuple[str, ...]:
    verdict, side = each.verdict, each.b
    compilation = side.form.compilation if side.form else None
    even = each.break_even[0] if each.break_even else None
    span = even.span if even else None
    times = ("" if us is None else f"{us / scale:,.{decimals}f}" for us in (each.a.wall_us, side.wall_us, side.busy_us))
    return (
        f" {clipped_within(side.label, NAME)}",
        times_within(verdict.speedup, verdict.ci95)
        if verdict.speedup and verdict.result != "inconclusive"
        else words.result_word(each).lower(),
        f"{verdict.ci95[0]:.3f}-{verdict.ci95[1]:.3f}" if verdict.ci95 else MISSING,
        *times,
        percent(side.idle_share, 0),
        f"{compilation.seconds:.1f}" if compilation else MISSING,
        MISSING if span is None else "never" if math.isinf(span[0]) else calls_span(*span),
    )
