"""The two sides next to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tracekit.model.comparison import Basis, Comparison, Side, comparable
from tracekit.numbers import (
    MISSING,
    change_with_share,
    count,
    count_change,
    duration,
    is_whole,
    percent,
    points_change,
    size,
    size_change,
)
from tracekit.report.document import Column, Table
from tracekit.report.sections.traffic import traffic_note, traffic_row
from tracekit.report.words.common import shared_scope

Row = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Figures:
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
        ("Compilation before timing", compilation_time(a), compilation_time(b), ""),
    )
    if not comparable(a, b):
        rows = tuple((label, one, other, MISSING) for label, one, other, _ in rows)
    return Table(
        caption=f"Figures, {shared_scope(comparison)}",
        columns=(Column("Figure", numeric=False), Column(f"A: {a.label}"), Column(f"B: {b.label}"), Column("Change")),
        rows=rows,
        note=" ".join(filter(None, (figures_note(sides), traffic_note(comparison)))),
    )


def _with_change(figures: Figures) -> Row:
    a, b = figures.values
    change = b - a if a is not None and b is not None else None
    return figures.label, figures.shown(a), figures.shown(b), figures.change(change, a)


def shared_basis(comparison: Comparison) -> Basis:
    """Unprofiled where both sides can be put on it, so that the two columns mean the same."""
    return basis_of((comparison.a, comparison.b))


def basis_of(sides: Sequence[Side]) -> Basis:
    """The same of any number of sides."""
    return "trace" if any(side.unprofiled_idle_us is None for side in sides) else "unprofiled"


def figures_note(sides: Sequence[Side]) -> str:
    """What a reader must know of the figures of these sides."""
    missing = f"{MISSING} means: not measured.{_means(sides)}"
    if all(side.analysis.gpu is None for side in sides):
        return missing
    if basis_of(sides) == "unprofiled":
        return f"Idle is the unprofiled wall time less the GPU's busy time. {missing}"
    if any(side.wall_us is None for side in sides):
        return f"Idle is as recorded, which profiling lengthens, for want of unprofiled times of both sides. {missing}"
    return f"Idle is as recorded, which profiling lengthens: it cannot be told for the unprofiled calls. {missing}"


def _means(sides: Sequence[Side]) -> str:
    """Why a number of kernels can have a decimal; nothing where none has."""
    counts = [_per_step(side, figure) for figure in COUNTS.values() for side in sides]
    if all(each is None or is_whole(each) for each in counts):
        return ""
    steps = " and ".join(dict.fromkeys(f"{side.steps:,}" for side in sides))
    return (
        f" Counts with a decimal are means of the {steps} steps recorded: a kernel of about 10 µs is shorter in one "
        "step and longer in another."
    )


def time_figures(sides: Sequence[Side]) -> Iterator[Figures]:
    """How long a call took, without the profiler and with it."""
    label = "Wall time, unprofiled median"
    if any(side.analysis.window.kind != "steps" for side in sides if side.wall_us is not None):
        # The figures below are then of something else than a call.
        label += " of one call"
    yield _durations(label, (side.wall_us for side in sides))
    if any(side.recorded_wall_us is not None for side in sides):
        yield _durations("Wall time while recorded", (side.recorded_wall_us for side in sides))


def work_figures(sides: Sequence[Side]) -> Iterator[Figures]:
    """What the GPU did; of CPU runs what the CPU did."""
    on_cpu = all(side.analysis.gpu is None for side in sides)
    yield from _cpu_figures(sides) if on_cpu else _gpu_figures(sides)


def _gpu_figures(sides: Sequence[Side]) -> Iterator[Figures]:
    basis = basis_of(sides)
    yield _durations("GPU busy", (side.busy_us for side in sides))
    yield _durations("GPU idle", (side.idle_us(basis) for side in sides))
    shares = tuple(_idle_share(side, basis) for side in sides)
    yield Figures("GPU idle, share", shares, percent, lambda change, _: points_change(change))
    for label, figure in COUNTS.items():
        yield _counts(label, (_per_step(side, figure) for side in sides))
    yield _durations("Copies and sets, GPU time", map(_copy_us, sides))


def _cpu_figures(sides: Sequence[Side]) -> Iterator[Figures]:
    for label, field in (("Operators", "operator_count"), ("Inductor's C++ kernels", "fused_count")):
        yield _counts(label, [_cpu(side, field) for side in sides])
    for label, field in (("Time in operators", "operator_us"), ("Time in C++ kernels", "fused_us")):
        yield _durations(label, [_cpu(side, field) for side in sides])


def memory_figures(sides: Sequence[Side]) -> Iterator[Figures]:
    peaks = tuple(float(peak) if (peak := _peak(side)) is not None else None for side in sides)
    yield Figures("Peak memory", peaks, size, lambda change, _: size_change(change))


#: What is counted, and where it is found in an analysis.
COUNTS: dict[str, Callable[[Side], int | None]] = {
    "Kernels": lambda side: side.analysis.kernels.count if side.analysis.kernels else None,
    "Kernels under 10 µs": lambda side: side.analysis.kernels.short_count if side.analysis.kernels else None,
    "Triton kernels": lambda side: side.analysis.kernels.triton_count if side.analysis.kernels else None,
    "Launches": lambda side: side.analysis.launches.count if side.analysis.launches else None,
    "Graph launches among them": lambda side: side.analysis.launches.graph_launches if side.analysis.launches else None,
    "Memory copies": lambda side: side.analysis.copies.memcpy_count if side.analysis.copies else None,
    "Memory sets": lambda side: side.analysis.copies.memset_count if side.analysis.copies else None,
}


def _durations(label: str, values: Iterable[float | None]) -> Figures:
    return Figures(label, tuple(values), duration, change_with_share)


def _counts(label: str, values: Iterable[float | None]) -> Figures:
    return Figures(label, tuple(values), count, lambda change, _: count_change(change))


def _per_step(side: Side, figure: Callable[[Side], int | None]) -> float | None:
    whole = figure(side)
    return None if whole is None else whole / side.steps


def _copy_us(side: Side) -> float | None:
    return side.analysis.copies.total_us / side.steps if side.analysis.copies else None


def _cpu(side: Side, field: str) -> float | None:
    whole = getattr(side.analysis.cpu, field) if side.analysis.cpu else None
    return None if whole is None else whole / side.steps


def _idle_share(side: Side, basis: Basis) -> float | None:
    idle, whole = side.idle_us(basis), side.wall_us if basis == "unprofiled" else side.span_us
    return idle / whole if idle is not None and whole else None


def _peak(side: Side) -> int | None:
    if side.form and side.form.peak_memory_bytes is not None:
        return side.form.peak_memory_bytes
    return side.analysis.memory.peak_allocated_bytes if side.analysis.memory else None


def compilation_time(side: Side) -> str:
    """How long the calls took that compiled, and whether a cache on disk made them short."""
    facts = side.form.compilation if side.form else None
    if facts is None:
        return MISSING
    cached = f" ({facts.cache_hits} of {facts.graphs} graphs from a cache)" if facts.cache_hits else ""
    return duration(facts.seconds * 1e6) + cached
