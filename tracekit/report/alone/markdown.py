"""The markdown twin of the page of one run or trace."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.model.alone import Alone
from tracekit.model.run import Run
from tracekit.report.alone.words import headline, key_figures, sentences, warnings
from tracekit.report.beside import setting_tables
from tracekit.report.comment import Detail, Part, bounded
from tracekit.report.escaping import escaped
from tracekit.report.lettered import lettered
from tracekit.report.markdown import (
    about_run,
    folded_list,
    key_table,
    markdown_ending,
    markdown_findings,
    tables_and_details,
)
from tracekit.report.method import how_one_was_measured
from tracekit.report.sections.alone import figures_table
from tracekit.report.sections.compilation import compilation_tables
from tracekit.report.sections.idle import cause_table, gap_table, sync_table
from tracekit.report.sections.kernels import family_table, top_kernels_table
from tracekit.report.sections.memory import memory_table
from tracekit.report.sections.operators import operator_table
from tracekit.report.sections.queue import queue_table
from tracekit.report.sections.timing import timing_table
from tracekit.report.table import Table
from tracekit.report.words.common import scope, subject
from tracekit.report.words.notes import grave_sentences


def alone_markdown(alone: Alone, run: Run | None = None, command: str | None = None) -> str:
    """In GitHub's markdown, at most 65,535 characters; `command` is the one that makes it anew."""
    return bounded(_sections(alone, run, command))


def _sections(alone: Alone, run: Run | None, command: str | None) -> Iterator[str | Part | Detail]:
    yield f"# {escaped(headline(alone.side))}\n\n{escaped(subject(alone.side))}\n\n"
    yield "".join(f"**Warning.** {escaped(each)}\n\n" for each in grave_sentences(alone.notes))
    yield "".join(f"{escaped(each)}\n\n" for each in sentences(alone))
    yield key_table(key_figures(alone.side))
    yield from markdown_findings(alone.findings, scope(alone.side))
    yield "## Details\n\n"
    yield from folded_list("Before you rely on this", warnings(alone, ()))
    yield from folded_list("About this run", about_run(run))
    yield from tables_and_details(_tables(alone), _details(alone, run))
    yield from markdown_ending(how_one_was_measured(alone, run), command)


def _tables(alone: Alone) -> Iterator[Table | None]:
    """What most readers open first."""
    side = alone.side
    sides = lettered(side)
    yield figures_table(side)
    yield family_table(sides)
    yield top_kernels_table(side, "", limit=25)
    yield operator_table(side, "")
    yield cause_table(sides)


def _details(alone: Alone, run: Run | None) -> Iterator[Table | None]:
    """The more telling first: what does not fit is left out from the end."""
    side = alone.side
    sides = lettered(side)
    yield from compilation_tables(sides)
    yield memory_table(sides)
    yield queue_table(sides)
    yield gap_table(side, "")
    yield sync_table(side, "")
    yield timing_table(sides)
    yield from setting_tables(sides, run)
