"""Times, counts and memory of sides next to each other, and the few of them to remember."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from tracekit import numbers
from tracekit.model.comparison import Comparison, Side, comparable
from tracekit.model.waterfall import Basis
from tracekit.report.document import Table, columns
from tracekit.report.words.common import Sides, both_sides, cached_words, scope_of, side_name

#: From this share of a side's GPU time on, what is not known is not worth a word.
NEARLY_ALL = 0.995
#: What is counted, and where it is found in an analysis.
COUNTS: dict[str, Callable[[Side], int | None]] = {
    "Kernels": lambda side: side.analysis.kernels.count if side.analysis.kernels else None,
    "Kernels under 10 µs": lambda side: side.analysis.kernels.short_count if side.analysis.kernels else None,
    "Triton kernels": lambda side: side.analysis.kernels.triton_count if side.analysis.kernels else None,
    "Launches": lambda side: side.analysis.launches.count if side.analysis.launches else None,
    "Graph launches": lambda side: side.analysis.launches.graph_launches if side.analysis.launches else None,
    "Memory copies": lambda side: side.analysis.copies.memcpy_count if side.analysis.copies else None,
    "Memsets": lambda side: side.analysis.copies.memset_count if side.analysis.copies else None,
}


#: What is told of a CPU's operators, and the field of its analysis that has it.
COUNTS_OF_CPU = {"Operators": "operator_count", "Inductor's C++ kernels": "fused_count"}
TIMES_OF_CPU = {
    "Time in operators": "operator_us",
    "Time in the compiled wrapper": "compiled_wrapper_us",
    "Time in C++ kernels": "fused_us",
}


def figures_table(
    sides: Sides, after_times: Iterable[tuple[str, ...]] = (), last: Iterable[tuple[str, ...]] = (), note: str = ""
) -> Table:
    """Times, counts and memory, per step, as far as any side has them; of two sides their change too. A CPU run has
    rows of its own. `after_times`, `last` and `note` are the report's own."""
    every, two = [side for _, side in sides], len(sides) == 2
    # Where a side is not read over steps, the figures below are of something else than a call.
    is_call = all(side.analysis.window.kind == "steps" for side in every if side.wall_us is not None)
    label = "Wall time, median" if is_call else "Wall time, median call"
    rows = [_row(label, (side.wall_us for side in every))]
    rows += [_row("Wall time with profiler", (side.recorded_wall_us for side in every)), *after_times]
    rows += work_figures(every)
    # The peak of the form's calls, else that of its recording.
    recorded = (side.analysis.memory.peak_allocated_bytes if side.analysis.memory else None for side in every)
    of_calls = (side.form.peak_memory_bytes if side.form else None for side in every)
    peaks = (own if own is not None else other for own, other in zip(of_calls, recorded, strict=True))
    rows += [_row("Peak memory", peaks, numbers.size, numbers.size_change)]
    rows += [("Compile time", *map(compilation_time, every), *([""] if two else [])), *last]
    rows = [row for row in rows if {*row[1 : 1 + len(sides)]} != {numbers.MISSING}]
    if two and not comparable(*every):
        rows = [(*row[:-1], numbers.MISSING) for row in rows]
    heads = columns("Figure", figures=(*(side_name(*each) for each in sides), *(["Change"] if two else [])))
    missing = f"{numbers.MISSING}: not measured." if any(numbers.MISSING in row for row in rows) else ""
    note = " ".join(filter(None, (note, figures_note(every), missing)))
    return Table(f"Figures, {scope_of(sides)}", heads, tuple(rows), note)


def comparison_figures(comparison: Comparison) -> Table:
    """With both sides' memory traffic, and what B saves of it, where that is known."""
    sides, total = both_sides(comparison), comparison.traffic
    if total is None:
        return figures_table(sides)
    change = numbers.size_change(-total.removed_bytes)
    if total.eager_bytes and change != "0":
        share = -total.removed_bytes / total.eager_bytes
        change += f" ({'+' if share > 0 else numbers.MINUS}{abs(share) * 100:.0f} %)"
    row = ("Memory traffic, est.", numbers.size(total.eager_bytes), numbers.size(total.compiled_bytes), change)
    note = "Memory traffic is estimated from operator sizes."
    if min(total.a_time_known, total.b_time_known) < NEARLY_ALL:
        a, b = (numbers.percent(share, 0) for share in (total.a_time_known, total.b_time_known))
        note += f" It covers {a} of A's GPU time and {b} of B's."
    return figures_table(sides, last=[row], note=note)


