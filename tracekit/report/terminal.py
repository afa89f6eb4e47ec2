"""Summaries for the terminal. Names come from traces, so nothing is read as markup."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from tracekit.model.analysis import CpuUse, HealthFinding
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.names import clipped, clipped_within, printable, short_kernel_name
from tracekit.numbers import count, counted, duration, duration_change
from tracekit.report.places import clipped_before, distinct_places
from tracekit.report.sections.alone import compiled_too_late, figure_rows
from tracekit.report.sections.compilation import compilation_sentences
from tracekit.report.sections.findings import finding_notes, saving_words
from tracekit.report.sections.gate import gate_outcome, gate_sentences
from tracekit.report.sections.groups import group_label
from tracekit.report.sections.limits import idle_sentence, limit_sentences
from tracekit.report.sections.numerics import accuracy_sentence
from tracekit.report.sections.overview import overview_table
from tracekit.report.sections.reason import reason_sentence
from tracekit.report.sections.startup import break_even_sentence
from tracekit.report.sections.waterfall import part_labels, waterfall_note
from tracekit.report.table import Cell, Column, Name, Table
from tracekit.report.words.common import (
    became,
    cause_words,
    extent,
    kinds_told,
    legend,
    scope,
    shared_scope,
    subjects,
    verdict_evidence,
    verdict_sentence,
)
from tracekit.report.words.findings import finding_advice, finding_evidence, finding_title
from tracekit.report.words.groups import evidence_sentences
from tracekit.report.words.health import health_sentence
from tracekit.report.words.notes import grave_sentences, other_sentences

if TYPE_CHECKING:
    from tracekit.model.run import Run

RESULT_STYLES = {"faster": "bold green", "slower": "bold red", "inconclusive": "bold yellow", "not_timed": "bold"}
OUTCOME_STYLES = {"pass": "green", "fail": "bold red", "inconclusive": "bold yellow"}
SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}

#: Widths in characters, for 80 columns: the waterfall's bars, kernel names, and commands before they are continued.
BAR = 14
NAME = 40
COMMAND_WIDTH = 72


def analysis_summary(side: Side, *, top: int = 10) -> RenderableType:
    """One trace at a glance, with what its run folder adds. `top` is how many kernels or operators are listed."""
    analysis = side.analysis
    late = compiled_too_late(side)
    parts: list[RenderableType] = [*_health(side.health), *([Text(printable(late), style="yellow")] if late else [])]
    parts += [_figures(side), *(Text(printable(each)) for each in compilation_sentences(side))]
    if analysis.kernels is not None and analysis.kernels.by_name:
        parts += [Text(), _kernels(side, top)]
    if analysis.idle is not None and analysis.idle.causes:
        parts += [Text(), _idle(side)]
    if analysis.cpu is not None:
        parts += [Text(), _operators(side, analysis.cpu, top)]
    return Group(*parts)


def interrupted_summary(run: Run) -> RenderableType:
    """What an interrupted run has measured: its forms, and the median of the calls that were timed."""
    drawn = _empty(
        (Column("Form", numeric=False), *map(Column, ("warm-up calls", "timed calls", "median", "recordings")))
    )
    from statistics import median

    for form in run.forms:
        middle = median(form.wall_us) if form.wall_us else None
        recordings = ", ".join(each.kind for each in form.recordings) or "none"
        cells = (form.name, count(len(form.warmup_us)), count(len(form.wall_us)), duration(middle), recordings)
        drawn.add_row(*map(Text, cells))
    caption = f"This run was interrupted and is not whole: {run.settings.workload} at size {run.settings.size}"
    return Group(_captioned(printable(caption), drawn), Text())


def comparison_summary(comparison: Comparison, next_commands: Sequence[str]) -> RenderableType:
    """The verdict, the figures side by side, where the time went, what to do, and the commands to type next."""
    evidence, accuracy = verdict_evidence(comparison), accuracy_sentence(comparison)
    # That a trace marks no steps is among the warnings, said of both sides.
    health = [each for side in (comparison.a, comparison.b) for each in side.health if each.code != "whole_trace"]
    parts: list[RenderableType] = [Text(printable(subjects(comparison)), style="dim"), Text()]
    gate = tuple(_gate(comparison))
    parts += [*gate, Text()] if gate else []
    parts.append(Text(printable(verdict_sentence(comparison)), style=RESULT_STYLES[comparison.verdict.result]))
    parts += [Text(evidence)] if evidence else []
    parts += [Text.assemble(("warning: ", "yellow"), printable(each)) for each in grave_sentences(comparison.notes)]
    pays = break_even_sentence(comparison)
    parts += [Text(pays)] if pays else []
    parts += [Text(printable(why))] if (why := reason_sentence(comparison)) else []
    parts += [Text(printable(sentence)) for sentence in limit_sentences(comparison)]
    parts += [Text(printable(accuracy))] if accuracy else []
    parts += _health([each for each in health if each.severity == "error"])
    parts += [Text(), rendered(overview_table(comparison))]
    parts += [Text(printable(each)) for side in (comparison.a, comparison.b) for each in compilation_sentences(side)]
    parts += [Text(), _waterfall(comparison)] if comparison.waterfall else []
    parts += [Text(), _groups(comparison)] if comparison.groups else []
    parts += [part for finding in comparison.findings for part in _finding(finding)]
    notes = list(_notes(comparison))
    parts += [Text(), *notes] if notes else []
    parts += _health([each for each in health if each.severity != "error"])
    parts += [Text(), *next_lines(next_commands)] if next_commands else []
    # First because it was asked for, and last because that is what is still in view.
    parts += [Text(), *gate] if gate else []
    return Group(*parts)


def _gate(comparison: Comparison) -> Iterator[RenderableType]:
    if comparison.gate is None:
        return
    yield Text(gate_outcome(comparison.gate), style=OUTCOME_STYLES[comparison.gate.ends_as])
    for sentence, each in zip(gate_sentences(comparison), comparison.gate.checked, strict=True):
        yield Text(printable(sentence), style=OUTCOME_STYLES[each.outcome])


def rendered(table: Table) -> RenderableType:
    drawn = _empty(table.columns)
    for row in table.rows:
        drawn.add_row(*(_cell(cell) for cell in row))
    return _captioned(table.caption, drawn, table.note)


def _empty(columns: Sequence[Column]) -> RichTable:
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        drawn.add_column(
            Text(clipped_within(printable(column.label), 24)),
            justify="right" if column.numeric else "left",
            overflow="fold",
        )
    return drawn


def _captioned(caption: str, drawn: RichTable, note: str = "") -> RenderableType:
    parts: list[RenderableType] = [Text(caption, style="bold"), drawn]
    return Group(*parts, Text(note, style="dim")) if note else Group(*parts)


def _cell(cell: Cell) -> Text:
    return Text(printable(cell.short if isinstance(cell, Name) else cell))


def _figures(side: Side) -> RenderableType:
    drawn = _empty((Column(scope(side).capitalize(), numeric=False), Column("")))
    for label, value in figure_rows(side):
        drawn.add_row(Text(label), Text(value))
    idle = idle_sentence(side)
    return _captioned(_window(side), drawn, f"GPU {idle}." if idle else "")


def _window(side: Side) -> str:
    window = side.analysis.window
    steps, spans = counted(window.steps, "step"), counted(window.steps, "span")
    kind = {"steps": steps, "span": spans, "whole": extent(side)}[window.kind]
    return f"{clipped(printable(PurePath(side.path).name), 40)}: {kind}, {duration(window.span_us)}"


def _kernels(side: Side, limit: int) -> RenderableType:
    kernels = side.analysis.kernels
    if kernels is None:
        return Text()
    columns = (Column("Kernel", numeric=False), Column("Family", numeric=False), Column("Count"), Column("Total"))
    drawn = _empty(columns)
    for each in kernels.by_name[:limit]:
        name, number, us = short_kernel_name(each.name, NAME), each.count / side.steps, each.total_us / side.steps
        drawn.add_row(Text(name), Text(each.family), Text(count(number)), Text(duration(us)))
    return _captioned(f"Largest {min(limit, len(kernels.by_name))} of {kernels.unique:,} kernels, {scope(side)}", drawn)


def _idle(side: Side) -> RenderableType:
    drawn = _empty((Column("Cause", numeric=False), Column("Idle")))
    for cause, us in sorted(side.idle_by_cause().items(), key=lambda item: -item[1]):
        drawn.add_row(Text(cause_words(cause)), Text(duration(us)))
    note = (
        "Host time that the light recording does not divide is divided as in the rich one."
        if side.host is side.rich
        else ""
    )
    return _captioned(f"Idle time by cause, as recorded, {scope(side)}", drawn, note)


def _operators(side: Side, cpu: CpuUse, limit: int) -> RenderableType:
    columns = (Column("Operator", numeric=False), Column("Count"), Column("Own time"))
    drawn = _empty(columns)
    for each in cpu.top[:limit]:
        name = clipped(printable(each.name), 48)
        drawn.add_row(Text(name), Text(count(each.count / side.steps)), Text(duration(each.self_us / side.steps)))
    note = "A CPU recording shows no kernel launches and no GPU idle time."
    return _captioned(f"CPU recording: operators with the most time of their own, {scope(side)}", drawn, note)


def _waterfall(comparison: Comparison) -> RenderableType:
    waterfall = comparison.waterfall
    if waterfall is None:
        return Text()
    basis = "unprofiled wall time" if waterfall.basis == "unprofiled" else "recorded window"
    columns = (Column("Part", numeric=False), Column("Change"), Column("", numeric=False))
    drawn = _empty(columns)
    drawn.add_row(Text(f"A: {clipped(printable(comparison.a.label), 40)}"), Text(duration(waterfall.a_us)), Text())
    labels = part_labels(comparison)
    changes = [(label, part.delta_us) for label, part in zip(labels, waterfall.parts, strict=True)]
    changes.append(("residual, not explained", waterfall.residual_us))
    longest = max(abs(us) for _, us in changes)
    for label, us in changes:
        drawn.add_row(Text(label), Text(duration_change(us)), _bar(us, longest))
    drawn.add_row(Text(f"B: {clipped(printable(comparison.b.label), 40)}"), Text(duration(waterfall.b_us)), Text())
    caption = f"Where the difference comes from ({basis}, {shared_scope(comparison)})"
    return _captioned(caption, drawn, waterfall_note(comparison))


def _bar(us: float, longest: float) -> Text:
    length = round(abs(us) / longest * BAR) if longest else 0
    return Text("█" * length, style="green" if us < 0 else "red")


def _groups(comparison: Comparison, limit: int = 8) -> RenderableType:
    columns = (Column("Kernels", numeric=False), Column("Became", numeric=False), Column("Count"), Column("Change"))
    drawn = _empty(columns)
    places = distinct_places(comparison.groups)
    for group, place in zip(comparison.groups[:limit], places, strict=False):
        numbers = [count(sum(member.count for member in members)) for members in (group.a, group.b)]
        label = clipped(group_label(group), NAME) if group.kind == "unchanged" else group_label(group)
        told = Text.assemble(label, (f"\n{clipped_before(place, NAME)}", "dim") if place else "")
        drawn.add_row(told, Text(became(group)), Text(" → ".join(numbers)), Text(duration_change(group.delta_us)))
    note = "\n".join(
        f"{group_label(group)}: {printable(' '.join(evidence_sentences(group.evidence)))}"
        for group in comparison.groups[:limit]
        if group.evidence
    )
    return _captioned(
        f"Kernel groups with the largest change, {shared_scope(comparison)}",
        drawn,
        f"{note}\n{legend(kinds_told(comparison.groups[:limit]))}".strip(),
    )


def _finding(finding: Finding) -> Iterator[RenderableType]:
    saving = f" ({words})" if (words := saving_words(finding)) else ""
    yield Text()
    yield Text.assemble(
        (f"{finding.severity}: ", SEVERITY_STYLES[finding.severity]), printable(finding_title(finding)) + saving
    )
    yield Text("  " + printable(finding_evidence(finding)))
    if finding.action and finding.action.command:
        yield _command(finding.action.command)
    elif advice := finding_advice(finding):
        yield Text(f"  Try: {printable(advice)}.")
    yield from (Text("  " + printable(note), style="dim") for note in finding_notes(finding))


def _notes(comparison: Comparison) -> Iterator[Text]:
    # Damage stands at the top already.
    for sentence in other_sentences(each for each in comparison.notes if each.code != "damaged_recording"):
        yield Text.assemble(("note: ", "yellow"), printable(sentence))


def _health(findings: Sequence[HealthFinding]) -> list[Text]:
    said = dict.fromkeys((finding.severity, printable(health_sentence(finding))) for finding in findings)
    return [
        Text.assemble((f"{severity}: ", SEVERITY_STYLES[severity]), clipped(message, 300)) for severity, message in said
    ]


def next_lines(commands: Sequence[str]) -> Iterator[Text]:
    yield Text("Next:", style="bold")
    for command in commands:
        yield _command(command)


def _command(text: str) -> Text:
    """Long commands are continued with backslashes, so that they can be copied."""
    if "tracekit " not in text:
        return Text("  " + printable(text), style="cyan")
    # What is quoted stays in one piece, and an option on one line with its value.
    whole = re.sub("'[^']*'|\"[^\"]*\"", lambda quoted: quoted[0].replace(" ", "\0"), printable(text))
    joined = re.sub(r"(--\S+) (?!-)", r"\1\0", whole)
    lines = textwrap.wrap(joined, COMMAND_WIDTH, break_long_words=False, break_on_hyphens=False)
    return Text("  " + " \\\n    ".join(lines).replace("\0", " "), style="cyan")
