"""The two sides next to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
from tracekit.report.sections.traffic import traffic_note, traffic_row
from tracekit.report.table import Column, Table
from tracekit.report.words import shared_scope

Row = tuple[str, str, str, str]


def overview_table(comparison: Comparison) -> Table:
    """Times, counts and memory of both sides and the change, per step. A CPU run has rows of its own."""
    a, b = comparison.a, comparison.b
    on_cpu = a.analysis.gpu is None and b.analysis.gpu is None
    rows = (*_time_rows(a, b), *(_cpu_rows(a, b) if on_cpu else _gpu_rows(comparison)), *_run_rows(a, b))
    if not comparable(a, b):
        rows = tuple((label, one, other, MISSING) for label, one, other, _ in rows)
    return Table(
        caption=f"Figures, {shared_scope(comparison)}",
        columns=(Column("Figure", numeric=False), Column(f"A: {a.label}"), Column(f"B: {b.label}"), Column("Change")),
        rows=rows,
        note=" ".join(filter(None, (_note(comparison), traffic_note(comparison)))),
    )


def shared_basis(comparison: Comparison) -> Basis:
    """Unprofiled where both sides can be put on it, so that the two columns mean the same."""
    sides = (comparison.a, comparison.b)
    return "trace" if any(side.unprofiled_idle_us is None for side in sides) else "unprofiled"


def _note(comparison: Comparison) -> str:
    missing = f"{MISSING} means: not measured.{_means(comparison)}"
    if comparison.a.analysis.gpu is None and comparison.b.analysis.gpu is None:
        return missing
    if shared_basis(comparison) == "unprofiled":
        return f"Idle is the unprofiled wall time less the GPU's busy time. {missing}"
    if comparison.a.wall_us is None or comparison.b.wall_us is None:
        return f"Idle is as recorded, which profiling lengthens, for want of unprofiled times of both sides. {missing}"
    return f"Idle is as recorded, which profiling lengthens: it cannot be told for the unprofiled calls. {missing}"


def _means(comparison: Comparison) -> str:
    """Why a number of kernels can have a decimal; nothing where none has."""
    counts = [_per_step(side, figure) for figure in COUNTS.values() for side in (comparison.a, comparison.b)]
    if all(each is None or is_whole(each) for each in counts):
        return ""
    steps = " and ".join(dict.fromkeys(f"{side.steps:,}" for side in (comparison.a, comparison.b)))
    return (
        f" Counts with a decimal are means of the {steps} steps recorded: a kernel of about 10 µs is shorter in one "
        "step and longer in another."
    )


def _time_rows(a: Side, b: Side) -> Iterator[Row]:
    label = "Wall time, unprofiled median"
    if any(side.analysis.window.kind != "steps" for side in (a, b) if side.wall_us is not None):
        # The figures below are then of something else than a call.
        label += " of one call"
    yield _durations(label, a.wall_us, b.wall_us)
    if a.recorded_wall_us is not None or b.recorded_wall_us is not None:
        yield _durations("Wall time while recorded", a.recorded_wall_us, b.recorded_wall_us)


def _gpu_rows(comparison: Comparison) -> Iterator[Row]:
    a, b, basis = comparison.a, comparison.b, shared_basis(comparison)
    yield _durations("GPU busy", a.busy_us, b.busy_us)
    yield _durations("GPU idle", a.idle_us(basis), b.idle_us(basis))
    yield _row("GPU idle, share", _idle_share(a, basis), _idle_share(b, basis), percent, points_change)
    for label, figure in COUNTS.items():
        yield _row(label, _per_step(a, figure), _per_step(b, figure), count, count_change)
    yield _durations("Copies and sets, GPU time", _copy_us(a), _copy_us(b))
    moved = traffic_row(comparison)
    if moved:
        yield moved


def _cpu_rows(a: Side, b: Side) -> Iterator[Row]:
    for label, field in (("Operators", "operator_count"), ("Inductor's C++ kernels", "fused_count")):
        yield _row(label, _cpu(a, field), _cpu(b, field), count, count_change)
    for label, field in (("Time in operators", "operator_us"), ("Time in C++ kernels", "fused_us")):
        yield _durations(label, _cpu(a, field), _cpu(b, field))


def _run_rows(a: Side, b: Side) -> Iterator[Row]:
    peaks = [float(peak) if (peak := _peak(side)) is not None else None for side in (a, b)]
    yield _row("Peak memory", peaks[0], peaks[1], size, size_change)
    yield "Compilation before timing", _compilation(a), _compilation(b), ""


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


def _row(
    label: str,
    a: float | None,
    b: float | None,
    shown: Callable[[float | None], str],
    change: Callable[[float | None], str],
) -> Row:
    return label, shown(a), shown(b), change(b - a if a is not None and b is not None else None)


def _durations(label: str, a: float | None, b: float | None) -> Row:
    return _row(label, a, b, duration, lambda us: change_with_share(us, a))


def _per_step(side: Side, figure: Callable[[Side], int | None]) -> float | None:
    whole = figure(side)
    return None if whole is None else whole / side.steps


def _copy_us(side: Side) -> float | None:
    return side.analysis.copies.total_us / side.steps if side.analysis.copies else None


def _cpu(side: Side, field: str) -> float | None:
    return getattr(side.analysis.cpu, field) / side.steps if side.analysis.cpu else None


def _idle_share(side: Side, basis: Basis) -> float | None:
    idle, whole = side.idle_us(basis), side.wall_us if basis == "unprofiled" else side.span_us
    return idle / whole if idle is not None and whole else None


def _peak(side: Side) -> int | None:
    if side.form and side.form.peak_memory_bytes is not None:
        return side.form.peak_memory_bytes
    return side.analysis.memory.peak_allocated_bytes if side.analysis.memory else None


def _compilation(side: Side) -> str:
    """How long the calls took that compiled, and whether a cache on disk made them short."""
    facts = side.form.compilation if side.form else None
    if facts is None:
        return MISSING
    cached = f" ({facts.cache_hits} of {facts.graphs} graphs from a cache)" if facts.cache_hits else ""
    return duration(facts.seconds * 1e6) + cached
