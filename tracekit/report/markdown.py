"""The markdown twin of the page, small enough for a pull request's comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tracekit.model.comparison import Comparison, Finding
from tracekit.model.run import Run
from tracekit.numbers import duration
from tracekit.report.beside import setting_tables
from tracekit.report.lettered import both
from tracekit.report.method import how_measured
from tracekit.report.names import clipped, printable
from tracekit.report.sections.compilation import compilation_tables
from tracekit.report.sections.findings import finding_notes
from tracekit.report.sections.gate import gate_table
from tracekit.report.sections.groups import evidence_table, group_table, origin_table
from tracekit.report.sections.idle import cause_table, gap_table, sync_table
from tracekit.report.sections.kernels import family_table, top_kernels_table
from tracekit.report.sections.limits import limit_sentences
from tracekit.report.sections.memory import memory_table
from tracekit.report.sections.numerics import accuracy_sentence, numerics_table
from tracekit.report.sections.operators import operator_table
from tracekit.report.sections.overview import overview_table
from tracekit.report.sections.queue import queue_table
from tracekit.report.sections.startup import startup_table
from tracekit.report.sections.timing import certainty_table, process_table, timing_table
from tracekit.report.sections.traffic import product_table
from tracekit.report.sections.waterfall import waterfall_table
from tracekit.report.table import Cell, Name, Table
from tracekit.report.words import subjects, verdict_evidence, verdict_sentence, warnings_beside

#: What GitHub takes in one comment.
LONGEST = 65_536

#: Longer names are cut in markdown; the page has them whole.
LONGEST_NAME = 120
#: A command that was cut could not be run.
LONGEST_COMMAND = 4000

ACTIVE = re.compile(r"([\\`*_\[\]<>#|~@$&])")

#: What begins a list, or underlines a heading, where it begins a line.
LEADING = re.compile(r"^(\s*\d*)([-+.)](?=\s|$)|[-=](?=[-=\s]*$))")


def comparison_markdown(comparison: Comparison, run: Run | None = None, command: str | None = None) -> str:
    """The comparison in GitHub's markdown, at most 65,535 characters; `command` is the one that reproduces it.

    Sections that do not fit are left out from the end, and the text says so.
    """
    return bounded(_sections(comparison, run, command))


def bounded(sections: Iterable[str]) -> str:
    """The sections in order, as many as one comment holds; the text says where it ends before they do."""
    text = ""
    for section in sections:
        if len(text) + len(section) > LONGEST - 200:
            return text + "\n\nThe rest is left out for its length; the HTML page has all of it.\n"
        text += section
    return text


def _sections(comparison: Comparison, run: Run | None, command: str | None) -> Iterator[str]:
    yield f"# {escaped(verdict_sentence(comparison))}\n\n{escaped(subjects(comparison))}\n\n"
    evidence = verdict_evidence(comparison)
    yield f"{escaped(evidence)}\n\n" if evidence else ""
    yield "".join(f"**Warning.** {escaped(each)}\n\n" for each in comparison.grave)
    accuracy = accuracy_sentence(comparison)
    yield "".join(f"{escaped(each)}\n\n" for each in (*limit_sentences(comparison), accuracy) if each)
    yield markdown_list("Before you rely on this", warnings_beside(comparison))
    yield markdown_list("About this run", about_run(run))
    yield markdown_findings(comparison.findings)
    for table in _tables(comparison, run):
        yield markdown_table(table) if table is not None else ""
    yield from markdown_ending(how_measured(comparison, run), command)


def about_run(run: Run | None) -> tuple[str, ...]:
    return (f"Size chosen: {run.size_reason}.", *run.notes) if run else ()


def _tables(comparison: Comparison, run: Run | None) -> Iterator[Table | None]:
    sides = both(comparison)
    yield gate_table(comparison)
    yield overview_table(comparison)
    yield startup_table(comparison)
    yield numerics_table(comparison)
    yield memory_table(sides)
    yield waterfall_table(comparison)
    yield family_table(sides)
    yield group_table(comparison, limit=12)
    yield evidence_table(comparison)
    yield origin_table(comparison)
    yield product_table(comparison)
    yield cause_table(sides)
    yield queue_table(sides)
    yield from compilation_tables(sides)
    for letter, side in sides:
        yield top_kernels_table(side, letter, limit=10)
        yield operator_table(side, letter, limit=10)
        yield gap_table(side, letter, limit=5)
        yield sync_table(side, letter, limit=5)
    yield certainty_table(comparison)
    yield timing_table(sides)
    yield process_table(comparison)
    yield from setting_tables(sides, run)


def markdown_list(heading: str, texts: Iterable[str]) -> str:
    """The texts as a list under the heading; nothing where there are none."""
    items = "".join(f"- {escaped(text)}\n" for text in texts)
    return f"## {heading}\n\n{items}\n" if items else ""


def markdown_findings(findings: Iterable[Finding], heading: str = "Findings") -> str:
    """Nothing where there are none."""
    items = "".join(map(_finding, findings))
    return f"## {heading}\n\n{items}\n" if items else ""


def markdown_ending(method: Iterable[tuple[str, str]], command: str | None) -> Iterator[str]:
    """How it was measured, and the command that makes it anew."""
    yield "## How this was measured\n\n" + "".join(f"- **{term}.** {escaped(text)}\n" for term, text in method) + "\n"
    yield f"## Reproduce\n\n{fenced(command)}\n" if command else ""


def markdown_table(table: Table) -> str:
    header = " | ".join(escaped(column.label) or " " for column in table.columns)
    rule = "|".join("--:" if column.numeric else "---" for column in table.columns)
    rows = "".join("| " + " | ".join(map(_cell, row)) + " |\n" for row in table.rows)
    note = f"\n{escaped(table.note)}\n" if table.note else ""
    return f"### {escaped(table.caption)}\n\n| {header} |\n|{rule}|\n{rows}{note}\n"


def _finding(finding: Finding) -> str:
    saving = f" Saving: up to {duration(finding.saving_us)}." if finding.saving_us is not None else ""
    saving += f" Saving: {duration(finding.start_saving_us)} a start." if finding.start_saving_us is not None else ""
    advice = f" Try: {_code(finding.advice, longest=LONGEST_COMMAND)}" if finding.advice else ""
    text = f"{finding.severity}: {finding.title}"
    notes = "".join(f" {escaped(note)}" for note in finding_notes(finding))
    return f"- **{escaped(text)}** {escaped(finding.evidence + saving)}{advice}{notes}\n"


def _cell(cell: Cell) -> str:
    return _code(cell.short) if isinstance(cell, Name) else escaped(cell)


def escaped(text: str) -> str:
    """The text with nothing in it that markdown or HTML would act on, on one line."""
    return LEADING.sub(r"\1\\\2", ACTIVE.sub(r"\\\1", printable(text)))


def _code(text: str, longest: int = LONGEST_NAME) -> str:
    """A code span that holds any text, in a table too: backticks cannot be escaped within one, so they are replaced."""
    harmless = clipped(printable(text), longest).replace("`", "'").replace("|", "\N{BROKEN BAR}")
    return f"`{harmless}`"


def fenced(text: str) -> str:
    """Commands, a line each, as a block of code that nothing in it ends."""
    harmless = "\n".join(map(printable, text.split("\n"))).replace("```", "'''")
    return f"```sh\n{harmless}\n```\n"
