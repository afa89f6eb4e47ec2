"""Which kernels of the two sides do the same work, and what became of them."""

from __future__ import annotations

from tracekit.model.comparison import Comparison, GroupMember, KernelGroup
from tracekit.report.names import clipped, printable, short_kernel_name
from tracekit.report.numbers import count, count_change, duration, duration_change, percent
from tracekit.report.sections.kernels import kernel_name
from tracekit.report.table import Column, Name, Table
from tracekit.report.words import shared_scope


def group_table(comparison: Comparison, limit: int = 12) -> Table | None:
    """The groups with the largest change, the rest in one line; None for a CPU run."""
    if not comparison.groups:
        return None
    shown, rest = comparison.groups[:limit], comparison.groups[limit:]
    rows = [_row(group) for group in shown]
    if rest:
        rows.append(_rest(rest))
    texts = (Column("Kernels", numeric=False), Column("What became of them", numeric=False))
    return Table(
        caption=f"Kernel groups, {shared_scope(comparison)}",
        columns=(*texts, *map(Column, ("count A", "count B", "time A", "time B", "Change"))),
        rows=tuple(rows),
        note=_note(comparison),
    )


def _note(comparison: Comparison) -> str:
    note = "Every kernel and copy of both sides is in exactly one group. Groups are told by names, or by family only."
    if comparison.coverage is None:
        return note
    a, b = comparison.coverage.a_time_matched, comparison.coverage.b_time_matched
    return f"{note} Matched: {percent(a)} of A's GPU time, {percent(b)} of B's."


def _row(group: KernelGroup) -> tuple[str | Name, ...]:
    return (
        kernel_name(group.label) if group.kind == "unchanged" else group_label(group),
        group.kind,
        count(_count(group.a)),
        count(_count(group.b)),
        duration(_time(group.a)),
        duration(_time(group.b)),
        duration_change(group.delta_us),
    )


def group_label(group: KernelGroup) -> str:
    """An unchanged group is called by its kernel's name; the others have labels made of words."""
    return short_kernel_name(group.label) if group.kind == "unchanged" else clipped(printable(group.label), 64)


def _rest(rest: tuple[KernelGroup, ...]) -> tuple[str, ...]:
    a = [member for group in rest for member in group.a]
    b = [member for group in rest for member in group.b]
    return (
        f"{len(rest):,} more groups",
        ", ".join(sorted({group.kind for group in rest})),
        count(_count(a)),
        count(_count(b)),
        duration(_time(a)),
        duration(_time(b)),
        duration_change(sum(group.delta_us for group in rest)),
    )


def member_table(group: KernelGroup, limit: int = 12) -> Table:
    """The kernels of one group, side by side in size."""
    rows = [
        (letter, kernel_name(member.name), count(member.count), duration(member.total_us))
        for letter, members in (("A", group.a), ("B", group.b))
        for member in members[:limit]
    ]
    left_out = sum(max(len(members) - limit, 0) for members in (group.a, group.b))
    return Table(
        caption=f"{clipped(printable(group.label), 64)}: {count_change(group.delta_count)} kernels",
        columns=(Column("Side", numeric=False), Column("Kernel", numeric=False), Column("Count"), Column("Total")),
        rows=tuple(rows),
        note=f"{left_out:,} smaller ones are not listed." if left_out else "",
    )


def _count(members: list[GroupMember] | tuple[GroupMember, ...]) -> float:
    return sum(member.count for member in members)


def _time(members: list[GroupMember] | tuple[GroupMember, ...]) -> float:
    return sum(member.total_us for member in members)
