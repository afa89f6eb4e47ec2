"""Times, counts and memory of sides next to each other, and the few of them to remember."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from tracekit import numbers
from tracekit.model.comparison import Comparison, Side, comparable
from tracekit.model.waterfall import Basis
from tracekit.report.document import Table, columns
from tracekit.report.sections.traffic import traffic_note, traffic_row
from tracekit.report.words.common import cached_words, shared_scope

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


class Figures(Struct, frozen=True):
    """One figure of every side. `change` writes the change of two, given it and the first."""

    label: str
    values: tuple[float | None, ...]
    shown: Callable[[float | None], str]
    change: Callable[[float | None, float | None], str]


def overview_table(comparison: Comparison) -> Table:
    """Times, counts and memory of both sides and the change, per step. A CPU run has rows of its own."""
    a, b, sides = comparison.a, comparison.b, (comparison.a, comparison.b)
    moved = traffic_row(comparison) if any(side.analysis.gpu for side in sides) else None
    rows = (
        *map(_with_change, (*time_figures(sides), *work_figures(sides))),
        *([moved] if moved else []),
        *map(_with_change, memory_figures(sides)),
        ("Compile time", compilation_time(a), compilation_time(b), ""),
    )
    if not comparable(a, b):
        rows = tuple((label, one, other, numbers.MISSING) for label, one, other, _ in rows)
    heads = columns("Figure", figures=(f"A: {a.label}", f"B: {b.label}", "Change"))
    note = " ".join(filter(None, (figures_note(sides), traffic_note(comparison))))
    return Table(f"Figures, {shared_scope(comparison)}", heads, rows, note)


def _with_change(figures: Figures) -> tuple[str, str, str, str]:
    a, b = figures.values
    change = b - a if a is not None and b is not None else None
    return figures.label, figures.shown(a), figures.shown(b), figures.change(change, a)


def basis_of(sides: Sequence[Side]) -> Basis:
    """Unprofiled where all sides can be put on it, so that their columns mean the same."""
    return "trace" if any(side.unprofiled_idle_us is None for side in sides) else "unprofiled"


def figures_note(sides: Sequence[Side]) -> str:
    """What a reader must know of the figures of these sides."""
    missing = f"{numbers.MISSING}: not measured."
    counts = [_each(figure(side), side) for figure in COUNTS.values() for side in sides]
    if any(each is not None and not numbers.is_whole(each) for each in counts):
        steps = " and ".join(dict.fromkeys(f"{side.steps:,}" for side in sides))
        missing += f" Counts are means over {steps} steps, rounded."
    if all(side.analysis.gpu is None for side in sides):
        return missing
    if basis_of(sides) == "unprofiled":
        return f"Idle is unprofiled wall time minus GPU busy time. {missing}"
    why = "not both sides have" if any(side.wall_us is None for side in sides) else "it does not fit the"
    return f"Idle is profiled, so overstated: {why} unprofiled times. {missing}"


def time_figures(sides: Sequence[Side]) -> Iterator[Figures]:
    """How long a call took, without the profiler and with it."""
    label = "Wall time, median"
    if any(side.analysis.window.kind != "steps" for side in sides if side.wall_us is not None):
        # The figures below are then of something else than a call.
        label += " call"
    yield _durations(label, (side.wall_us for side in sides))
    if any(side.recorded_wall_us is not None for side in sides):
        yield _durations("Wall time with profiler", (side.recorded_wall_us for side in sides))


def work_figures(sides: Sequence[Side]) -> Iterator[Figures]:
    """What the GPU did; of CPU runs what the CPU did."""
    if all(side.analysis.gpu is None for side in sides):
        for figures, label, field in OF_CPU:
            yield figures(label, (_each(getattr(side.analysis.cpu, field, None), side) for side in sides))
        return
    basis = basis_of(sides)
    idle = [side.idle_us(basis) for side in sides]
    wholes = (side.wall_us if basis == "unprofiled" else side.span_us for side in sides)
    shares = tuple(us / whole if us is not None and whole else None for us, whole in zip(idle, wholes, strict=True))
    yield _durations("GPU busy", (side.busy_us for side in sides))
    if any(side.analysis.communication for side in sides):
        yield _durations("GPU compute", (side.compute_us for side in sides))
        yield _durations("Exposed communication, waiting included", (side.exposed_us for side in sides))
    yield _durations("GPU idle", idle)
    yield Figures("GPU idle, share", shares, numbers.percent, lambda change, _: numbers.points_change(change))
    for label, figure in COUNTS.items():
        yield _counts(label, (_each(figure(side), side) for side in sides))
    copies = (side.analysis.copies.total_us if side.analysis.copies else None for side in sides)
    yield _durations("Copies and memsets, GPU time", map(_each, copies, sides))


def memory_figures(sides: Sequence[Side]) -> Iterator[Figures]:
    """The peak of the form's calls, else that of its recording."""
    recorded = (side.analysis.memory.peak_allocated_bytes if side.analysis.memory else None for side in sides)
    of_calls = (side.form.peak_memory_bytes if side.form else None for side in sides)
    peaks = tuple(own if own is not None else other for own, other in zip(of_calls, recorded, strict=True))
    yield Figures("Peak memory", peaks, numbers.size, lambda change, _: numbers.size_change(change))


def _durations(label: str, values: Iterable[float | None]) -> Figures:
    return Figures(label, tuple(values), numbers.duration, numbers.change_with_share)


def _counts(label: str, values: Iterable[float | None]) -> Figures:
    return Figures(label, tuple(values), numbers.count, lambda change, _: numbers.count_change(change))


def _each(whole: float | None, side: Side) -> float | None:
    """The part of one step."""
    return None if whole is None else whole / side.steps


#: What is told of a CPU's operators, and the field of its analysis that has it.
OF_CPU = (
    (_counts, "Operators", "operator_count"),
    (_counts, "Inductor's C++ kernels", "fused_count"),
    (_durations, "Time in operators", "operator_us"),
    (_durations, "Time in the compiled wrapper", "compiled_wrapper_us"),
    (_durations, "Time in C++ kernels", "fused_us"),
)


def compilation_time(side: Side) -> str:
    """How long the calls took that compiled, and whether a cache on disk made them short."""
    facts = side.form.compilation if side.form else None
    if facts is None:
        return numbers.MISSING
    cached = f" ({cached_words(facts.cache_hits, facts.graphs)})" if facts.cache_hits else ""
    return numbers.duration(facts.seconds * 1e6) + cached
