"""A table that the page lets its reader sort and search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markupsafe import escape

from tracekit.model.comparison import GroupMember
from tracekit.names import clipped
from tracekit.numbers import count, duration
from tracekit.report.document import ExplorerRow, Member, Name
from tracekit.report.sections.kernels import kernel_name

#: Kernels of one side that a row lists, and characters of a full name.
MOST_MEMBERS = 8
LONGEST_NAME = 200

#: Of all rows of a table as they stand in the page, which is to stay small.
MOST_BYTES = 1_200_000
#: What stands around the text of a row, of each of its cells and of each kernel.
AROUND_ROW = 250
AROUND_CELL = 120
AROUND_MEMBER = 60


def members_of(letter: str, members: tuple[GroupMember, ...]) -> list[Member]:
    """The first of them, so that a row stays readable."""
    told = []
    for each in members[:MOST_MEMBERS]:
        name = kernel_name(each.name)
        full = clipped(name.full, LONGEST_NAME)
        text = f"{count(each.count)}\N{MULTIPLICATION SIGN}, {duration(each.total_us)}"
        told.append(Member(letter, Name(full=full, short=name.short), text))
    return told


def fitting(rows: Iterable[ExplorerRow]) -> tuple[ExplorerRow, ...]:
    """The first of the rows, as many as leave the page small enough; one at least."""
    shown: list[ExplorerRow] = []
    room = MOST_BYTES
    for row in rows:
        room -= _bytes(row)
        if room < 0 and shown:
            break
        shown.append(row)
    return tuple(shown)


def _bytes(row: ExplorerRow) -> int:
    """About how long the row is in the page."""
    around = AROUND_ROW + AROUND_CELL * (len(row.words) + len(row.figures)) + AROUND_MEMBER * len(row.members)
    return around + sum(len(escape(text).encode()) for text in _texts(row))


def _texts(row: ExplorerRow) -> Iterator[str]:
    yield from (row.label, row.place, *row.words, *row.where, *row.evidence)
    for figure in row.figures:
        yield figure.text
    for member in row.members:
        yield from (member.name.full, member.name.short, member.text)
