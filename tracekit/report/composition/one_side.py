"""One side by itself: its first screen, its headline and figures, and why torch.compile compiled nothing."""

from collections.abc import Iterator
from pathlib import PurePath
from statistics import median

from tracekit.model.comparison import Side
from tracekit.model.note import other_sentences
from tracekit.model.run import Run
from tracekit.model.single_run import NothingCompiled, SingleRun
from tracekit.names import clipped, clipped_within
from tracekit.numbers import MISSING, count, counted, duration, percent
from tracekit.report import document as doc
from tracekit.report.composition.overview import MOST_NOTES, advice_of, bottleneck_words, hidden, start_words
from tracekit.report.composition.overview_account import call_account, operator_table
from tracekit.report.document import Advice, Check, Line, Overview, Table, columns, filled_table
from tracekit.report.sections.figures import figures_table
from tracekit.report.sections.kernels import kernel_name
from tracekit.report.sections.timing import KINDS
from tracekit.report.words import common as words
from tracekit.report.words import not_compiled, short
from tracekit.report.words.common import with_letters

#: Kernels that find room.
MOST_KERNELS = 6
#: Reasons beside the first why nothing was compiled, and what may mend it.
MOST_REASONS, MOST_REMEDIES = 2, 5
#: Characters of a kernel's name where there is much room, of a reason, of a warning, of the file's name, and of what a
#: side is called.
NAME, NOTE, WARNING, FILE, LABEL = 160, 96, 300, 40, 60
#: Reasons that a table lists, and characters of torch's words on one.
MOST_ROWS, MOST_WORDS = 20, 240


def side_overview(single: SingleRun, top: int = MOST_KERNELS) -> Overview:
    """What one recording says: where its time goes, by family of kernels and cause of idle time, and what to try.
    `top` is how many kernels are listed."""
    side, nothing, sides = single.side, single.nothing_compiled, with_letters(single.side)
    headline, *figures = _answer(side)
    found = [clipped(each.long(), WARNING) for each in side.health]
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
        checks=tuple(Check("", f"F{told[1:]}") for told in [start_words(side)] if told),
        hidden=hidden((*single.notes, *found), single.findings, notes, advice),
    )


def _why(nothing: NothingCompiled) -> Iterator[Line]:
    """The first reason why nothing was compiled with the user's own line, and where others are."""
    for first in nothing.reasons[:1]:
        yield Line(not_compiled.title(first), "bold")
        yield Line(f"  {clipped(first.reason, NOTE)}")
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


def interrupted_summary(run: Run) -> doc.Summary:
    """What an interrupted run has measured: its forms, and the median of the calls that were timed."""
    rows = tuple(
        (
            form.name,
            count(len(form.warmup_us)),
            count(len(form.wall_us)),
            duration(median(form.steady_us) if form.wall_us else None),
            ", ".join(each.kind for each in form.recordings) or "none",
        )
        for form in run.forms
    )
    heads = columns("Form", figures=("warm-up calls", "timed calls", "median", "recordings"))
    sized = "" if run.settings.is_of_program else f" at size {run.settings.size}"
    told = f"Interrupted run, not complete: {run.settings.workload}{sized}"
    return Line(told, "bold"), Table("", heads, rows), doc.BLANK


def side_headline(side: Side) -> str:
    """What one call takes; of a bare trace how busy it shows the GPU, or how long its operators took."""
    name = f"{side.settings.workload}, {side.label}" if side.settings else side.label
    label = clipped_within(name, LABEL)
    if side.wall_us is not None:
        return f"{label}: {duration(side.wall_us)} per call."
    if side.analysis.gpu is not None:
        return f"{label}: GPU busy {percent(1 - side.analysis.gpu.idle_fraction, 0)} of the trace."
    if side.analysis.cpu is not None:
        return f"{label}: operators take {duration(side.analysis.cpu.operator_us / side.steps)} {words.scope(side)}."
    return f"{label}: no GPU activity."


def warnings(single: SingleRun) -> tuple[str, ...]:
    """What to know before relying on the figures; first that timed calls compiled, so that their median is not what a
    warm form takes."""
    form, others = single.side.form, other_sentences(single.notes)
    if form is None or not form.compilations_while_timed:
        return others
    calls = len(form.wall_us) + sum(len(each.wall_us) for each in (form.timing.processes if form.timing else ()))
    compiled = counted(form.compilations_while_timed, "compilation")
    inside = f"{compiled} inside {counted(calls, 'timed call')}"
    return f"{single.side.label}: {inside}: times include compilation.", *others


def side_figures(side: Side) -> Table:
    """With the median call of each process beside the run's own, and each start."""
    form = side.form
    walls = [each.steady_us for each in form.timing.processes] if form and form.timing else []
    rows = [
        (f"Wall time, process {number} of {len(walls)}", duration(median(wall_us) if wall_us else None))
        for number, wall_us in enumerate(walls, 1)
    ]
    for start in form.startups if form else ():
        kind = "eager" if start.kind == "eager" else KINDS[start.kind]
        rows.append((f"First call, {kind}", duration(start.calls_us[0])))
    return figures_table(with_letters(side), rows)


def nothing_section(nothing: NothingCompiled) -> doc.Section:
    """Why torch.compile compiled nothing, the user's own line first, and what to change."""
    rows = tuple(
        (
            not_compiled.place(each),
            clipped(each.function or MISSING, LABEL),
            not_compiled.what(each),
            clipped(each.reason, MOST_WORDS),
            clipped(each.explanation or each.hint or MISSING, MOST_WORDS),
        )
        for each in nothing.reasons[:MOST_ROWS]
    )
    first = next(iter(nothing.reasons), None)
    code = tuple(not_compiled.code_lines(nothing.source)) if nothing.source else ()
    if not code and first and first.line:
        code = (clipped(first.line, MOST_WORDS),)
    heads = columns("Line", "Function", "What", "Dynamo's reason", "Explanation")
    note = f"{len(rows)} of {counted(len(nothing.reasons), 'reason')}, in the order Dynamo reached them."
    commands = "\n".join(each.command for each in nothing.remedies if each.command)
    remedies = tuple(map(not_compiled.remedy_words, nothing.remedies))
    return doc.standing_section(
        "nothing-compiled",
        "Why nothing was compiled",
        doc.Part(f"{not_compiled.title(first) if first else not_compiled.UNTOLD}.", doc.FIRST),
        doc.Part(doc.Output(code), doc.FIRST) if code else None,
        doc.Part(doc.Bullets("What to change", remedies), doc.FIRST),
        doc.Part(doc.Commands(commands), doc.FIRST) if commands else None,
        doc.Part(filled_table("What Dynamo could not compile", heads, rows, note), doc.FIRST),
        short="Nothing compiled",
    )
