"""A sweep's tables: a row for each work, a column for each way of compiling; and a row for each cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tracekit.model.sweep_figures import Best, CallFigures, CellFigures, Conditions, PublishedBeside, Sweep, Work
from tracekit.numbers import MISSING, count, duration, percent, size, times
from tracekit.report.document import Column, Name, Table
from tracekit.report.sweep.labels import Labels, label, left_ways, ways
from tracekit.report.sweep.spread import slight_note
from tracekit.report.sweep.words import (
    OUTCOMES,
    TO_RUN,
    best_words,
    both_medians,
    calls_until_even,
    candidate_name,
    compiling,
    goal_words,
    milliseconds,
    next_words,
    published_differences,
    ratio,
    seconds,
    speedup,
    spread,
)
from tracekit.report.words.notes import note_sentences

WORK = Column("Work", numeric=False)

SPEEDUP_NOTE = (
    "Eager time by compiled time, round by round in the cell's own process, with the 95 % interval; above 1 compiled is"
    " faster. Beside it eager's and the compiled form's median call in that very process, ms, whose ratio may be a"
    " little another. Compare ways by speed-ups: milliseconds of different processes differ by more than their"
    " intervals (eager, process by process). A dash: not asked for. docs/sweep.md says what a speed-up holds and"
    " what it leaves out."
)
CALLS_NOTE = (
    "Each cell's figure and interval are of its own process, with what eager took in that same process; the eager"
    " column is the eager cell's process. Figures of different processes differ by more than their intervals say: the"
    " speed-up is of one process. Eager over all processes is a table of its own."
)
EAGER_NOTE = (
    "The same eager work in one process after the other: the geometric mean over processes, every one counting alike,"
    " with Student's t interval over them from three on, of two none, of one its own. Speed-ups are within a process,"
    " which spares them what makes both forms slower alike, and nothing else (docs/timing.md)."
)
MEMORY_NOTE = (
    "What torch had reserved at the height of a steady call, weights and CUDA-graph pools included, in GPU memory; of"
    " the eager form in a process of its own, and not known where none was run."
)
WARMUP_MEMORY_NOTE = (
    "The same at the height of the calls before the form was quiet, compiling and autotuning included: with less than"
    " the larger of this and the steady figure memory may run out, though torch first gives back what it merely keeps."
    " Of the eager form the middle of all processes."
)
COMPILE_NOTE = (
    "Wall time of the calls that compiled, in a fresh process with an empty Inductor cache of its own. Where graphs"
    " came from a cache all the same, it says so: that may be no first compilation."
)
EVEN_NOTE = (
    "Calls after which compiling has taken no longer than staying eager; a dash where no change was established, or"
    " nothing timed. The eager form came first in the process and alone paid what a process does once: the smaller"
    " number takes all of eager's start-up off the compiled one's, the larger nothing. The larger is the one to reckon"
    " with."
)

BEST_NOTE = (
    "Latency is compared by the speed-up over eager in the same process; the compiled form's median call there stands"
    " beside it, and does not decide: milliseconds are of different processes. Eager is beaten in latency by what its"
    " cell's verdict calls faster, and by nothing else; in cold starts by what has paid by then. Among compiled forms"
    " one is best alone where intervals part it from the next and it is ahead by more than the largest of: what a"
    " verdict needed in either process, what eager differs by between processes, and 2 % (of starts, which are measured"
    " once, 10 %; of memory 1 %). Otherwise it is a tie, within so much. A compiled form's cold start is between two"
    " numbers: it came after the eager one, which paid what a process does once. A dash where fewer than two ways were"
    " measured alike."
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
    eager = [of_work(work) for work in sweep.works] if of_work else []
    has_eager = any(each != MISSING for each in eager)
    left, rows = left_ways(sweep, labels), []
    for at, work in enumerate(sweep.works):
        found = {way: TO_RUN for key, way in left if key == work.key}
        found |= {labels.way(cell): of_cell(cell) for cell in work.cells if cell.cell.form == "compiled"}
        first = [eager[at]] if has_eager else []
        rows.append((labels.of(work), *first, *(found.get(each, MISSING) for each in columns)))
    heads = [*(["eager"] if has_eager else []), *columns]
    return Table(caption, (WORK, *map(Column, heads)), tuple(rows), note)


def matrices(sweep: Sweep) -> dict[str, Table]:
    """Every figure that has a table of its own, by what it is called in the page; empty ones left out."""
    mean, median = "Mean of calls, ms (95 % interval)", "Median of calls, ms (95 % interval)"
    warming = "Memory while warming up"
    every = {
        "mean": matrix(sweep, mean, _of_calls(_mean), _of_eager(_mean), CALLS_NOTE),
        "median": matrix(sweep, median, _of_calls(_median), _of_eager(_median), CALLS_NOTE),
        "device": matrix(sweep, "Between two device events, median, ms", _of_calls(_device), _of_eager(_device)),
        "compile": matrix(sweep, "Compiling, s", compiling, note=COMPILE_NOTE),
        "even": matrix(sweep, "Break-even, calls", lambda cell: calls_until_even(cell.break_even), note=EVEN_NOTE),
        "memory": matrix(sweep, "Memory", _memory, _eager_memory, MEMORY_NOTE),
        "warmup_memory": matrix(sweep, warming, _warmup_memory, _eager_warmup_memory, WARMUP_MEMORY_NOTE),
    }
    return {name: table for name, table in every.items() if _has_figures(table)}


def speedup_table(sweep: Sweep) -> Table:
    """The speed-ups: the heat map's figures."""
    caption = "Speed-up over eager (95 % interval), and both medians, ms"
    return matrix(sweep, caption, _speedup, note=speedup_note(sweep))


