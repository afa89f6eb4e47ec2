"""The sections of a report on a sweep, in their order."""

from msgspec.structs import replace

from tracekit.model.note import note_sentences
from tracekit.report import document as doc
from tracekit.report.composition import shared
from tracekit.sweep.figures import Sweep
from tracekit.sweep.report import tables
from tracekit.sweep.report import words as sweeping
from tracekit.sweep.report.matrices import eager_table, heat_map, matrices
from tracekit.sweep.report.method import REPEATED, SWEEP
from tracekit.sweep.report.overview import sweep_overview


def sweep_report(sweep: Sweep, command: str | None = None) -> doc.Report:
    """A sweep; `command` is what measures it and what goes on with it, a line each."""
    figures, many = matrices(sweep), len(sweep.works) > sweeping.MOST_WORKS
    best, commands = tables.best_table(sweep), tables.command_table(sweep)
    notes, method = tables.cell_notes(sweep), SWEEP | (REPEATED if sweep.has_processes else {})
    sections = (
        doc.section("speed-up", "Speed-up", doc.Part(heat_map(sweep), doc.FIRST)),
        doc.section(
            "best",
            "Best for what",
            _if_folded(best, doc.FIRST, many, "What is best for what, work by work"),
            _if_folded(commands, doc.DETAILS, many),
        ),
        shared.folded(
            "beside",
            "Compared with 2023",
            "A100, torch 2.0",
            doc.Part(tables.published_table(sweep), doc.FIRST),
        ),
        shared.folded(
            "times",
            "Times",
            "milliseconds of each cell",
            doc.Part(figures.get("mean"), doc.LAST),
            _if_folded(figures.get("median"), doc.LAST, many),
            _if_folded(figures.get("device"), doc.LAST, many),
            eager_table(sweep),
        ),
        shared.folded(
            "cost",
            "Compiling and memory" if "compile" in figures else "Memory",
            "compile time, break-even, peaks",
            figures.get("compile"),
            figures.get("even"),
            _if_folded(figures.get("memory"), doc.DETAILS, many),
            _if_folded(figures.get("warmup_memory"), doc.LAST, many),
        ),
        shared.folded(
            "failures",
            "Cells without times",
            "failures and reasons",
            doc.Part(tables.failure_table(sweep), doc.FIRST),
            *(doc.Part(doc.Fold(name, (doc.Output(lines),)), doc.LAST) for name, lines in tables.last_words(sweep)),
        ),
        shared.folded(
            "cells",
            "Cell by cell",
            "verdicts, machines, notes",
            _if_folded(tables.cell_table(sweep), doc.LAST, True, "Verdicts"),
            _if_folded(tables.process_table(sweep), doc.LAST, True, "Processes and where they ran"),
            _if_folded(tables.conditions_table(sweep), doc.LAST, True, "GPU and host during timing"),
            _if_folded(tables.building_table(sweep), doc.LAST, True, "What was built"),
            doc.Fold(sweeping.NOTES, (doc.Bullets("", notes),)) if notes else None,
        ),
        # How it was measured finds room before figures do.
        shared.folded(
            "method",
            "How it was measured",
            "cells, processes, intervals",
            doc.Part(doc.Definitions(shared.METHOD, tuple(method.items())), doc.TABLES),
        ),
        shared.notes_section(note_sentences(sweep.notes)),
        shared.command_section(command),
    )
    # The map stands in for the terminal's table.
    overview = replace(sweep_overview(sweep), tables=())
    return doc.Report(sweeping.headline(sweep), overview, tuple(filter(None, sections)), dense=True)


def _if_folded(table: doc.Table | None, rank: int, folded: bool, title: str = "") -> doc.Part:
    return doc.Part(doc.Fold(title or table.caption, (table,)) if table and folded else table, rank)
