"""One side by itself: its headline and figures, and what a run of one form found besides its recording."""

from statistics import median

from tracekit.model.comparison import Side
from tracekit.model.note import other_sentences
from tracekit.model.single_run import NothingCompiled, SingleRun
from tracekit.names import clipped, clipped_within
from tracekit.numbers import MISSING, counted, duration, percent
from tracekit.report import document as doc
from tracekit.report.document import Table, columns, filled_table
from tracekit.report.sections.figures import figures_table
from tracekit.report.sections.timing import KINDS
from tracekit.report.sides import with_letters
from tracekit.report.words import not_compiled as why
from tracekit.report.words.common import scope

LONGEST_LABEL = 60
#: Reasons why nothing was compiled, and characters of torch's words on one.
MOST_REASONS, MOST_WORDS = 20, 240


def headline(side: Side) -> str:
    """What one call takes; of a bare trace how busy it shows the GPU, or how long its operators took."""
    name = f"{side.settings.workload}, {side.label}" if side.settings else side.label
    label = clipped_within(name, LONGEST_LABEL)
    if side.wall_us is not None:
        return f"{label}: {duration(side.wall_us)} per call."
    if side.analysis.gpu is not None:
        return f"{label}: GPU busy {percent(1 - side.analysis.gpu.idle_fraction, 0)} of the trace."
    if side.analysis.cpu is not None:
        return f"{label}: operators take {duration(side.analysis.cpu.operator_us / side.steps)} {scope(side)}."
    return f"{label}: no GPU activity."


def warnings(single: SingleRun) -> tuple[str, ...]:
    """What to know before relying on the figures."""
    return tuple(filter(None, (compiled_too_late(single.side), *other_sentences(single.notes))))


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
            why.place(each),
            clipped(each.function or MISSING, LONGEST_LABEL),
            why.what(each),
            why.torch_words(each),
            clipped(each.explanation or each.hint or MISSING, MOST_WORDS),
        )
        for each in nothing.reasons[:MOST_REASONS]
    )
    first = next(iter(nothing.reasons), None)
    code = tuple(why.code_lines(nothing.source)) if nothing.source else ()
    if not code and first and first.line:
        code = (clipped(first.line, MOST_WORDS),)
    heads = columns("Line", "Function", "What", "Dynamo's reason", "Explanation")
    note = f"{len(rows)} of {counted(len(nothing.reasons), 'reason')}, in the order Dynamo reached them."
    commands = "\n".join(each.command for each in nothing.remedies if each.command)
    return doc.standing_section(
        "nothing-compiled",
        "Why nothing was compiled",
        doc.Part(f"{why.title(first) if first else why.UNTOLD}.", doc.FIRST),
        doc.Part(doc.Output(code), doc.FIRST) if code else None,
        doc.Part(doc.Bullets("What to change", tuple(map(why.remedy_words, nothing.remedies))), doc.FIRST),
        doc.Part(doc.Commands(commands), doc.FIRST) if commands else None,
        doc.Part(filled_table("What Dynamo could not compile", heads, rows, note), doc.FIRST),
        short="Nothing compiled",
    )


def compiled_too_late(side: Side) -> str | None:
    """A warning where timed calls compiled: their median is not what a warm form takes."""
    form = side.form
    if form is None or not form.compilations_while_timed:
        return None
    calls = len(form.wall_us) + sum(len(each.wall_us) for each in (form.timing.processes if form.timing else ()))
    return (
        f"{side.label}: {counted(form.compilations_while_timed, 'compilation')} inside {counted(calls, 'timed call')}:"
        " times include compilation."
    )
