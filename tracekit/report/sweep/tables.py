"""A sweep's tables: a row for each work, a column for each way of compiling; and a row for each cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tracekit.model.sweep_figures import CallFigures, CellFigures, Conditions, Sweep, Work
from tracekit.numbers import MISSING, count, duration, percent, size, times
from tracekit.report.sweep.labels import Labels, label, ways
from tracekit.report.sweep.words import (
    OUTCOMES,
    best_words,
    calls_until_even,
    candidate_name,
    goal_words,
    milliseconds,
    next_words,
    ratio,
    seconds,
    speedup,
    spread,
)
from tracekit.report.table import Column, Name, Table

WORK = Column("Work", numeric=False)

SPEEDUP_NOTE = (
    "Eager time by compiled time, round by round in the cell's own process, with the 95 % interval; above 1 compiled is"
    " faster. docs/sweep.md says what it holds and what it leaves out."
)
EAGER_NOTE = (
    "The eager column is the geometric mean over all processes that timed it, from three on with Student's t interval"
    " over them; the others are of one process each."
)
MEMORY_NOTE = (
    "What torch had reserved at the height of a steady call, weights and CUDA-graph pools included, in GPU memory; of"
    " the eager form in a process of its own where there is one, else of its warm-up."
)
COMPILE_NOTE = "Wall time of the calls that compiled, in a fresh process with an empty Inductor cache."
EVEN_NOTE = (
    "Calls after which compiling has taken no longer than staying eager; a dash where no saving was established."
)


def matrix(
    sweep: Sweep,
    caption: str,
    of_cell: Callable[[CellFigures], str],
    of_work: Callable[[Work], str] | None = None,
    note: str = "",
) -> Table:
    """A row for each work, a column for each way of compiling, before them the eager form where it has a figure."""
    labels = label(sweep)
    columns = ways(sweep, labels)
    rows = []
    for work in sweep.works:
        found = {labels.way(cell): of_cell(cell) for cell in work.cells if cell.cell.form == "compiled"}
        eager = [of_work(work)] if of_work else []
        rows.append((labels.of(work), *eager, *(found.get(each, MISSING) for each in columns)))
    heads = [*(["eager"] if of_work else []), *columns]
    return Table(caption, (WORK, *map(Column, heads)), tuple(rows), note)


def matrices(sweep: Sweep) -> dict[str, Table]:
    """Every figure that has a table of its own, by what it is called in the page; empty ones left out."""
    every = {
        "mean": matrix(sweep, "Mean of calls, ms (95 % interval)", _mean, _eager_mean, EAGER_NOTE),
        "median": matrix(sweep, "Median of calls, ms (95 % interval)", _median, _eager_median, EAGER_NOTE),
        "device": matrix(sweep, "Between two device events, median, ms", _device, _eager_device),
        "compile": matrix(sweep, "Compiling, s", lambda cell: seconds(cell.compile_seconds), note=COMPILE_NOTE),
        "even": matrix(sweep, "Break-even, calls", lambda cell: calls_until_even(cell.break_even), note=EVEN_NOTE),
        "memory": matrix(sweep, "Memory", _memory, _eager_memory, MEMORY_NOTE),
    }
    return {name: table for name, table in every.items() if _has_figures(table)}


def speedup_table(sweep: Sweep) -> Table:
    """The speed-ups: the heat map's figures."""
    return matrix(sweep, "Speed-up over eager (95 % interval)", speedup, note=SPEEDUP_NOTE)


def _has_figures(table: Table) -> bool:
    return any(cell != MISSING for row in table.rows for cell in row[1:])


def _mean(cell: CellFigures) -> str:
    return milliseconds(cell.compiled.mean_us, cell.compiled.mean_ci95) if cell.compiled else MISSING


def _median(cell: CellFigures) -> str:
    return milliseconds(cell.compiled.median_us, cell.compiled.median_ci95) if cell.compiled else MISSING


def _device(cell: CellFigures) -> str:
    return milliseconds(cell.compiled.device_median_us) if cell.compiled else MISSING


def _memory(cell: CellFigures) -> str:
    return size(cell.compiled.memory_bytes) if cell.compiled else MISSING


def _eager_memory(work: Work) -> str:
    return size(work.eager.memory_bytes) if work.eager else MISSING


def _eager_mean(work: Work) -> str:
    return milliseconds(work.eager.mean_us, work.eager.mean_ci95) if work.eager else MISSING


def _eager_median(work: Work) -> str:
    return milliseconds(work.eager.median_us, work.eager.median_ci95) if work.eager else MISSING


def _eager_device(work: Work) -> str:
    return milliseconds(work.eager.device_median_us) if work.eager else MISSING


def eager_table(sweep: Sweep) -> Table | None:
    """How far the eager form differs between processes: what single processes' figures may be off by."""
    labels = label(sweep)
    rows = tuple(
        (
            labels.of(work),
            count(work.eager.processes),
            count(work.eager.calls),
            milliseconds(work.eager.lowest_us),
            milliseconds(work.eager.highest_us),
            spread(work.eager.spread),
        )
        for work in sweep.works
        if work.eager
    )
    columns = (WORK, *map(Column, ("Processes", "Calls", "Lowest median, ms", "Highest median, ms", "Apart")))
    note = "The same eager work in one process after the other. Speed-ups are within a process, and spared most of it."
    return Table("Eager, process by process", columns, rows, note) if rows else None