def speedup_note(sweep: Sweep) -> str:
    """What a speed-up is, and its mark where it has one."""
    return " ".join(filter(None, (SPEEDUP_NOTE, slight_note(sweep))))


def _speedup(cell: CellFigures) -> str:
    """Here no colour tells the verdict: what is not `faster` is called what it is."""
    medians = both_medians(cell)
    verdict = cell.verdict.result if cell.verdict else "faster"
    told = speedup(cell) if verdict == "faster" else f"{speedup(cell)}, {verdict}"
    return told if medians == MISSING else f"{told}; {medians}"


def _has_figures(table: Table) -> bool:
    return any(cell not in (MISSING, TO_RUN) for row in table.rows for cell in row[1:])


def _of_calls(figure: Callable[[CallFigures, bool], str]) -> Callable[[CellFigures], str]:
    """`4.003 (3.998 to 4.009), eager 8.011`: of a compiled cell, both of its process."""

    def of_cell(cell: CellFigures) -> str:
        if cell.compiled is None:
            return MISSING
        told = figure(cell.compiled, True)
        eager = figure(cell.eager, False) if cell.eager else MISSING
        return f"{told}, eager {eager}" if MISSING not in (told, eager) else told

    return of_cell


def _of_eager(figure: Callable[[CallFigures, bool], str]) -> Callable[[Work], str]:
    """Of the eager cell's process, where there is one."""

    def of_work(work: Work) -> str:
        alone = next((cell.eager for cell in work.cells if cell.cell.form == "eager" and cell.eager), None)
        return figure(alone, True) if alone else MISSING

    return of_work


def _mean(figures: CallFigures, with_interval: bool) -> str:
    return milliseconds(figures.mean_us, figures.mean_ci95 if with_interval else None)


def _median(figures: CallFigures, with_interval: bool) -> str:
    return milliseconds(figures.median_us, figures.median_ci95 if with_interval else None)


def _device(figures: CallFigures, with_interval: bool) -> str:
    return milliseconds(figures.device_median_us)


def _memory(cell: CellFigures) -> str:
    return size(cell.compiled.memory_bytes) if cell.compiled else MISSING


def _eager_memory(work: Work) -> str:
    return size(work.eager.memory_bytes) if work.eager else MISSING


def _warmup_memory(cell: CellFigures) -> str:
    return size(cell.compiled.warmup_memory_bytes) if cell.compiled else MISSING


def _eager_warmup_memory(work: Work) -> str:
    return size(work.eager.warmup_memory_bytes) if work.eager else MISSING


def eager_table(sweep: Sweep) -> Table | None:
    """The eager form over all processes, and how far they differ: what single processes' figures may be off by."""
    labels = label(sweep)
    rows = tuple(
        (
            labels.of(work),
            count(work.eager.processes),
            count(work.eager.calls),
            milliseconds(work.eager.mean_us, work.eager.mean_ci95),
            milliseconds(work.eager.median_us, work.eager.median_ci95),
            milliseconds(work.eager.lowest_us),
            milliseconds(work.eager.highest_us),
            spread(work.eager),
        )
        for work in sweep.works
        if work.eager
    )
    figures = ("Processes", "Calls", "Mean, ms", "Median, ms", "Lowest median, ms", "Highest median, ms", "Apart")
    return Table("Eager, process by process", (WORK, *map(Column, figures)), rows, EAGER_NOTE) if rows else None


