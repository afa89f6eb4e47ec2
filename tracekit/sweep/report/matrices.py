"""A sweep's figures: a row for each work, a column for each way of compiling, as tables and as a heat map."""

import math
from collections.abc import Callable

from tracekit.numbers import MISSING, count, percent, size
from tracekit.report.document import HeatCell, HeatMap, Table, columns
from tracekit.sweep.figures import CallFigures, CellFigures, Sweep, Work
from tracekit.sweep.report import words as sweeping
from tracekit.sweep.report.labels import label

SPEEDUP_NOTE = (
    "Eager time over compiled time, interleaved in the cell's own process, with the 95 % CI; above 1 compiled is"
    " faster."
    " Beside it both medians of that process, ms. Compare speed-ups, not times of different processes. A dash: not"
    " asked for (docs/sweep.md)."
)
CALLS_NOTE = (
    "Each cell's figures are of its own process; the eager column is the eager cell's. Figures of different processes"
    " differ by more than their intervals."
)
PROCESSES_NOTE = "Of a cell's several processes: geometric means over these, with Student's t CI."
EAGER_NOTE = (
    "Geometric mean over processes. Interval: Student's t from three processes on, none for two, the process's own for"
    " one. Speed-ups are within a process (docs/timing.md)."
)
MEMORY_NOTE = "Peak reserved by torch in a steady call, with weights and CUDA-graph pools; eager in its own process."
WARMUP_MEMORY_NOTE = (
    "Peak reserved by torch during warm-up, with compilation and autotuning; of eager the median over processes. The"
    " larger of this and the steady peak is the memory to plan for."
)
COMPILE_NOTE = "Wall time of the calls that compiled, with an empty Inductor cache; `cached` counts cache hits."
EVEN_NOTE = (
    "Calls until compile time is paid off; a dash where no change was established. Eager ran first and so includes"
    " process start-up: the lower number subtracts all of it, the upper none. Plan with the upper."
)

Interval = tuple[float, float] | None

#: A speed-up of so much, or a slowdown, has the strongest colour; text stays readable on it.
FULL = 3.0
MOST_PERCENT = 55
#: A change that a verdict calls one is to be seen, however small.
LEAST_PERCENT = 18

KEY = (
    ("gain", "slightly faster", LEAST_PERCENT),
    ("gain", f"{FULL:.0f}x faster or more", MOST_PERCENT),
    ("loss", "slightly slower", LEAST_PERCENT),
    ("loss", f"{FULL:.0f}x slower or more", MOST_PERCENT),
    ("even", "inconclusive", 0),
    ("failed", "no times", 0),
)


def _grid(sweep: Sweep) -> tuple[tuple[str, ...], list[tuple[str, list[CellFigures | str]]]]:
    """Every way of compiling that occurs, and after each work's name its cell of each, or what stands in its place."""
    labels, rows = label(sweep), []
    compiled = tuple(dict.fromkeys(labels.way(each.cell) for each in sweep.cells if each.cell.form == "compiled"))
    left = {(cell.work, labels.way(cell)) for cell in sweep.left}
    for work in sweep.works:
        found: dict[str, CellFigures | str] = {way: sweeping.TO_RUN for way in compiled if (work.key, way) in left}
        found |= {labels.way(cell.cell): cell for cell in work.cells if cell.cell.form == "compiled"}
        rows.append((labels.of(work), [found.get(way, MISSING) for way in compiled]))
    return compiled, rows


def matrix(
    sweep: Sweep,
    caption: str,
    of_cell: Callable[[CellFigures], str],
    of_work: Callable[[Work], str] | None = None,
    note: str = "",
) -> Table:
    """A row for each work, a column for each way of compiling, before them the eager form where it has a figure."""
    compiled, grid = _grid(sweep)
    rows = [[each if isinstance(each, str) else of_cell(each) for each in cells] for _, cells in grid]
    eager = [of_work(work) for work in sweep.works] if of_work else []
    if any(each != MISSING for each in eager):
        compiled, rows = ("eager", *compiled), [[first, *row] for first, row in zip(eager, rows, strict=True)]
    named = tuple((name, *row) for (name, _), row in zip(grid, rows, strict=True))
    return Table(caption, columns("Workload", figures=compiled), named, note)


