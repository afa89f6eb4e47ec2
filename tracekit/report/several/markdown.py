"""The markdown twin of the page of several ways to compile."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.model.comparisons import Comparisons
from tracekit.report.beside import setting_tables
from tracekit.report.comment import Detail, Part, bounded
from tracekit.report.escaping import escaped
from tracekit.report.markdown import findings_in_full, folded_list, key_table, markdown_ending, tables_and_details
from tracekit.report.method import how_measured
from tracekit.report.sections.compilation import compilation_tables
from tracekit.report.sections.idle import cause_table
from tracekit.report.sections.kernels import family_table, top_kernels_table
from tracekit.report.sections.memory import memory_table
from tracekit.report.sections.operators import operator_table
from tracekit.report.sections.queue import queue_table
from tracekit.report.sections.timing import timing_table
from tracekit.report.several.tables import figures_table, run_table, sides_of, waterfall_tables
from tracekit.report.several.words import grave, headline, key_figures, notes_of_runs, sentences, subjects
from tracekit.report.table import Table
from tracekit.report.words.common import shared_scope
from tracekit.report.words.notes import note_sentences


def comparisons_markdown(told: Comparisons, command: str | None = None) -> str:
    """In GitHub's markdown, at most 65,535 characters; `command` is the one that makes it anew."""
    return bounded(_sections(told, command))


def _sections(told: Comparisons, command: str | None) -> Iterator[str | Part | Detail]:
    yield f"# {escaped(headline(told))}\n\n{escaped(subjects(told))}\n\n"
    yield "".join(f"**Warning.** {escaped(each)}\n\n" for each in grave(told))
    yield "".join(f"{escaped(each)}\n\n" for each in sentences(told))
    yield key_table(key_figures(told))
    for each in told.comparisons:
        if each.findings:
            title = f"Findings: {each.b.label} ({len(each.findings)})"
            yield Detail(title, findings_in_full(each.findings, shared_scope(each)))
    yield "## Details\n\n"
    yield from folded_list("Before you rely on this", (*note_sentences(told.notes), *notes_of_runs(told)))
    yield from tables_and_details(_tables(told), _details(told))
    yield from markdown_ending(how_measured(told.comparisons[0], None), command)


def _tables(told: Comparisons) -> Iterator[Table | None]:
    """What most readers open first."""
    sides = sides_of(told)
    yield figures_table(told)
    yield run_table(told)
    yield from waterfall_tables(told)
    yield family_table(sides)
    yield cause_table(sides)


def _details(told: Comparisons) -> Iterator[Table | None]:
    """The more telling first: what does not fit is left out from the end."""
    sides = sides_of(told)
    yield memory_table(sides)
    yield from compilation_tables(sides)
    yield queue_table(sides)
    for letter, side in sides:
        yield top_kernels_table(side, letter, limit=5)
        yield operator_table(side, letter, limit=5)
    yield timing_table(sides)
    yield from setting_tables(sides)
