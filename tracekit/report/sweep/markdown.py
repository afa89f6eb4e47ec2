"""The markdown twin of a sweep's page."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.model.sweep_figures import Sweep
from tracekit.report.markdown import bounded, escaped, markdown_ending, markdown_list, markdown_table
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
from tracekit.report.sweep.words import headline, progress_sentence
from tracekit.report.table import Table


def sweep_markdown(sweep: Sweep, command: str | None = None) -> str:
    """The sweep in GitHub's markdown; what one comment cannot hold is left out from the end, and it says so."""
    return bounded(_sections(sweep, command))


def _sections(sweep: Sweep, command: str | None) -> Iterator[str]:
    yield f"# {escaped(headline(sweep))}\n\n{escaped(' · '.join(label(sweep).common))}\n\n"
    yield f"{escaped(progress_sentence(sweep))}\n\n"
    yield markdown_list("Before you rely on this", sweep.warnings)
    for table in _tables(sweep):
        yield markdown_table(table) if table is not None else ""
    yield from markdown_ending(METHOD, command)
    notes = (f"{name}: {' '.join(sentences)}" for name, sentences in note_rows(sweep))
    yield markdown_list("Notes on single cells", notes)


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
    yield building_table(sweep)