def matrices(sweep: Sweep) -> dict[str, Table]:
    """Every figure that has a table of its own, by what it is called in the page; empty ones left out."""
    mean = _of_calls(lambda calls: (calls.mean_us, calls.mean_ci95))
    median = _of_calls(lambda calls: (calls.median_us, calls.median_ci95))
    device = _of_calls(lambda calls: (calls.device_median_us, None))
    warming = _of_memory("warmup_memory_bytes")
    calls_note = f"{CALLS_NOTE} {PROCESSES_NOTE}" if sweep.has_processes else CALLS_NOTE
    every = {
        "mean": matrix(sweep, "Mean call, ms (95 % CI)", *mean, calls_note),
        "median": matrix(sweep, "Median call, ms (95 % CI)", *median, calls_note),
        "device": matrix(sweep, "Median by device events, ms", *device),
        "compile": matrix(sweep, "Compile time, s", sweeping.compiling, None, COMPILE_NOTE),
        "even": matrix(sweep, "Break-even, calls", sweeping.even_after, None, EVEN_NOTE),
        "memory": matrix(sweep, "Memory", *_of_memory("memory_bytes"), MEMORY_NOTE),
        "warmup_memory": matrix(sweep, "Memory during warm-up", *warming, WARMUP_MEMORY_NOTE),
    }
    return {
        name: table
        for name, table in every.items()
        if any(cell not in (MISSING, sweeping.TO_RUN) for row in table.rows for cell in row[1:])
    }


def _of_calls(
    figure: Callable[[CallFigures], tuple[float | None, Interval]],
) -> tuple[Callable[[CellFigures], str], Callable[[Work], str]]:
    """`4.003 (3.998 to 4.009), eager 8.011`: of a compiled cell, both of its process, and of the eager cell's process,
    where there is one."""

    def of_cell(cell: CellFigures) -> str:
        if cell.compiled is None:
            return MISSING
        told = sweeping.milliseconds(*figure(cell.compiled))
        eager = sweeping.milliseconds(figure(cell.eager)[0]) if cell.eager else MISSING
        return f"{told}, eager {eager}" if MISSING not in (told, eager) else told

    def of_work(work: Work) -> str:
        eager = next((cell.eager for cell in work.cells if cell.cell.form == "eager" and cell.eager), None)
        return sweeping.milliseconds(*figure(eager)) if eager else MISSING

    return of_cell, of_work


def _of_memory(field: str) -> tuple[Callable[[CellFigures], str], Callable[[Work], str]]:
    """Of a compiled cell, and of the eager form."""
    return (
        lambda cell: size(getattr(cell.compiled, field)) if cell.compiled else MISSING,
        lambda work: size(getattr(work.eager, field)) if work.eager else MISSING,
    )


def eager_table(sweep: Sweep) -> Table | None:
    """The eager form over all processes, and how far they differ: what single processes' figures may be off by."""
    labels = label(sweep)
    rows = tuple(
        (
            labels.of(work),
            count(work.eager.processes),
            count(work.eager.calls),
            sweeping.milliseconds(work.eager.mean_us, work.eager.mean_ci95),
            sweeping.milliseconds(work.eager.median_us, work.eager.median_ci95),
            sweeping.milliseconds(work.eager.lowest_us),
            sweeping.milliseconds(work.eager.highest_us),
            percent(work.eager.spread) if work.eager.processes > 1 else MISSING,
        )
        for work in sweep.works
        if work.eager
    )
    figures = ("Processes", "Calls", "Mean, ms", "Median, ms", "Lowest median, ms", "Highest median, ms", "Spread")
    return Table("Eager over processes", columns("Workload", figures=figures), rows, EAGER_NOTE) if rows else None


def heat_map(sweep: Sweep) -> HeatMap | None:
    """The map; None where nothing was to be compiled."""
    compiled, grid = _grid(sweep)
    if not compiled:
        return None
    rows = [
        (name, tuple(HeatCell(each, "missing") if isinstance(each, str) else heat(each) for each in cells))
        for name, cells in grid
    ]
    occur = {cell.tone for _, cells in rows for cell in cells}
    notes = (SPEEDUP_NOTE, PROCESSES_NOTE if sweep.has_processes else "", sweeping.chance_note(sweep))
    return HeatMap(
        caption="Speed-up over eager (95 % CI)",
        columns=compiled,
        rows=tuple(rows),
        keys=tuple(each for each in KEY if each[0] in occur),
        note=" ".join(filter(None, notes)),
    )


def heat(cell: CellFigures) -> HeatCell:
    """A cell's colour: of its verdict, the stronger the larger the change; none where none was established."""
    verdict = cell.verdict
    if cell.failure is not None:
        return HeatCell(sweeping.OUTCOMES[cell.outcome], "failed")
    if verdict is None or verdict.speedup is None:
        return HeatCell(MISSING, "missing")
    interval = f"{verdict.ci95[0]:.3f} to {verdict.ci95[1]:.3f}" if verdict.ci95 else "no interval"
    tone = {"faster": "gain", "slower": "loss"}.get(cell.result or "", "even")
    share = min(abs(math.log(verdict.speedup)) / math.log(FULL), 1.0)
    percent_of_colour = 0 if tone == "even" else round(LEAST_PERCENT + share * (MOST_PERCENT - LEAST_PERCENT))
    below = (interval, f"{sweeping.both_medians(cell)} ms")
    return HeatCell(sweeping.speedup_alone(cell), tone, percent_of_colour, below)
