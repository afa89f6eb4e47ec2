"""The markdown twin of the page, small enough for a pull request's comment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracekit.model.comparison import Comparison, Finding
from tracekit.model.run import Run
from tracekit.numbers import duration
from tracekit.report.beside import setting_tables
from tracekit.report.comment import FINDINGS, FIRST, MORE_FINDINGS, TABLES, WARNINGS, Detail, Part, bounded
from tracekit.report.escaping import escaped
from tracekit.report.lettered import both
from tracekit.report.method import how_measured
from tracekit.report.names import clipped, printable
from tracekit.report.sections.compilation import compilation_tables
from tracekit.report.sections.findings import finding_notes
from tracekit.report.sections.gate import gate_outcome, gate_sentences
from tracekit.report.sections.groups import evidence_table, group_table, origin_table
from tracekit.report.sections.idle import cause_table, gap_table, sync_table
from tracekit.report.sections.kernels import family_table, top_kernels_table
from tracekit.report.sections.limits import limit_sentences
from tracekit.report.sections.memory import memory_table
from tracekit.report.sections.numerics import accuracy_sentence, numerics_table
from tracekit.report.sections.operators import operator_table
from tracekit.report.sections.overview import overview_table
from tracekit.report.sections.queue import queue_table
from tracekit.report.sections.reason import reason_sentence
from tracekit.report.sections.startup import startup_table
from tracekit.report.sections.timing import certainty_table, process_table, timing_table
from tracekit.report.sections.traffic import product_table
from tracekit.report.sections.waterfall import waterfall_table
from tracekit.report.table import Cell, Name, Table
from tracekit.report.words import subjects, verdict_evidence, verdict_sentence, warnings_beside

#: What makes a table's names shortens them. A command that was cut could not be run.
LONGEST_CODE = 4000
#: So many findings, the gravest, find room before tables of figures.
FIRST_FINDINGS = 8


def comparison_markdown(comparison: Comparison, run: Run | None = None, command: str | None = None) -> str:
    """The comparison in GitHub's markdown, at most 65,535 characters; `command` is the one that reproduces it.

    Details are folded. What does not fit is left out, table by table and finding by finding, and the text says so.
    """
    return bounded(_sections(comparison, run, command))


def _sections(comparison: Comparison, run: Run | None, command: str | None) -> Iterator[str | Part | Detail]:
    yield f"# {escaped(f'{_gate_first(comparison)}{verdict_sentence(comparison)}')}\n\n"
    yield "".join(f"- {escaped(each)}\n" for each in gate_sentences(comparison)) + "\n" if comparison.gate else ""
    yield f"{escaped(subjects(comparison))}\n\n"
    evidence = verdict_evidence(comparison)
    yield f"{escaped(evidence)}\n\n" if evidence else ""
    yield "".join(f"**Warning.** {escaped(each)}\n\n" for each in comparison.grave)
    told = (reason_sentence(comparison), *limit_sentences(comparison), accuracy_sentence(comparison))
    yield "".join(f"{escaped(each)}\n\n" for each in told if each)
    yield from markdown_list("Before you rely on this", warnings_beside(comparison))
    yield from markdown_list("About this run", about_run(run))
    yield from markdown_findings(comparison.findings)
    # The gate and the figures, or the figures and what starting costs.
    yield from markdown_tables(_tables(comparison), first=2)
    yield from details(_details(comparison, run))
    yield from markdown_ending(how_measured(comparison, run), command)


def _gate_first(comparison: Comparison) -> str:
    """Who asked for a gate reads no praise before its outcome."""
    return f"{gate_outcome(comparison.gate)}. " if comparison.gate else ""


def about_run(run: Run | None) -> tuple[str, ...]:
    return (f"Size chosen: {run.size_reason}.", *run.notes) if run else ()


def _tables(comparison: Comparison) -> Iterator[Table | None]:
    sides = both(comparison)
    yield overview_table(comparison)
    yield startup_table(comparison)
    yield waterfall_table(comparison)
    yield family_table(sides)
    yield group_table(comparison, limit=12)
    yield cause_table(sides)


def _details(comparison: Comparison, run: Run | None) -> Iterator[Table | None]:
    """The more telling first: what does not fit is left out from the end."""
    sides = both(comparison)
    yield from compilation_tables(sides)
    yield numerics_table(comparison)
    yield memory_table(sides)
    yield evidence_table(comparison)
    yield origin_table(comparison)
    yield product_table(comparison)
    yield queue_table(sides)
    for letter, side in sides:
        yield top_kernels_table(side, letter, limit=10)
        yield operator_table(side, letter, limit=10)
        yield gap_table(side, letter, limit=5)
        yield sync_table(side, letter, limit=5)
    yield certainty_table(comparison)
    yield timing_table(sides)
    yield process_table(comparison)
    yield from setting_tables(sides, run)


def markdown_list(heading: str, texts: Iterable[str]) -> Iterator[str | Part]:
    """The texts as a list under the heading; nothing where there are none."""
    return _listed(heading, [Part(text, f"- {escaped(text)}\n", WARNINGS) for text in texts])


def markdown_findings(findings: Iterable[Finding], heading: str = "Findings") -> Iterator[str | Part]:
    """Nothing where there are none."""
    parts = (
        Part(f"finding: {each.title}", _finding(each), FINDINGS if at < FIRST_FINDINGS else MORE_FINDINGS)
        for at, each in enumerate(findings)
    )
    return _listed(heading, list(parts))


def _listed(heading: str, items: list[Part]) -> Iterator[str | Part]:
    if items:
        yield f"## {heading}\n\n"
        yield from items
        yield "\n"


def markdown_ending(method: Iterable[tuple[str, str]], command: str | None) -> Iterator[str | Detail]:
    """How it was measured, and the command that makes it anew."""
    yield Detail("How this was measured", "".join(f"- **{term}.** {escaped(text)}\n" for term, text in method))
    yield f"## Reproduce\n\n{fenced(command)}\n" if command else ""


def markdown_tables(tables: Iterable[Table | None], first: int = 1) -> Iterator[Part]:
    """Those that there are, each under its caption; the `first` of them find room before anything else."""
    there_are = [table for table in tables if table is not None]
    for at, table in enumerate(there_are):
        text = f"### {escaped(table.caption)}\n\n{_rows(table)}\n"
        yield Part(table.caption, text, FIRST if at < first else TABLES)


def details(tables: Iterable[Table | None]) -> Iterator[str | Detail]:
    """Those that there are, each folded under its caption; nothing where there are none."""
    there_are = [Detail(table.caption, _rows(table)) for table in tables if table is not None]
    yield "## Details\n\n" if there_are else ""
    yield from there_are


def _rows(table: Table) -> str:
    header = " | ".join(escaped(column.label) or " " for column in table.columns)
    rule = "|".join("--:" if column.numeric else "---" for column in table.columns)
    rows = "".join("| " + " | ".join(map(_cell, row)) + " |\n" for row in table.rows)
    note = f"\n{escaped(table.note)}\n" if table.note else ""
    return f"| {header} |\n|{rule}|\n{rows}{note}"


def _finding(finding: Finding) -> str:
    saving = f" Saving: up to {duration(finding.saving_us)}." if finding.saving_us is not None else ""
    saving += f" Saving: {duration(finding.start_saving_us)} a start." if finding.start_saving_us is not None else ""
    advice = f" Try: {_code(finding.advice)}" if finding.advice else ""
    text = f"{finding.severity}: {finding.title}"
    notes = "".join(f" {escaped(note)}" for note in finding_notes(finding))
    return f"- **{escaped(text)}** {escaped(finding.evidence + saving)}{advice}{notes}\n"


def _cell(cell: Cell) -> str:
    return _code(cell.short) if isinstance(cell, Name) else escaped(cell)


def _code(text: str) -> str:
    """A code span that holds any text, in a table too: backticks cannot be escaped within one, so they are replaced."""
    harmless = clipped(printable(text), LONGEST_CODE).replace("`", "'").replace("|", "\N{BROKEN BAR}")
    return f"`{harmless}`"


def fenced(text: str) -> str:
    """Commands, a line each, as a block of code that nothing in it ends."""
    harmless = "\n".join(map(printable, text.split("\n"))).replace("```", "'''")
    return f"```sh\n{harmless}\n```\n"