def best_table(sweep: Sweep) -> Table | None:
    """What is best for what: a row for each work, a column for each goal."""
    labels = label(sweep)
    goals = dict.fromkeys((best.goal, best.calls) for work in sweep.works for best in work.best)
    rows = []
    for work in sweep.works:
        found = {(best.goal, best.calls): _best_and_next(best, labels, work) for best in work.best}
        if found:
            rows.append((labels.of(work), *(found.get(each, MISSING) for each in goals)))
    columns = tuple(Column(name, numeric=False) for name in ("Work", *(goal_words(*each) for each in goals)))
    return Table("What is best for what", columns, tuple(rows), BEST_NOTE) if rows else None


def _best_and_next(best: Best, labels: Labels, work: Work) -> str:
    """`default, 2.00x; then eager, 1.000x`."""
    behind = next_words(best, labels, work)
    told = best_words(best, labels, work)
    return told if behind == MISSING else f"{told}; then {behind}"


def command_table(sweep: Sweep, *, with_eager: bool = True) -> Table | None:
    """The command for each way that is best for something, or among the best; eager's, which is the same less what
    compiles, only if asked for, or where a work has no other."""
    labels, left_out = label(sweep), False
    rows = []
    for work in sweep.works:
        goals: dict[str | None, tuple[str, str, list[str]]] = {}
        for best in work.best:
            for at in best.tied:
                each = best.candidates[at]
                words = goal_words(best.goal, best.calls) + ("" if best.clear else " (tie)")
                goals.setdefault(each.key, (each.command, candidate_name(each, labels, work), []))[2].append(words)
        if not with_eager and len(goals) > 1:
            left_out |= goals.pop(None, None) is not None
        rows += [
            (labels.of(work), name, ", ".join(words), Name(command, command)) for command, name, words in goals.values()
        ]
    columns = tuple(Column(name, numeric=False) for name in ("Work", "Way", "Best for", "Command"))
    note = "The eager form's command is the same without --compiled, --mode, --scope and --no-fullgraph."
    return Table("The commands that profile these", columns, tuple(rows), note if left_out else "") if rows else None


def failure_table(sweep: Sweep) -> Table | None:
    """Cells without times, and why: one row for all that failed alike."""
    labels = label(sweep)
    works: dict[tuple[str, ...], list[str]] = {}
    for work in sweep.works:
        for cell in work.cells:
            if why := cell.failure:
                told = (labels.way(cell), OUTCOMES[why.kind], why.during or MISSING, why.message)
                works.setdefault(told, []).append(labels.of(work))
    rows = tuple(("; ".join(names), *told) for told, names in works.items())
    columns = tuple(Column(name, numeric=False) for name in ("Work", "Way", "What became of it", "While", "Why"))
    return Table("Cells without times", columns, rows) if rows else None


