"""A sweep's other tables: what is best, what failed, and each cell by itself."""

from collections import defaultdict

from tracekit.model.note import note_sentences
from tracekit.numbers import MISSING, count, duration, percent, times
from tracekit.report.document import Name, Table, columns
from tracekit.sweep.figures import Sweep
from tracekit.sweep.report import words as sweeping
from tracekit.sweep.report.labels import label, named_cells

HOST_LOAD = "Host load"
CONCURRENT = "Concurrent cells"
#: Characters of a GPU's UUID, which begins with GPU-: enough to tell those of a cluster apart.
UUID = 12
BEST_NOTE = (
    "Latency is compared by speed-ups, because medians are of different processes. Only a “faster” verdict beats eager"
    " in latency; in cold starts, break-even by then. A compiled mode is best alone if its interval is apart from the"
    " next and they differ by more than either noise floor, eager's process spread, and 2 % (starts 10 %, memory 1 %)."
    " Otherwise they tie. Compiled cold starts are ranges: eager ran first and so includes process start-up. A dash:"
    " fewer than two comparable cells. Of three compiled modes or more the best is measured again, in a process that"
    " did not choose it, and that figure is told: what reads best of many reads too high."
)


def best_table(sweep: Sweep) -> Table | None:
    """What is best for what: a row for each work, a column for each goal."""
    labels = label(sweep)
    goals = dict.fromkeys((best.goal, best.calls) for work in sweep.works for best in work.best)
    rows = []
    for work in sweep.works:
        found = {}
        for best in work.best:
            words = sweeping.best_words(best, labels, work)
            # The first that is clearly behind.
            behind = next((each for at, each in enumerate(best.candidates) if at not in best.tied), None)
            more = f"; then {sweeping.candidate_words(behind, best, labels, work)}" if behind else ""
            found[best.goal, best.calls] = f"{words}{more}"
        if found:
            rows.append((labels.of(work), *(found.get(each, MISSING) for each in goals)))
    heads = columns("Workload", *(sweeping.goal_words(*each) for each in goals))
    return Table("Best for", heads, tuple(rows), BEST_NOTE) if rows else None


def command_table(sweep: Sweep) -> Table | None:
    """The command for each way that is best for something, or among the best; eager's, which is the same less what
    compiles, only of few works, or where a work has no other."""
    labels, left_out = label(sweep), False
    rows = []
    for work in sweep.works:
        goals: dict[str | None, tuple[str, str, list[str]]] = {}
        for best in work.best:
            for at in best.tied:
                each = best.candidates[at]
                words = sweeping.goal_words(best.goal, best.calls) + ("" if best.clear else " (tie)")
                name = sweeping.candidate_name(each, labels, work)
                goals.setdefault(each.key, (each.command, name, []))[2].append(words)
        if len(sweep.works) > sweeping.MOST_WORKS and len(goals) > 1:
            left_out |= goals.pop(None, None) is not None
        rows += [
            (labels.of(work), name, ", ".join(words), Name(command, command, is_command=True))
            for command, name, words in goals.values()
        ]
    heads = columns("Workload", "Mode", "Best for", "Command")
    note = "For eager leave out --compiled, --mode, --scope and --no-fullgraph."
    return Table("Commands to profile these", heads, tuple(rows), note if left_out else "") if rows else None


def failure_table(sweep: Sweep) -> Table | None:
    """Cells without times, and why: one row for all that failed alike."""
    works = defaultdict[tuple[str, ...], list[str]](list)
    for work, way, cell in named_cells(sweep):
        if why := cell.failure:
            works[way, sweeping.OUTCOMES[why.kind], why.during or MISSING, why.message].append(work)
    rows = tuple(("; ".join(names), *told) for told, names in works.items())
    heads = columns("Workload", "Mode", "Result", "During", "Why")
    return Table("Failed cells", heads, rows) if rows else None


def cell_table(sweep: Sweep) -> Table | None:
    """Each compiled cell's verdict and what it rests on."""
    rows = tuple(
        (
            work,
            way,
            count(cell.compiled.calls if cell.compiled else None),
            sweeping.milliseconds(cell.eager.median_us if cell.eager else None),
            sweeping.milliseconds(cell.compiled.median_us if cell.compiled else None),
            sweeping.speedup(cell),
            cell.result or MISSING,
            sweeping.chance(cell),
            percent(verdict.noise_floor),
            percent(verdict.least_change),
            count(cell.graphs),
            count(cell.graph_breaks),
            duration(cell.first_call_us),
            sweeping.seconds(cell.seconds),
        )
        for work, way, cell in named_cells(sweep)
        if (verdict := cell.verdict) is not None
    )
    timed = ("Calls each", "Eager, ms", "Compiled, ms", "Speed-up", "Verdict", "Chance", "Noise floor", "Needed")
    heads = columns("Workload", "Mode", figures=(*timed, "Graphs", "Breaks", "First call", "Cell time, s"))
    note = (
        "Medians. A verdict needs a change beyond the noise floor and beyond 2 % (1 % from three processes on)."
        " Chance: of so large a difference where there is none, Holm over the workload's"
        " configs; above 5 % the verdict is inconclusive."
    )
    return Table(sweeping.ALL_CELLS, heads, rows, note) if rows else None


