"""A report on a sweep: its first screen, and its sections in their order."""

from collections import Counter

from msgspec.structs import replace

from tracekit.model.note import note_sentences
from tracekit.names import clipped
from tracekit.numbers import MISSING, counted
from tracekit.report import document as doc
from tracekit.report.composition import shared
from tracekit.report.composition.overview import MOST_NOTES
from tracekit.sweep.figures import CellFigures, Sweep
from tracekit.sweep.report import tables
from tracekit.sweep.report import words as sweeping
from tracekit.sweep.report.labels import label, named_cells
from tracekit.sweep.report.matrices import eager_table, heat_map, matrices

#: Works and failures that find room, and characters of a failure.
MOST_WORKS, MOST_FAILURES, FAILURE = 14, 3, 400
#: Where warnings of single cells stand.
NOTES = "Notes on single cells"
TONES = {"faster": "green", "slower": "red", "inconclusive": "yellow"}
#: How a sweep's figures came about; docs/sweep.md says more.
SWEEP = {
    "One process per cell": (
        "Each cell is built, warmed up and timed without the profiler in its own process, with an empty Inductor"
        " cache. Cells run in random order. Cache hits are reported in the cell."
    ),
    "Eager baseline": (
        "A compiled cell's process times eager too, interleaved. Speed-up, CI and both medians are of that process "
        "(docs/timing.md). Faster and slower also need a difference beyond chance among the workload's cells."
    ),
    "Eager over processes": (
        "All processes that timed the same eager model, equally weighted, and their spread: the possible error of one "
        "process's times."
    ),
    "Best": (
        "Only a “faster” verdict beats eager. Compiled cells are compared by their speed-ups: one is best if the "
        "intervals do not meet and the difference exceeds both noise floors and eager's process spread."
    ),
    "Cold start": (
        "The warm-up calls as they were, then steady ones; loading the model is excluded. Eager runs first and so"
        " includes process start-up (device context, library handles). Compiled cold starts and break-even are "
        "therefore ranges: with none and with all of eager's start-up."
    ),
}
#: How those of cells came about that were measured in several processes.
REPEATED = {
    "Several processes per cell": (
        "Each process builds, warms up and times by itself. The speed-up is the geometric mean of theirs, with"
        " Student's t CI, as in tracekit profile --repeat-process. Processes on machines that differ in GPU, driver or"
        " software are not pooled. Where all cells have three or more, the best needs 1 %, whatever eager's process"
        " spread."
    ),
}


def sweep_overview(sweep: Sweep) -> doc.Overview:
    """The first screen: how many configurations became faster, a row a work and a column a way to compile."""
    labels, notes, every = label(sweep), tuple(each.short() for each in sweep.notes), named_cells(sweep)
    failed = Counter(
        f"{way} {sweeping.OUTCOMES[cell.outcome]}: {cell.failure.message}" for _, way, cell in every if cell.failure
    )
    ways = list(dict.fromkeys(way for _, way, cell in every if cell.cell.form == "compiled"))
    rows = []
    for work in sweep.works[:MOST_WORKS]:
        by_way = {labels.way(cell.cell): cell for cell in work.cells}
        eager = sweeping.milliseconds(work.eager.median_us if work.eager else None)
        rows.append((f"  {labels.short(work)}", eager, *(_speedup(by_way.get(way)) for way in ways)))
    left = len(sweep.works) - len(rows)
    # They are folded away, and figures may rest on them.
    noted = sum(bool(cell.notes) for cell in sweep.cells)
    of_cells = f" {counted(noted, 'cell')} {'has' if noted == 1 else 'have'} notes ({NOTES})." if noted else ""
    margins = sweeping.MARGIN_NOTE if any(map(sweeping.margin, sweep.cells)) else ""
    said = filter(None, (f"and {left} more" if left else "", sweeping.chance_note(sweep), margins))
    heads = (doc.Column("Speed-up over eager", numeric=False), doc.Column("eager ms"), *map(doc.Column, ways))
    return doc.Overview(
        subject=" · ".join((*labels.begin, *labels.common)),
        headline=sweeping.headline(sweep),
        evidence=f"{sweeping.progress_sentence(sweep)}{of_cells}",
        notes=notes[:MOST_NOTES],
        tables=(doc.Table("", heads, tuple(rows), "\n".join(said)),),
        checks=tuple(
            doc.Check("!!", clipped(f"{counted(cells, 'cell')}: {why}", FAILURE))
            for why, cells in failed.most_common(MOST_FAILURES)
        ),
        hidden=max(len(notes) - MOST_NOTES, 0) + max(len(failed) - MOST_FAILURES, 0),
    )


def _speedup(cell: CellFigures | None) -> doc.Cell:
    if cell is None:
        return MISSING
    if cell.failure is not None:
        return doc.Styled(((sweeping.OUTCOMES[cell.outcome], "red"),))
    tone = TONES.get(cell.result or "", "")
    return doc.Styled(((" ".join(filter(None, (sweeping.speedup_alone(cell), sweeping.margin(cell)))), tone),))


def sweep_report(sweep: Sweep, command: str | None = None) -> doc.Report:
    """A sweep; `command` is what measures it and what goes on with it, a line each."""
    figures, many = matrices(sweep), len(sweep.works) > sweeping.MOST_WORKS
    best, commands = tables.best_table(sweep), tables.command_table(sweep)
    method = SWEEP | (REPEATED if sweep.has_processes else {})
    noted = [(f"{work}, {way}", cell.notes) for work, way, cell in named_cells(sweep) if cell.notes]
    notes = tuple(f"{name}: {' '.join(note_sentences(each))}" for name, each in noted)
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
            doc.Fold(NOTES, (doc.Bullets("", notes),)) if notes else None,
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
