"""All kernel groups, as the rows of the page's sortable and searchable table."""

from __future__ import annotations

from itertools import chain

from tracekit.model.comparison import Comparison, KernelGroup
from tracekit.names import clipped, printable
from tracekit.numbers import count, duration, duration_change
from tracekit.report.document import Explorer, ExplorerRow, Figure
from tracekit.report.places import distinct_places
from tracekit.report.sections.explorer import MOST_MEMBERS, fitting, members_of
from tracekit.report.sections.groups import group_label, group_note, told_evidence
from tracekit.report.words.common import became, kinds_told, shared_scope, ways_told

#: Groups with a row of their own, so that the page stays small; the rest are in one line.
MOST_ROWS = 500

#: Modules and lines of a row.
MOST_PLACES = 12


def every_group(comparison: Comparison) -> Explorer | None:
    """The groups, largest change first, and what those without a row come to. None for a CPU run."""
    groups = comparison.groups
    if not groups:
        return None
    places = distinct_places(groups)
    rows = fitting(_row(at, group, places[at]) for at, group in enumerate(groups[:MOST_ROWS]))
    return Explorer(
        caption=f"Kernel groups, {shared_scope(comparison)}",
        noun="groups",
        hint="kernel, module, line, kind",
        head="Kernels",
        words=("Became", "Told by"),
        figures=("count A", "count B", "time A", "time B", "change"),
        rows=rows,
        note=f"{group_note(comparison)}{_rest(groups[len(rows) :])}",
        legends=(("What became of them", kinds_told(groups)), ("Told by", ways_told(groups))),
    )


def _row(number: int, group: KernelGroup, place: str) -> ExplorerRow:
    counts = [sum(member.count for member in members) for members in (group.a, group.b)]
    times = [sum(member.total_us for member in members) for members in (group.a, group.b)]
    return ExplorerRow(
        number=number,
        label=group_label(group),
        is_code=group.kind == "unchanged",
        place=place,
        words=(became(group), group.how),
        figures=(
            *(Figure(count(each), each) for each in counts),
            *(Figure(duration(each), each) for each in times),
            Figure(duration_change(group.delta_us), group.delta_us),
        ),
        members=tuple(chain(members_of("A", group.a), members_of("B", group.b))),
        left_out=sum(max(len(members) - MOST_MEMBERS, 0) for members in (group.a, group.b)),
        where=tuple(clipped(printable(each), 120) for each in group.where[:MOST_PLACES]),
        evidence=told_evidence(group),
    )


def _rest(groups: tuple[KernelGroup, ...]) -> str:
    if not groups:
        return ""
    change = duration_change(sum(group.delta_us for group in groups))
    return f" {len(groups):,} more groups with smaller changes, {change} in all, are not listed."
