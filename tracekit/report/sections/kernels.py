"""Which kernels took the GPU's time."""

from __future__ import annotations

from tracekit.model.analysis import FAMILIES, FamilyTime
from tracekit.model.comparison import Comparison, Side
from tracekit.numbers import count, count_change, duration, duration_change, percent
from tracekit.report.names import printable, short_kernel_name
from tracekit.report.table import Column, Name, Table
from tracekit.report.words import scope, shared_scope

COPIES = ("memcpy", "memset")


def kernel_name(name: str, limit: int = 64) -> Name:
    return Name(full=printable(name), short=short_kernel_name(name, limit))


def families_of(side: Side) -> dict[str, tuple[float, float]]:
    """Count and microseconds per step of each kernel family, and of memory copies and sets."""
    kernels, copies = side.analysis.kernels, side.analysis.copies
    times = [*(kernels.by_family if kernels else ()), *(_copy_families(side) if copies else ())]
    found: dict[str, tuple[float, float]] = {}
    for each in times:
        number, us = found.get(each.family, (0.0, 0.0))
        found[each.family] = (number + each.count / side.steps, us + each.total_us / side.steps)
    return found


def _copy_families(side: Side) -> list[FamilyTime]:
    copies = side.analysis.copies
    return [FamilyTime(each.family, each.count, each.total_us) for each in copies.by_name] if copies else []


def families_present(comparison: Comparison) -> tuple[str, ...]:
    """In the order reports list them, unknown ones last."""
    present = {*families_of(comparison.a), *families_of(comparison.b)}
    return (*(each for each in FAMILIES if each in present), *sorted(present.difference(FAMILIES)))


def family_table(comparison: Comparison) -> Table | None:
    """GPU time and counts by kernel family; None for a CPU run."""
    a, b = families_of(comparison.a), families_of(comparison.b)
    if not (a or b):
        return None
    rows = []
    for family in families_present(comparison):
        (a_count, a_us), (b_count, b_us) = a.get(family, (0.0, 0.0)), b.get(family, (0.0, 0.0))
        times = (duration(a_us), duration(b_us), duration_change(b_us - a_us))
        rows.append((family, *times, count(a_count), count(b_count), count_change(b_count - a_count)))
    columns = ("time A", "time B", "change", "count A", "count B", "change")
    return Table(
        caption=f"GPU time and number of kernels by family, {shared_scope(comparison)}",
        columns=(Column("Family", numeric=False), *map(Column, columns)),
        rows=tuple(rows),
        note="Memory copies and sets are GPU activity but not kernels.",
    )


def top_kernels_table(side: Side, letter: str, limit: int = 15) -> Table | None:
    """The kernels with the largest total time; None when the side has no GPU figures."""
    kernels = side.analysis.kernels
    if kernels is None:
        return None
    rows = tuple(
        (
            kernel_name(each.name),
            each.family,
            count(each.count / side.steps),
            duration(each.total_us / side.steps),
            duration(each.mean_us),
            percent(each.total_us / kernels.total_us if kernels.total_us else None),
        )
        for each in kernels.by_name[:limit]
    )
    names = (Column("Kernel", numeric=False), Column("Family", numeric=False))
    return Table(
        caption=f"Largest kernels of {letter}: {side.label}, {scope(side)}",
        columns=(*names, *map(Column, ("Count", "Total", "Mean", "Share"))),
        rows=rows,
        note=f"{len(rows)} of {kernels.unique:,} names; share of the side's kernel time.",
    )
