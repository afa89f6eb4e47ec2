"""Which kernels took the GPU's time."""

from __future__ import annotations

from tracekit.model.analysis import FAMILIES, FamilyTime
from tracekit.model.comparison import Side
from tracekit.names import printable, short_kernel_name
from tracekit.numbers import count, count_change, duration, duration_change, percent
from tracekit.report.document import Column, Name, Table
from tracekit.report.sides import Sides, column_label, side_name
from tracekit.report.words.common import scope, scope_of

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


def families_present(sides: Sides) -> tuple[str, ...]:
    """In the order reports list them, unknown ones last."""
    present = {family for _, side in sides for family in families_of(side)}
    return (*(each for each in FAMILIES if each in present), *sorted(present.difference(FAMILIES)))


def family_table(sides: Sides) -> Table | None:
    """GPU time and counts by kernel family, of two sides their change too; None for a CPU run."""
    found = [families_of(side) for _, side in sides]
    if not any(found):
        return None
    rows = []
    for family in families_present(sides):
        counts, times = zip(*(each.get(family, (0.0, 0.0)) for each in found), strict=True)
        changes = (
            [(duration_change(times[1] - times[0]),), (count_change(counts[1] - counts[0]),)]
            if _two(sides)
            else [(), ()]
        )
        rows.append((family, *map(duration, times), *changes[0], *map(count, counts), *changes[1]))
    change = ("change",) if _two(sides) else ()
    labels = [[column_label(what, letter) for letter, _ in sides] for what in ("time", "count")]
    return Table(
        caption=f"GPU time and number of kernels by family, {scope_of(sides)}",
        columns=(Column("Family", numeric=False), *map(Column, (*labels[0], *change, *labels[1], *change))),
        rows=tuple(rows),
        note="Memory copies and sets are GPU activity but not kernels.",
    )


def _two(sides: Sides) -> bool:
    return len(sides) == 2


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
        caption=f"Largest kernels of {side_name(letter, side)}, {scope(side)}",
        columns=(*names, *map(Column, ("Count", "Total", "Mean", "Share"))),
        rows=rows,
        note=f"{len(rows)} of {kernels.unique:,} names; the share is of {'its' if letter else 'all'} kernel time.",
    )
