"""What the terminal shows below the thirty lines when it is asked for all: of one side, of two and of several."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from statistics import median

from msgspec.structs import replace

from tracekit.model.analysis import Health
from tracekit.model.comparison import Comparison, Side
from tracekit.model.comparisons import Comparisons
from tracekit.model.run import Run
from tracekit.model.single_run import SingleRun
from tracekit.names import clipped
from tracekit.numbers import count, counted, duration, duration_change
from tracekit.report.document import (
    BLANK,
    Cell,
    Commands,
    FindingText,
    Line,
    Styled,
    Summary,
    Table,
    columns,
)
from tracekit.report.sections import headline, several
from tracekit.report.sections.compilation import compilation_sentences
from tracekit.report.sections.figures import comparison_figures
from tracekit.report.sections.findings import finding_texts, listed
from tracekit.report.sections.groups import clipped_before, distinct_places, group_label
from tracekit.report.sections.headline import part_labels, waterfall_note
from tracekit.report.sections.idle import cause_table
from tracekit.report.sections.several import comparisons_figures
from tracekit.report.sections.single_run import compiled_too_late, side_figures
from tracekit.report.sides import both_sides, with_letters
from tracekit.report.words import common as words
from tracekit.report.words.notes import grave_sentences, note_sentences, other_sentences

SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
#: Widths in characters, for 80 columns: the waterfall's bars, and kernel names.
BAR = 14
NAME = 40
#: Groups of kernels that are listed.
GROUPS = 8


def analysis_details(single: SingleRun) -> Summary:
    """One trace's figures, with what its run folder adds."""
    side = single.side
    window, idle, late = side.analysis.window, headline.idle_sentence(side), compiled_too_late(side)
    steps, spans = counted(window.steps, "step"), counted(window.steps, "span")
    over = {"steps": steps, "span": spans, "whole": words.extent(side)}[window.kind]
    caption = f"{clipped(PurePath(side.path).name, 40)}: {over}, {duration(window.span_us)}"
    return (
        *lines(grave_sentences(single.notes), lead="warning: "),
        *_health(side.health),
        *lines((late,), style="yellow"),
        replace(side_figures(side), caption=caption, note=f"GPU {idle}." if idle else ""),
        *lines(compilation_sentences(side)),
        *_parted(_idle(side)),
    )


def interrupted_summary(run: Run) -> Summary:
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
    caption = f"Interrupted run, not complete: {run.settings.workload} at size {run.settings.size}"
    return Table(caption, heads, rows), BLANK


def comparison_details(comparison: Comparison) -> Summary:
    """The figures side by side, where the time went, what to do, and what must be known to rely on all of it."""
    sides = (comparison.a, comparison.b)
    # That a trace marks no steps is among the warnings, said of both sides; damage stands at the top already.
    health = [each for side in sides for each in side.health if each.code != "whole_trace"]
    notes = other_sentences(each for each in comparison.notes if each.code != "damaged_recording")
    return (
        *lines(grave_sentences(comparison.notes), lead="warning: "),
        *lines(headline.limit_sentences(comparison)),
        *_health(each for each in health if each.severity == "error"),
        BLANK,
        comparison_figures(comparison),
        *lines(each for side in sides for each in compilation_sentences(side)),
        *_parted(_waterfall(comparison)),
        *_parted([table] if (table := cause_table(both_sides(comparison), brief=True)) and table.rows else []),
        *_parted(_groups(comparison)),
        *(part for finding in finding_texts(listed(comparison.findings)).findings for part in _finding(finding)),
        *_parted(lines(notes, lead="note: ")),
        *_health(each for each in health if each.severity != "error"),
    )


def comparisons_details(compared: Comparisons) -> Summary:
    """Why each is faster, the figures side by side, the most serious finding of each."""
    first = [(each.b.label, finding_texts(listed(each.findings)[:1]).findings) for each in compared.comparisons]
    own = len(several.notes_of_runs(compared))
    notes = (*note_sentences(compared.notes), f"{counted(own, 'note')} on single runs in the report" if own else None)
    return (
        *lines(several.notes_of_runs(compared, grave=True), lead="warning: "),
        *lines(several.sentences(compared)),
        BLANK,
        comparisons_figures(compared),
        BLANK,
        *(
            Line(f"{name}: {each.title}", "", f"{each.severity}: ", SEVERITY_STYLES[each.severity])
            for name, findings in first
            for each in findings
        ),
        *_parted(lines(notes, lead="note: ")),
    )