def process_table(sweep: Sweep) -> Table | None:
    """Each process of cells that were measured in several, and where it ran."""
    if not sweep.has_processes:
        return None
    rows = tuple(
        (
            work,
            way,
            count(each.process),
            count(each.calls),
            sweeping.milliseconds(each.eager_us),
            sweeping.milliseconds(each.compiled_us),
            times(each.speedup) if each.speedup is not None else MISSING,
            each.conditions.host or MISSING,
            (each.conditions.gpu_uuid or MISSING)[:UUID],
            sweeping.OUTCOMES[each.outcome],
        )
        for work, way, cell in named_cells(sweep)
        for each in cell.processes
    )
    figures = ("Process", "Calls each", "Eager, ms", "Compiled, ms", "Speed-up")
    heads = (*columns("Workload", "Mode", figures=figures), *columns("Host", "GPU", "Result"))
    return Table("Processes", heads, rows, "Medians.")


def conditions_table(sweep: Sweep) -> Table | None:
    """The machine while each cell was timed, or each of its processes."""
    rows, timed = [], []
    for work, way, cell in named_cells(sweep):
        for each in cell.processes:
            if each.failure is None:
                named = f"{way}, process {each.process}" if sweep.has_processes else way
                timed.append((work, named, each.conditions))
    # One host's name is no news.
    several_hosts = len({seen.host for _, _, seen in timed} - {None}) > 1
    for work, way, seen in timed:
        figures = (
            count(seen.sm_clock_mhz),
            count(None if seen.power_w is None else round(seen.power_w)),
            count(seen.temperature_c),
            count(seen.other_processes),
            MISSING if seen.host_load is None else f"{seen.host_load:.1f}",
            count(seen.concurrent or None),
        )
        host = seen.host if several_hosts and seen.host else MISSING
        rows.append((work, way, *figures, host, ", ".join(note_sentences(seen.limits)) or MISSING))
    heads = ("Clock, MHz", "Peak power, W", "Peak temperature, °C", "Other GPU processes", HOST_LOAD, CONCURRENT)
    every = (*columns("Workload", "Mode", figures=heads), *columns("Host", "Throttled"))
    told = [at for at in range(len(every)) if any(row[at] != MISSING for row in rows)]
    if len(told) <= 2:
        return None
    note = "Host load: 1-minute load average before the cell began."
    on_gpu = any(cell.settings is not None and cell.settings.device != "cpu" for cell in sweep.cells)
    caption = "GPU and host during timing" if on_gpu else "Host during timing"
    kept = tuple(every[at] for at in told)
    with_load = any(each.label == HOST_LOAD for each in kept)
    return Table(caption, kept, tuple(tuple(row[at] for at in told) for row in rows), note if with_load else "")


def building_table(sweep: Sweep) -> Table | None:
    """Which size each work has and why, and how long its processes took to have the model."""
    labels = label(sweep)
    rows = []
    for work in sweep.works:
        loads = [cell.load_seconds for cell in work.cells if cell.load_seconds is not None]
        if work.settings is not None and loads:
            # Free memory is another in each process, and the reason with it.
            reason = next(cell.size_reason for cell in work.cells if cell.size_reason is not None)
            ends = dict.fromkeys(map(sweeping.seconds, (min(loads), max(loads))))
            rows.append((labels.of(work), work.settings.size, reason, " to ".join(ends)))
    heads = columns("Workload", "Size", "Why this size", figures=("Loading, s",))
    note = "Loading: importing libraries and building the model, per process; no other figure includes it."
    return Table("Model sizes", heads, tuple(rows), note) if rows else None


def published_table(sweep: Sweep) -> Table | None:
    """Other people's figures beside these."""
    # The only machine there is stands in the note.
    several, rows = len({each.machine for each in sweep.published}) > 1, []
    for each in sweep.published:
        there = each.published
        sized = f"{each.size} size" if each.size not in (None, "full") else None
        gain = sweeping.ratio(each.speedup, each.ci95)
        rows.append(
            (
                there.workload,
                ", ".join(filter(None, (each.dtype, each.machine if several else None, sized))) or MISSING,
                f"{there.eager_ms:.3f}",
                f"{there.compiled_ms:.3f}",
                times(there.eager_ms / there.compiled_ms),
                _mean_and_median(each.eager_ms, each.eager_median_ms),
                _mean_and_median(each.compiled_ms, each.compiled_median_ms),
                f"{gain}, inconclusive" if each.result == "inconclusive" else gain,
            )
        )
    years = ("2023 A100 eager, ms", "2023 A100 compiled, ms", "2023 speed-up")
    note = (
        f"2023: {sweep.published_source}, mean call, mode default. Ours: mean (median), and the speed-up of interleaved"
        " rounds with its 95 % CI."
        f" {' '.join(filter(None, (sweeping.chance_note(sweep), *sweep.differs)))}"
    )
    heads = columns("Model", "Setup", figures=(*years, "Eager, ms", "Compiled, ms", "Speed-up"))
    return Table("Compared with 2023", heads, tuple(rows), note) if rows else None


def _mean_and_median(mean_ms: float | None, median_ms: float | None) -> str:
    if mean_ms is None or median_ms is None:
        return MISSING
    return f"{sweeping.milliseconds(mean_ms * 1e3)} (median {sweeping.milliseconds(median_ms * 1e3)})"


def last_words(sweep: Sweep) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The names of cells without times, and the lines they left, those that left the same lines together; cells that
    left none are not among them."""
    cells = defaultdict[tuple[str, tuple[str, ...]], list[str]](list)
    for work, way, cell in named_cells(sweep):
        if cell.failure and cell.failure.last_lines:
            cells[f"{way}: {sweeping.OUTCOMES[cell.outcome]}", cell.failure.last_lines].append(work)
    return tuple((f"{'; '.join(works)}, {how}", lines) for (how, lines), works in cells.items())
