"""Several ways to compile: which is fastest, what each is worth, and their figures, a row or a column a way."""

import math
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from tracekit.model.comparison import Comparison
from tracekit.model.comparisons import Comparisons
from tracekit.model.note import distinct
from tracekit.names import clipped_within
from tracekit.numbers import MISSING, calls_span, count, duration, percent, scale_of, times, times_within
from tracekit.report.composition.overview import MOST_NOTES, bars, hidden
from tracekit.report.document import Check, Column, Overview, Table, columns
from tracekit.report.sections.figures import figures_table
from tracekit.report.sections.outputs import RESULTS as OUTPUTS
from tracekit.report.sections.timing import KINDS, pays_after
from tracekit.report.words import common as words
from tracekit.report.words import short
from tracekit.report.words.common import with_letters
from tracekit.shell import variable_words

#: Ways and findings that find room, and characters of a way's name.
MOST_WAYS, MOST_FINDINGS, NAME = 12, 4, 26
COLUMNS = ("speed-up", "95 % CI", "eager", "compiled", "busy", "idle", "compile s", "pays off")
#: Of a form beside the eager one of its process.
AGAINST_EAGER: dict[str, Callable[[Comparison], str]] = {
    "Eager in the same process": lambda each: duration(each.a.wall_us),
    "Speed-up": lambda each: (
        MISSING
        if each.verdict.speedup is None
        else words.result_word(each)
        if each.verdict.result == "inconclusive"
        else times(each.verdict.speedup)
    ),
    "95 % CI": lambda each: f"{each.verdict.ci95[0]:.3f}-{each.verdict.ci95[1]:.3f}" if each.verdict.ci95 else MISSING,
    "Verdict": lambda each: words.result_word(each).lower(),
}


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
    findings_of_all = (finding for each in compared.comparisons for finding in each.findings)
    return Overview(
        subject=subjects(compared),
        headline=headline(compared),
        result=("", "faster" if compared.fastest else "inconclusive"),
        notes=notes[:MOST_NOTES],
        bars=bars(compared.comparisons, compared.sides),
        tables=(figures, *findings),
        checks=tuple(wrong),
        hidden=hidden(notes, findings_of_all, notes, found),
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


def headline(compared: Comparisons) -> str:
    """Which is fastest over its own eager form, and which were not judged, for what has nothing to do with speed."""
    if compared.leader is None:
        slower = all(each.verdict.result == "slower" for each in compared.comparisons)
        unknown = [each.b.label for each in compared.comparisons if words.is_open(each.verdict)]
        fastest = "All are slower than eager." if slower else "None is faster than eager."
        if unknown:
            fastest = f"Not enough to tell whether {' or '.join(unknown)} is faster than eager."
    else:
        leader = compared.comparisons[compared.leader]
        name, speedup = leader.b.label, times(leader.verdict.speedup)
        others = [compared.comparisons[at].b.label for at in compared.fastest if at != compared.leader]
        fastest = f"{name} is fastest: {speedup} faster than eager."
        if others:
            fastest = f"{name} is {speedup} faster than eager; nothing tells {' and '.join(others)} from it."
    for why, late in (("compilation inside timed calls", True), ("too few timed calls", False)):
        unjudged = (compared.comparisons[at] for at in compared.not_judged)
        names = [each.b.label for each in unjudged if bool(each.compiled_while_timed) == late]
        fastest += f" No verdict, {why}: {', '.join(names)}." if names else ""
    return fastest


def shortest_calls(compared: Comparisons) -> Iterator[str]:
    """That another form has the shortest calls and the smaller speed-up, where its eager form was faster too."""
    timed = {at: each.b.wall_us for at, each in enumerate(compared.comparisons) if each.b.wall_us is not None}
    if not timed or compared.leader is None:
        return
    at = min(timed, key=lambda at: timed[at])
    shortest, leader = compared.comparisons[at], compared.comparisons[compared.leader]
    speedups, walls = (shortest.verdict.speedup, leader.verdict.speedup), (shortest.a.wall_us, leader.a.wall_us)
    if at in (compared.leader, *compared.not_judged) or None in speedups or None in walls:
        return
    if (speedups[0] or 0.0) < (speedups[1] or 0.0) and (walls[0] or 0.0) < (walls[1] or 0.0):
        ends = f"{shortest.b.label} has the shortest calls ({duration(timed[at])})"
        yield f"{ends} but a smaller speed-up: eager was faster in the same process."


def notes_of_runs(compared: Comparisons, *, grave: bool = False) -> tuple[str, ...]:
    """What must be known of single runs, or that without which a verdict misleads; what is said of several stands once,
    with their names."""
    found = [(each.b.label, note) for each in compared.comparisons for note in each.notes if note.grave == grave]
    return tuple(
        f"{', '.join(name for name, each in found if each == note)}: {note.long()}"
        for note in distinct(note for _, note in found)
    )


def subjects(compared: Comparisons) -> str:
    """What was run, on what: the same for all. Variables that steer torch only where they are."""
    side = compared.comparisons[0].a
    steered = {variable_words(each.a.settings.variables) for each in compared.comparisons if each.a.settings}
    if side.settings and len(steered) > 1:
        side = replace(side, settings=replace(side.settings, variables={}))
    return words.subject(side)


def comparisons_figures(compared: Comparisons) -> Table:
    """With what compiling costs and brings, a column for each form."""
    by_side = [compared.of(side) for side in compared.sides]
    kinds = dict.fromkeys(start.kind for each in compared.comparisons for start in each.break_even)
    # Empty of an eager form.
    starts = [{start.kind: pays_after(start) for start in each.break_even} if each else None for each in by_side]
    paid_after = {kind: ["" if each is None else each.get(kind, MISSING) for each in starts] for kind in kinds}
    return figures_table(
        with_letters(*compared.sides),
        [(label, *(figure(each) if each else "" for each in by_side)) for label, figure in AGAINST_EAGER.items()],
        [(f"Break-even ({KINDS[kind]})", *paid) for kind, paid in paid_after.items()],
        "Eager is of the first run." if compared.alike else "",
    )


def run_table(compared: Comparisons) -> Table:
    """Which run each form comes from."""
    rows = tuple(
        (each.b.label, path, count(len(each.b.form.wall_us) if each.b.form else None))
        for each, path in zip(compared.comparisons, compared.paths, strict=True)
    )
    return Table("Runs", columns("Variant", "Run", figures=("Timed calls",)), rows)
