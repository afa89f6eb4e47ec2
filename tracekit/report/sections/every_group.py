"""All kernel groups, as the rows of the page's sortable and searchable table."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from tracekit.model.comparison import Comparison, GroupMember, KernelGroup
from tracekit.numbers import count, duration, duration_change
from tracekit.report.names import clipped, printable
from tracekit.report.places import distinct_places
from tracekit.report.sections.groups import group_label
from tracekit.report.sections.kernels import kernel_name
from tracekit.report.table import Name
from tracekit.report.words import became, kinds_told, ways_told

#: Groups with a row of their own, so that the page stays small; the rest are in one line.
MOST_ROWS = 500

#: Kernels of one side that a row lists, modules and lines, and characters of a full name.
MOST_MEMBERS = 8
MOST_PLACES = 12
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as it is read, and as it is sorted by."""

    text: str
    value: float


@dataclass(frozen=True, slots=True)
class Member:
    """A kernel of side `letter`: how often it ran, and how long in all."""

    letter: str
    name: Name
    text: str


@dataclass(frozen=True, slots=True)
class GroupRow:
    """`number` is the group's in the comparison, from 0. `left_out` says how many kernels are not among `members`."""

    number: int
    label: str
    place: str
    kind: str
    how: str
    figures: tuple[Figure, ...]
    members: tuple[Member, ...]
    left_out: int
    where: tuple[str, ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EveryGroup:
    """The rows, largest change first; `rest` says what the groups without a row come to, empty when there are none.

    `kinds` and `ways` explain the words that occur.
    """

    rows: tuple[GroupRow, ...]
    figures: tuple[str, ...]
    rest: str
    kinds: dict[str, str]
    ways: dict[str, str]


def every_group(comparison: Comparison) -> EveryGroup | None:
    """None for a CPU run."""
    groups = comparison.groups
    if not groups:
        return None
    places = distinct_places(groups)
    return EveryGroup(
        rows=tuple(_row(at, group, places[at]) for at, group in enumerate(groups[:MOST_ROWS])),
        figures=("count A", "count B", "time A", "time B", "change"),
        rest=_rest(groups[MOST_ROWS:]),
        kinds=kinds_told(groups),
        ways=ways_told(groups),
    )


def _row(number: int, group: KernelGroup, place: str) -> GroupRow:
    counts = [sum(member.count for member in members) for members in (group.a, group.b)]
    times = [sum(member.total_us for member in members) for members in (group.a, group.b)]
    return GroupRow(
        number=number,
        label=group_label(group),
        place=place,
        kind=became(group),
        how=group.how,
        figures=(
            *(Figure(count(each), each) for each in counts),
            *(Figure(duration(each), each) for each in times),
            Figure(duration_change(group.delta_us), group.delta_us),
        ),
        members=tuple(chain(_members("A", group.a), _members("B", group.b))),
        left_out=sum(max(len(members) - MOST_MEMBERS, 0) for members in (group.a, group.b)),
        where=tuple(clipped(printable(each), 120) for each in group.where[:MOST_PLACES]),
        evidence=group.evidence,
    )


def _members(letter: str, members: tuple[GroupMember, ...]) -> list[Member]:
    told = []
    for each in members[:MOST_MEMBERS]:
        name = kernel_name(each.name)
        full = clipped(name.full, LONGEST_NAME)
        text = f"{count(each.count)}\N{MULTIPLICATION SIGN}, {duration(each.total_us)}"
        told.append(Member(letter, Name(full=full, short=name.short), text))
    return told


def _rest(groups: tuple[KernelGroup, ...]) -> str:
    if not groups:
        return ""
    change = duration_change(sum(group.delta_us for group in groups))
    return f"{len(groups):,} more groups with smaller changes, {change} in all, are not listed."