def cell_table(sweep: Sweep) -> Table | None:
    """Each compiled cell's verdict and what it rests on."""
    labels = label(sweep)
    rows = tuple(_cell_row(labels, work, cell) for work in sweep.works for cell in work.cells if cell.verdict)
    figures = (
        "Calls each",
        "Eager there, ms",
        "Compiled, ms",
        "Speed-up",
        "Verdict",
        "Noise",
        "Needed",
        "Graphs",
        "Breaks",
    )
    columns = (WORK, Column("Way", numeric=False), *map(Column, (*figures, "First call", "Cell took, s")))
    note = (
        "Medians. Noise is how far a form differs from itself in that process. A verdict needs a change beyond it, and"
        " beyond what is needed besides: 2 %, or more where one form alone changed its speed."
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
        speedup(cell),
        verdict.result if verdict else MISSING,
        percent(verdict.noise_floor) if verdict else MISSING,
        percent(verdict.least_change) if verdict else MISSING,
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
    told = [at for at in range(len(columns)) if any(row[at] != MISSING for row in rows)]
    if len(told) <= 2:
        return None
    note = "Host load is the mean number of processes that wanted to run in the minute before the cell began."
    caption = "The GPU and its host while cells were timed" if has_gpu(sweep) else "The host while cells were timed"
    kept = tuple(tuple(row[at] for at in told) for row in rows)
    return Table(caption, tuple(columns[at] for at in told), kept, note if figures[-1] in _names(columns, told) else "")


def _names(columns: Sequence[Column], told: Sequence[int]) -> list[str]:
    return [columns[at].label for at in told]


def has_gpu(sweep: Sweep) -> bool:
    """Whether any cell ran on one."""
    return any(cell.settings is not None and cell.settings.device != "cpu" for cell in sweep.cells)


def building_table(sweep: Sweep) -> Table | None:
    """Which size each work has and why, and how long its processes took to have the model."""
    labels = label(sweep)
    rows = []
    for work in sweep.works:
        loads = [cell.load_seconds for cell in work.cells if cell.load_seconds is not None]
        if work.settings is not None and loads:
            # Free memory is another in each process, and the reason with it.
            reason = next(cell.size_reason for cell in work.cells if cell.size_reason is not None)
            ends = dict.fromkeys(map(seconds, (min(loads), max(loads))))
            rows.append((labels.of(work), work.settings.size, reason, " to ".join(ends)))
    columns = (*(Column(name, numeric=False) for name in ("Work", "Size", "Why this size")), Column("Loading, s"))
    note = (
        "Loading is importing the libraries, which may be done once for several cells, and building the model, in each"
        " cell's process. It is in no other figure: it is the same for every form."
    )
    return Table("What was built", columns, tuple(rows), note) if rows else None


def _conditions(seen: Conditions) -> tuple[str, ...]:
    return (
        count(seen.sm_clock_mhz),
        MISSING if seen.power_w is None else count(round(seen.power_w)),
        count(seen.temperature_c),
        count(seen.other_processes),
        MISSING if seen.host_load is None else f"{seen.host_load:.1f}",
        ", ".join(note_sentences(seen.limits)) or MISSING,
    )


def published_table(sweep: Sweep) -> Table | None:
    """Other people's figures beside these."""
    rows = tuple(_published_rows(sweep))
    columns = (
        *(Column(name, numeric=False) for name in ("Model", "Here")),
        *map(
            Column, ("Off there, ms", "On there, ms", "Gain there", "Eager here, ms", "Compiled here, ms", "Gain here")
        ),
    )
    note = (
        f"There: {sweep.published_source}. Mean of a call, mode default. Here both forms are of one process, with"
        " their medians beside the means, and the gain is that process's speed-up with its 95 % interval: the median"
        f" over rounds, which hears less of outliers than a ratio of means."
        f" {' '.join(filter(None, (slight_note(sweep), *published_differences(sweep))))}"
    )
    return Table("Beside the figures of 2023", columns, rows, note) if rows else None


def _published_rows(sweep: Sweep) -> Iterator[tuple[str, ...]]:
    # The only machine there is stands in the note.
    several = len({each.machine for each in sweep.published}) > 1
    for each in sweep.published:
        there = each.published
        size_word = each.size if each.size not in (None, "full") else None
        yield (
            there.workload,
            ", ".join(
                word for word in (each.dtype, several and each.machine, size_word and f"{size_word} size") if word
            )
            or MISSING,
            f"{there.eager_ms:.3f}",
            f"{there.compiled_ms:.3f}",
            times(there.eager_ms / there.compiled_ms),
            _mean_and_median(each.eager_ms, each.eager_median_ms),
            _mean_and_median(each.compiled_ms, each.compiled_median_ms),
            _gain(each),
        )


def _mean_and_median(mean_ms: float | None, median_ms: float | None) -> str:
    if mean_ms is None or median_ms is None:
        return MISSING
    return f"{milliseconds(mean_ms * 1e3)} (median {milliseconds(median_ms * 1e3)})"


def _gain(each: PublishedBeside) -> str:
    told = ratio(each.speedup, each.ci95, slight=each.within_eager_spread)
    return f"{told}, inconclusive" if each.result == "inconclusive" else told


def note_rows(sweep: Sweep) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What must be known of single cells: their names and sentences."""
    labels = label(sweep)
    return tuple(
        (f"{labels.of(work)}, {labels.way(cell)}", note_sentences(cell.notes))
        for work in sweep.works
        for cell in work.cells
        if cell.notes
    )