def lines(texts: Iterable[str | None], *, style: str = "", lead: str = "") -> tuple[Line, ...]:
    """Those that there are, each after the `lead`."""
    return tuple(Line(each, style, lead, "yellow" if lead else "") for each in texts if each)


def _parted(parts: Sequence[Line | Table]) -> tuple[Line | Table, ...]:
    """The parts after an empty line, where there are any."""
    return (BLANK, *parts) if parts else ()


def _health(findings: Iterable[Health]) -> tuple[Line, ...]:
    said = dict.fromkeys((finding.severity, finding.long()) for finding in findings)
    return tuple(
        Line(clipped(message, 300), "", f"{severity}: ", SEVERITY_STYLES[severity]) for severity, message in said
    )


def _finding(finding: FindingText) -> Iterator[Line | Commands]:
    saving = f" ({finding.saving})" if finding.saving else ""
    yield BLANK
    yield Line(f"{finding.title}{saving}", "", f"{finding.severity}: ", SEVERITY_STYLES[finding.severity])
    yield Line(f"  {finding.evidence}")
    if finding.is_command:
        yield Commands(finding.advice)
    elif finding.advice:
        yield Line(f"  Try: {finding.advice}.")
    yield from (Line(f"  {note}", "dim") for note in finding.notes)


def _idle(side: Side) -> tuple[Table, ...]:
    if side.analysis.idle is None or not side.analysis.idle.causes:
        return ()
    causes = cause_table(with_letters(side), brief=True)
    return (causes,) if causes else ()


def _waterfall(comparison: Comparison) -> tuple[Table, ...]:
    waterfall = comparison.waterfall
    if waterfall is None:
        return ()
    basis = "unprofiled wall time" if waterfall.basis == "unprofiled" else "recorded window"
    a, b = (clipped(side.label, 40) for side in (comparison.a, comparison.b))
    parts = zip(part_labels(comparison), waterfall.parts, strict=True)
    changes = [*((name, part.delta_us) for name, part in parts), ("residual, not explained", waterfall.residual_us)]
    longest = max(abs(us) for _, us in changes)
    # That a rank waits longer for others is no loss of its own.
    styles = ["" if part.kind == "communication" else None for part in waterfall.parts]
    bars = [
        Styled((("█" * (round(abs(us) / longest * BAR) if longest else 0), style),))
        for (_, us), own in zip(changes, [*styles, None], strict=True)
        for style in [("green" if us < 0 else "red") if own is None else own]
    ]
    rows: tuple[tuple[Cell, ...], ...] = (
        (f"A: {a}", duration(waterfall.a_us), ""),
        *((name, duration_change(us), bar) for (name, us), bar in zip(changes, bars, strict=True)),
        (f"B: {b}", duration(waterfall.b_us), ""),
    )
    caption = f"Where the difference comes from ({basis}, {words.shared_scope(comparison)})"
    heads = (*columns("Part", figures=("Change",)), *columns(""))
    return (Table(caption, heads, rows, waterfall_note(comparison)),)


def _groups(comparison: Comparison) -> tuple[Table, ...]:
    if not comparison.groups:
        return ()
    groups, rows = comparison.groups[:GROUPS], []
    for group, place in zip(groups, distinct_places(comparison.groups), strict=False):
        numbers = [count(sum(member.count for member in members)) for members in (group.a, group.b)]
        name = clipped(group_label(group), NAME) if group.kind == "unchanged" else group_label(group)
        below = f"\n{clipped_before(place, NAME)}" if place else ""
        change = duration_change(group.delta_us)
        rows.append((Styled(((name, ""), (below, "dim"))), words.became(group), " → ".join(numbers), change))
    evidence = [
        f"{group_label(group)}: {' '.join(each.long() for each in group.evidence)}"
        for group in groups
        if group.evidence
    ]
    caption = f"Kernel groups with the largest change, {words.shared_scope(comparison)}"
    note = "\n".join((*evidence, words.legend(words.kinds_and_ways(groups)[0])))
    return (Table(caption, columns("Kernels", "Became", figures=("Count", "Change")), tuple(rows), note),)
