"""What a CPU run shows: operators, and the C++ kernels that Inductor made of them."""

from __future__ import annotations

from tracekit.model.comparison import Side
from tracekit.names import clipped, printable
from tracekit.numbers import count, duration, percent
from tracekit.report.document import Column, Name, Table
from tracekit.report.sides import side_name
from tracekit.report.words.common import scope


def operator_table(side: Side, letter: str, limit: int = 15) -> Table | None:
    """The operators with the most time of their own; None for a GPU run."""
    cpu = side.analysis.cpu
    if cpu is None:
        return None
    rows = tuple(
        (
            Name(full=printable(each.name), short=clipped(printable(each.name), 64)),
            count(each.count / side.steps),
            duration(each.self_us / side.steps),
            percent(each.self_us / cpu.operator_us if cpu.operator_us else None),
        )
        for each in cpu.top[:limit]
    )
    return Table(
        caption=f"Operators of {side_name(letter, side)}, {scope(side)}",
        columns=(Column("Operator", numeric=False), *map(Column, ("Count", "Own time", "Share"))),
        rows=rows,
        note="Own time leaves out the operators called within.",
    )