def basis_of(sides: Sequence[Side]) -> Basis:
    """Unprofiled where all sides can be put on it, so that their columns mean the same."""
    return "trace" if any(side.unprofiled_idle_us is None for side in sides) else "unprofiled"


def figures_note(sides: Sequence[Side]) -> str:
    """What a reader must know of the figures of these sides."""
    notes = []
    if any(side.analysis.gpu for side in sides):
        why = "there are no" if any(side.wall_us is None for side in sides) else "it does not fit the"
        unprofiled = "Idle is unprofiled wall time minus GPU busy time."
        profiled = f"Idle is profiled, so overstated: {why} unprofiled times."
        notes = [unprofiled if basis_of(sides) == "unprofiled" else profiled]
    counts = [_each(figure(side), side) for figure in COUNTS.values() for side in sides]
    if any(each is not None and not numbers.is_whole(each) for each in counts):
        steps = " and ".join(dict.fromkeys(f"{side.steps:,}" for side in sides))
        notes.append(f"Counts are means over {steps} steps, rounded.")
    return " ".join(notes)


def work_figures(sides: Sequence[Side]) -> Iterator[tuple[str, ...]]:
    """What the GPU did; of CPU runs what the CPU did."""
    if all(side.analysis.gpu is None for side in sides):
        for label, field in COUNTS_OF_CPU.items():
            counts = (_each(getattr(side.analysis.cpu, field, None), side) for side in sides)
            yield _row(label, counts, numbers.count, numbers.count_change)
        for label, field in TIMES_OF_CPU.items():
            yield _row(label, (_each(getattr(side.analysis.cpu, field, None), side) for side in sides))
        return
    basis = basis_of(sides)
    idle = [side.idle_us(basis) for side in sides]
    wholes = (side.wall_us if basis == "unprofiled" else side.span_us for side in sides)
    shares = (us / whole if us is not None and whole else None for us, whole in zip(idle, wholes, strict=True))
    yield _row("GPU busy", (side.busy_us for side in sides))
    if any(side.analysis.communication for side in sides):
        yield _row("GPU compute", (side.compute_us for side in sides))
        yield _row("Exposed communication, waiting included", (side.exposed_us for side in sides))
        communication = (side.analysis.communication for side in sides)
        added = (each.total_us if each else None for each in communication)
        yield _row("Communication kernels, added up", map(_each, added, sides))
    yield _row("GPU idle", idle)
    yield _row("GPU idle, share", shares, numbers.percent, numbers.points_change)
    for label, figure in COUNTS.items():
        yield _row(label, (_each(figure(side), side) for side in sides), numbers.count, numbers.count_change)
    copies = (side.analysis.copies.total_us if side.analysis.copies else None for side in sides)
    yield _row("Copies and memsets, GPU time", map(_each, copies, sides))
    busy = [{device.id: device.busy_us / side.steps for device in side.analysis.devices} for side in sides]
    for gpu in sorted({gpu for each in busy if len(each) > 1 for gpu in each}):
        yield _row(f"GPU {gpu} busy", (each.get(gpu) for each in busy))


def _row(
    label: str,
    values: Iterable[float | None],
    shown: Callable[[float | None], str] = numbers.duration,
    changed: Callable[[float | None], str] | None = None,
) -> tuple[str, ...]:
    """One figure of every side, of two their change too, which is one of time where it is not said how it is shown."""
    figures = tuple(values)
    told = (label, *map(shown, figures))
    if len(figures) != 2:
        return told
    a, b = figures
    change = b - a if a is not None and b is not None else None
    return *told, changed(change) if changed else numbers.change_with_share(change, a)


def _each(whole: float | None, side: Side) -> float | None:
    """The part of one step."""
    return None if whole is None else whole / side.steps


def compilation_time(side: Side) -> str:
    """How long the calls took that compiled, and whether a cache on disk made them short."""
    facts = side.form.compilation if side.form else None
    if facts is None:
        return numbers.MISSING
    cached = f" ({cached_words(facts.cache_hits, facts.graphs)})" if facts.cache_hits else ""
    return numbers.duration(facts.seconds * 1e6) + cached
