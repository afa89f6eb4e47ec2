"""The markdown twin of a sweep's page."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.model.sweep_figures import Sweep
from tracekit.report.markdown import LONGEST, escaped, fenced, markdown_table
from tracekit.report.sweep.labels import label
from tracekit.report.sweep.method import METHOD
from tracekit.report.sweep.tables import (
    best_table,
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
from tracekit.report.sweep.words import headline, progress_sentence
from tracekit.report.table import Table


def sweep_markdown(sweep: Sweep, command: str | None = None) -> str:
    """The sweep in GitHub's markdown; what one comment cannot hold is left out from the end, and it says so."""
    text = ""
    for section in _sections(sweep, command):
        if len(text) + len(section) > LONGEST - 200:
            return text + "\n\nThe rest is left out for its length; the HTML page has all of it.\n"
        text += section
    return text


def _sections(sweep: Sweep, command: str | None) -> Iterator[str]:
    yield f"# {escaped(headline(sweep))}\n\n{escaped(' · '.join(label(sweep).common))}\n\n"
    yield f"{escaped(progress_sentence(sweep))}\n\n"
    if sweep.warnings:
        yield "## Before you rely on this\n\n" + "".join(f"- {escaped(each)}\n" for each in sweep.warnings) + "\n"
    for table in _tables(sweep):
        yield markdown_table(table) if table is not None else ""
    yield "## How this was measured\n\n" + "".join(f"- **{term}.** {escaped(text)}\n" for term, text in METHOD) + "\n"
    yield f"## Reproduce\n\n{fenced(command)}\n" if command else ""
    notes = "".join(f"- {escaped(name)}: {escaped(' '.join(sentences))}\n" for name, sentences in note_rows(sweep))
    yield f"## Notes on single cells\n\n{notes}" if notes else ""


def _tables(sweep: Sweep) -> Iterator[Table | None]:
    yield speedup_table(sweep)
    yield published_table(sweep)
    yield from matrices(sweep).values()
    yield best_table(sweep)
    yield failure_table(sweep)
    yield command_table(sweep)
    yield eager_table(sweep)
    yield cell_table(sweep)
    yield conditions_table(sweep)
