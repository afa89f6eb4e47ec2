"""The markdown twin of the page, small enough for a pull request's comment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tracekit.model.comparison import Comparison, Finding
from tracekit.model.run import Run
from tracekit.names import clipped, printable
from tracekit.report.beside import setting_tables
from tracekit.report.comment import DETAILS, FINDINGS, FIRST, MORE_FINDINGS, TABLES, WARNINGS, Detail, Part, bounded
from tracekit.report.escaping import escaped
from tracekit.report.lettered import both
from tracekit.report.method import how_measured
from tracekit.report.sections.compilation import compilation_tables
from tracekit.report.sections.findings import finding_notes, saving_words
from tracekit.report.sections.gate import gate_outcome, gate_sentences
from tracekit.report.sections.groups import evidence_table, group_table, origin_table
from tracekit.report.sections.idle import cause_table, gap_table, sync_table
from tracekit.report.sections.kernels import family_table, top_kernels_table
from tracekit.report.sections.key_figures import key_figures
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
from tracekit.report.words.common import shared_scope, subjects, verdict_evidence, verdict_sentence
from tracekit.report.words.findings import finding_advice, finding_evidence, finding_title
from tracekit.report.words.notes import grave_sentences, other_sentences

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
    yield "".join(f"**Warning.** {escaped(each)}\n\n" for each in grave_sentences(comparison.notes))
    told = (reason_sentence(comparison), *limit_sentences(comparison), accuracy_sentence(comparison))
    yield "".join(f"{escaped(each)}\n\n" for each in told if each)
    yield key_table(key_figures(comparison))
    yield from markdown_findings(comparison.findings, shared_scope(comparison))
    yield "## Details\n\n"
    yield from folded_list("Before you rely on this", other_sentences(comparison.notes))
    yield from folded_list("About this run", about_run(run))
    yield from tables_and_details(_tables(comparison), _details(comparison, run))
    yield from markdown_ending(how_measured(comparison, run), command)


def _gate_first(comparison: Comparison) -> str:
    """Who asked for a gate reads no praise before its outcome."""
    return f"{gate_outcome(comparison.gate)}. " if comparison.gate else ""


def about_run(run: Run | None) -> tuple[str, ...]:
    return (f"Size chosen: {run.size_reason}.", *run.notes) if run else ()


def _tables(comparison: Comparison) -> Iterator[Table | None]:
    """What most readers open first."""
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


def folded_list(heading: str, texts: Iterable[str]) -> Iterator[Detail]:
    """The texts as a list, folded under the heading and their number; nothing where there are none."""
    items = [f"- {escaped(text)}\n" for text in texts]
    if items:
        yield Detail(f"{heading} ({len(items)})", "".join(items), WARNINGS)


def key_table(figures: Iterable[tuple[str, str, str]]) -> str:
    """The few figures to remember: what each is, its change or size, and a word beside; empty where there are none."""
    rows = "".join(f"| {' | '.join(map(escaped, each))} |\n" for each in figures)
    return f"| Figure |   |   |\n|---|--:|---|\n{rows}\n" if rows else ""


def markdown_list(heading: str, texts: Iterable[str]) -> Iterator[str | Part]:
    """The texts as a list under the heading; nothing where there are none."""
    return _listed(heading, [Part(text, f"- {escaped(text)}\n", WARNINGS) for text in texts])


def _listed(heading: str, items: list[Part]) -> Iterator[str | Part]:
    if items:
        yield f"## {heading}\n\n"
        yield from items
        yield "\n"


def markdown_findings(findings: Sequence[Finding], scope: str) -> Iterator[str | Part | Detail]:
    """What asks for something in full, what is good to know folded; nothing where there is neither. `scope` is what
    savings are of."""
    asking = [finding for finding in findings if finding.severity != "info"]
    others = [finding for finding in findings if finding.severity == "info"]
    if findings:
        yield "## Findings\n\n"
    for at, finding in enumerate(asking):
        rank = FINDINGS if at < FIRST_FINDINGS else MORE_FINDINGS
        yield Part(f"finding: {finding_title(finding)}", findings_in_full((finding,), scope), rank)
    yield from (Detail(_title(finding) + _saving(finding, scope), _told(finding)) for finding in others)


def findings_in_full(findings: Iterable[Finding], scope: str) -> str:
    """Each under its title."""
    return "".join(
        f"**{escaped(_title(finding))}**{_saving(finding, scope)}\n\n{_told(finding)}" for finding in findings
    )


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


def details(tables: Iterable[Table | None], rank: int = DETAILS) -> Iterator[Detail]:
    """Those that there are, each folded under its caption."""
    return (Detail(table.caption, _rows(table), rank) for table in tables if table is not None)


def tables_and_details(tables: Iterable[Table | None], further: Iterable[Table | None]) -> Iterator[Detail]:
    """All folded; `tables` find room before findings of little weight and before `further` ones."""
    yield from details(tables, TABLES)
    yield from details(further)


def _rows(table: Table) -> str:
    header = " | ".join(escaped(column.label) or " " for column in table.columns)
    rule = "|".join("--:" if column.numeric else "---" for column in table.columns)
    rows = "".join("| " + " | ".join(map(_cell, row)) + " |\n" for row in table.rows)
    note = f"\n{escaped(table.note)}\n" if table.note else ""
    return f"| {header} |\n|{rule}|\n{rows}{note}"


def _title(finding: Finding) -> str:
    return f"{finding.severity}: {finding_title(finding)}"


def _saving(finding: Finding, scope: str) -> str:
    words = saving_words(finding, scope)
    return f" ({words})" if words else ""


def _told(finding: Finding) -> str:
    """The evidence, what to try, and what came of it, each a paragraph of its own."""
    advice = finding_advice(finding)
    is_command = finding.action is not None and finding.action.command is not None
    tried = [] if not advice else [fenced(advice).rstrip()] if is_command else [escaped(f"Try: {advice}.")]
    paragraphs = [escaped(finding_evidence(finding)), *tried, *map(escaped, finding_notes(finding))]
    return "".join(f"{each}\n\n" for each in paragraphs)


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
