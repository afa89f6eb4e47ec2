"""Which kernels ran, how often and how long? And which copies?"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from tracekit.analysis.families import family_of
from tracekit.analysis.window import Scope
from tracekit.model.analysis import FAMILIES, CopySummary, FamilyTime, KernelSummary, KernelTime

#: Kernels shorter than this cost about as much to launch as to run.
SHORT_NS = 10_000


def summarize_kernels(scope: Scope) -> KernelSummary:
    """Counts and GPU time of the kernels that belong to the window, memory copies and sets apart."""
    kernels = scope.activities.filter(pl.col("kind") == "kernel")
    names = _by_name(kernels, family_of)
    return KernelSummary(
        count=kernels.height,
        unique=len(names),
        total_us=_total_us(kernels),
        triton_count=sum(each.count for each in names if each.family == "triton"),
        short_count=int((kernels["end_ns"] - kernels["start_ns"] < SHORT_NS).sum()),
        by_family=_by_family(names),
        by_name=names,
    )


def summarize_copies(scope: Scope) -> CopySummary:
    """Counts and GPU time of memory copies and sets."""
    copies, sets = (scope.activities.filter(pl.col("kind") == kind) for kind in ("memcpy", "memset"))
    names = (*_by_name(copies, lambda _: "memcpy"), *_by_name(sets, lambda _: "memset"))
    return CopySummary(
        memcpy_count=copies.height,
        memset_count=sets.height,
        total_us=_total_us(pl.concat([copies, sets])),
        by_name=tuple(sorted(names, key=lambda each: -each.total_us)),
    )


def _by_name(activities: pl.DataFrame, family: Callable[[str], str]) -> tuple[KernelTime, ...]:
    """Largest total first; equal totals by name, so that two runs list them alike."""
    length = pl.col("end_ns") - pl.col("start_ns")
    groups = activities.group_by("name").agg(count=pl.len(), total_ns=length.sum())
    rows = groups.sort(["total_ns", "name"], descending=[True, False]).iter_rows()
    return tuple(KernelTime(name, family(name), count, ns / 1e3, ns / 1e3 / count) for name, count, ns in rows)


def _by_family(names: tuple[KernelTime, ...]) -> tuple[FamilyTime, ...]:
    counts: dict[str, int] = {}
    totals: dict[str, float] = {}
    for each in names:
        counts[each.family] = counts.get(each.family, 0) + each.count
        totals[each.family] = totals.get(each.family, 0.0) + each.total_us
    return tuple(FamilyTime(family, counts[family], totals[family]) for family in FAMILIES if family in counts)


def _total_us(activities: pl.DataFrame) -> float:
    return int((activities["end_ns"] - activities["start_ns"]).sum()) / 1e3
