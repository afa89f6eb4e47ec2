"""The markdown twin of a sweep's page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tracekit.model.sweep_figures import Sweep
from tracekit.report.comment import TABLES, Detail, Part, bounded
from tracekit.report.escaping import escaped
from tracekit.report.markdown import details, markdown_ending, markdown_list, markdown_tables
from tracekit.report.sweep.failing import last_words_markdown
from tracekit.report.sweep.labels import label
from tracekit.report.sweep.method import METHOD
from tracekit.report.sweep.tables import (
    best_table,
    building_table,
    cell_table,
    command_table,
    conditions_table,
    eager_table,
    failure_table,
    matrices,
    note_rows,
    published_table,
    speedup_table,
)
from tracekit.report.sweep.words import MOST_WORKS, NOTES, headline, noted_sentence, progress_sentence
from tracekit.report.table import Table
from tracekit.report.words.notes import note_sentences

#: The figures that have a table of their own, the more telling first; medians are in that of speed-ups as well.
FIGURES = ("even", "compile", "memory")
MORE_FIGURES = ("warmup_memory", "median", "device")


def sweep_markdown(sweep: Sweep, command: str | None = None) -> str:
    """The sweep in GitHub's markdown: what is best for what, then details, folded. Those that one comment cannot hold
    are left out, and it says so."""
    return bounded(_sections(sweep, command))


def _sections(sweep: Sweep, command: str | None) -> Iterator[str | Part | Detail]:
    yield f"# {escaped(headline(sweep))}\n\n{escaped(' · '.join(label(sweep).common))}\n\n"
    yield f"{escaped(f'{progress_sentence(sweep)} {noted_sentence(sweep)}'.strip())}\n\n"
    yield from markdown_list("Before you rely on this", note_sentences(sweep.notes))
    yield from markdown_tables(_tables(sweep), first=4)
    yield "## Details\n\n"
    yield from details((command_table(sweep, with_eager=len(sweep.works) <= MOST_WORKS), eager_table(sweep)))
    figures = matrices(sweep)
    yield from details(figures.get(name) for name in FIGURES)
    notes = [f"- {escaped(name)}: {escaped(' '.join(sentences))}\n" for name, sentences in note_rows(sweep)]
    if notes:
        yield Detail(NOTES, "".join(notes))
    yield from details(_details(sweep))
    # How it was measured finds room before figures do.
    ending = markdown_ending(METHOD, command)
    yield from (replace(each, rank=TABLES) if isinstance(each, Detail) else each for each in ending)
    yield from last_words_markdown(sweep)


def _tables(sweep: Sweep) -> Iterator[Table | None]:
    yield speedup_table(sweep)
    yield published_table(sweep)
    yield best_table(sweep)
    yield failure_table(sweep)


def _details(sweep: Sweep) -> Iterator[Table | None]:
    """The more telling first: what does not fit is left out from the end."""
    figures = matrices(sweep)
    yield figures.get("mean")
    yield cell_table(sweep)
    yield from (figures.get(name) for name in MORE_FIGURES)
    yield conditions_table(sweep)
    yield building_table(sweep)