def best_table(sweep: Sweep) -> Table | None:
    """What is best for what, work by work."""
    labels = label(sweep)
    rows = tuple(
        (
            labels.of(work),
            goal_words(best.goal, best.calls),
            best_words(best, labels, sweep),
            next_words(best, labels, sweep),
        )
        for work in sweep.works
        for best in work.best
    )
    columns = tuple(Column(name, numeric=False) for name in ("Work", "Goal", "Best", "Next behind it"))
    note = (
        "Best alone only where the intervals part it from the next, and by more than eager differs between processes:"
        " 2 % at least, of starts, which are measured once, 10 %. Memory by 1 %. Otherwise it is a tie."
    )
    return Table("What is best for what", columns, rows, note) if rows else None


def command_table(sweep: Sweep) -> Table | None:
    """The command for each way that is best for something, or among the best."""
    labels = label(sweep)
    rows = []
    for work in sweep.works:
        goals: dict[str, tuple[str, list[str]]] = {}
        for best in work.best:
            for at in best.tied:
                each = best.candidates[at]
                words = goal_words(best.goal, best.calls) + ("" if best.clear else " (tie)")
                goals.setdefault(each.command, (candidate_name(each, labels, sweep), []))[1].append(words)
        rows += [
            (labels.of(work), name, ", ".join(words), Name(command, command))
            for command, (name, words) in goals.items()
        ]
    columns = tuple(Column(name, numeric=False) for name in ("Work", "Way", "Best for", "Command"))
    return Table("How to use it", columns, tuple(rows)) if rows else None


def failure_table(sweep: Sweep) -> Table | None:
    """Cells without times, and why."""
    labels = label(sweep)
    rows = tuple(
        (labels.of(work), labels.way(cell), OUTCOMES[why.kind], why.during or MISSING, why.message)
        for work in sweep.works
        for cell in work.cells
        if (why := cell.failure)
    )
    columns = tuple(Column(name, numeric=False) for name in ("Work", "Way", "What became of it", "While", "Why"))
    return Table("Cells without times", columns, rows) if rows else None


def cell_table(sweep: Sweep) -> Table | None:
    """Each compiled cell's verdict and what it rests on."""
    labels = label(sweep)
    rows = tuple(_cell_row(labels, work, cell) for work in sweep.works for cell in work.cells if cell.verdict)
    figures = ("Calls each", "Eager there, ms", "Compiled, ms", "Speed-up", "Verdict", "Noise", "Graphs", "Breaks")
    columns = (WORK, Column("Way", numeric=False), *map(Column, (*figures, "First call", "Cell took, s")))
    note = (
        "Medians. Noise is how far a form differs from itself in that process; a verdict needs a change beyond it and"
        " beyond 2 %."
    )
    return Table("Cell by cell", columns, rows, note) if rows else None


def _cell_row(labels: Labels, work: Work, cell: CellFigures) -> tuple[str, ...]:
    verdict = cell.verdict
    return (
        labels.of(work),
        labels.way(cell),
        count(cell.compiled.calls if cell.compiled else None),
        milliseconds(_median_us(cell.eager)),
        milliseconds(_median_us(cell.compiled)),
        ratio(verdict.speedup, verdict.ci95) if verdict else MISSING,
        verdict.result if verdict else MISSING,
        percent(verdict.noise_floor) if verdict else MISSING,
        count(cell.graphs),
        count(cell.graph_breaks),
        duration(cell.first_call_us),
        seconds(cell.seconds),
    )


def _median_us(figures: CallFigures | None) -> float | None:
    return figures.median_us if figures else None


def conditions_table(sweep: Sweep) -> Table | None:
    """The machine while each cell was timed."""
    labels = label(sweep)
    rows = tuple(
        (labels.of(work), labels.way(cell), *_conditions(cell.conditions))
        for work in sweep.works
        for cell in work.cells
        if cell.failure is None
    )
    figures = ("Clock, MHz", "Power at most, W", "Heat at most, °C", "Other processes on it", "Host load")
    columns = (WORK, Column("Way", numeric=False), *map(Column, figures), Column("Held back", numeric=False))
    note = "Host load is the mean number of processes that wanted to run in the minute before the cell began."
    return Table("The GPU and its host while cells were timed", columns, rows, note) if rows else None


def _conditions(seen: Conditions) -> tuple[str, ...]:
    return (
        count(seen.sm_clock_mhz),
        MISSING if seen.power_w is None else count(round(seen.power_w)),
        count(seen.temperature_c),
        count(seen.other_processes),
        MISSING if seen.host_load is None else f"{seen.host_load:.1f}",
        ", ".join(seen.held_back) or MISSING,
    )


def published_table(sweep: Sweep) -> Table | None:
    """Other people's figures beside these."""
    rows = tuple(_published_rows(sweep))
    columns = (
        Column("Model", numeric=False),
        *map(Column, ("Off, there", "On, there", "Gain there", "Eager, here", "Compiled, here", "Gain here")),
    )
    note = f"There: {sweep.published_source}. Mean ms of a call, mode default. {' '.join(sweep.differs)}"
    return Table("Beside the figures of 2023", columns, rows, note) if rows else None


def _published_rows(sweep: Sweep) -> Iterator[tuple[str, ...]]:
    for each in sweep.published:
        there, eager, compiled = each.published, each.eager_ms, each.compiled_ms
        gain = eager / compiled if eager is not None and compiled else None
        yield (
            there.workload,
            f"{there.eager_ms:.3f}",
            f"{there.compiled_ms:.3f}",
            times(there.eager_ms / there.compiled_ms),
            MISSING if eager is None else f"{eager:.3f}",
            MISSING if compiled is None else f"{compiled:.3f}",
            times(gain),
        )


def note_rows(sweep: Sweep) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What must be known of single cells: their names and sentences."""
    labels = label(sweep)
    return tuple(
        (f"{labels.of(work)}, {labels.way(cell)}", cell.warnings)
        for work in sweep.works
        for cell in work.cells
        if cell.warnings
    )
