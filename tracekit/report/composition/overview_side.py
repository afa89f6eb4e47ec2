"""What one recording says: where its time goes, by family of kernels and cause of idle time, and what to try."""

from collections.abc import Iterator
from pathlib import PurePath

from tracekit.model.comparison import Side
from tracekit.model.single_run import NothingCompiled, SingleRun
from tracekit.names import clipped, clipped_within
from tracekit.numbers import count, counted, duration, percent
from tracekit.report.composition.overview import MOST_NOTES, advice_of, bottleneck_words, hidden
from tracekit.report.composition.overview_account import call_account, operator_table
from tracekit.report.document import Advice, Line, Overview, Table, columns, filled_table
from tracekit.report.sections.kernels import kernel_name
from tracekit.report.sides import with_letters
from tracekit.report.words import common as words
from tracekit.report.words import not_compiled, short

#: Kernels that find room.
MOST_KERNELS = 6
#: Reasons beside the first why nothing was compiled, and what may mend it.
MOST_REASONS, MOST_REMEDIES = 2, 5
#: Characters of a kernel's name where there is much room, of a note, and of the file's name.
NAME, NOTE, FILE = 160, 96, 40


def side_overview(single: SingleRun, top: int = MOST_KERNELS) -> Overview:
    """`top` is how many kernels are listed."""
    side, nothing, sides = single.side, single.nothing_compiled, with_letters(single.side)
    headline, *figures = _answer(side)
    found = [clipped_within(each.long(), NOTE) for each in side.health]
    notes = (*short.headline_notes(single.notes), *found)
    if nothing is not None:
        return Overview(
            subject=words.subject(side),
            headline=not_compiled.HEADLINE,
            result=("", "inconclusive"),
            evidence=f"eager: {' · '.join((headline, *figures))}",
            notes=notes[:MOST_NOTES],
            why=tuple(_why(nothing)),
            advice=tuple(
                Advice(each.option or words, words if each.option else "", "", False, each.command or "")
                for each in nothing.remedies[:MOST_REMEDIES]
                for words in [not_compiled.advice_words(each)]
            ),
            hidden=max(len(single.notes) + len(found) + len(single.findings) - min(len(notes), MOST_NOTES), 0),
        )
    advice = tuple(advice_of(single.findings, side, side.bound))
    return Overview(
        subject=f"{clipped_within(PurePath(side.path).name, FILE)} · {words.subject(side)}",
        headline=headline,
        walls=" · ".join(figures),
        notes=notes[:MOST_NOTES],
        account=call_account(sides),
        bottleneck=bottleneck_words(side, side.bound) if side.bound else "",
        graph_breaks=short.costly_breaks(single.findings),
        tables=tuple(filter(None, (_kernels(side, top), operator_table(sides, top)))),
        advice=advice,
        hidden=hidden((*single.notes, *found), single.findings, notes, advice),
    )


def _why(nothing: NothingCompiled) -> Iterator[Line]:
    """The first reason why nothing was compiled with the user's own line, and where others are."""
    for first in nothing.reasons[:1]:
        yield Line(not_compiled.title(first), "bold")
        yield Line(f"  {clipped(not_compiled.torch_words(first), NOTE)}")
        yield Line(f"  {clipped_within(not_compiled.place(first), NOTE)}")
        code = not_compiled.code_lines(nothing.source) if nothing.source else filter(None, (first.line,))
        yield from (Line(f"    {clipped(line, NOTE - 2)}", "cyan") for line in code)
    more = nothing.reasons[1:]
    for each in more[:MOST_REASONS]:
        yield Line(f"  also {clipped_within(f'{not_compiled.place(each)}: {not_compiled.what(each)}', NOTE - 5)}")
    if len(more) > MOST_REASONS:
        yield Line(f"  and {len(more) - MOST_REASONS} more")
    if not nothing.reasons:
        yield Line(not_compiled.UNTOLD, "bold")


def _answer(side: Side) -> list[str]:
    """`3.39 ms per call`, `GPU idle 76 %`, `200 kernels, 200 launches`."""
    told = [f"{duration(side.wall_us)} per call"] if side.wall_us is not None else []
    if side.idle_share is not None:
        told.append(f"GPU idle {percent(side.idle_share, 0)}")
    elif side.recorded_idle_share is not None:
        told.append(f"GPU idle {percent(side.recorded_idle_share, 0)} with profiler, less without")
    if side.kernels_per_step is not None:
        exposed = ""
        if side.analysis.communication and side.span_us:
            exposed = f"exposed communication {percent(side.exposed_us / side.span_us, 0)}, "
        launches = f", {count(side.launches_per_step)} launches" if side.launches_per_step is not None else ""
        told.append(f"{exposed}{count(side.kernels_per_step)} kernels{launches}")
    if side.analysis.cpu is not None:
        operators = counted(round(side.analysis.cpu.operator_count / side.steps), "operator")
        told.append(f"{operators}, {duration(side.analysis.cpu.operator_us / side.steps)} {words.scope(side)}")
    return told or ["no GPU activity was recorded"]


def _kernels(side: Side, top: int) -> Table | None:
    """The kernels with the largest total time; None of a CPU run."""
    kernels = side.analysis.kernels
    if kernels is None:
        return None
    rows = (
        (kernel_name(each.name, NAME), words.family_words(each), count(each.count / side.steps), duration(us))
        for each in kernels.by_name[:top]
        for us in [each.total_us / side.steps]
    )
    heads = columns(f"Largest of {kernels.unique:,} kernels, {words.scope(side)}", "family", figures=("count", "time"))
    return filled_table("", heads, rows)
