"""All kernels of one side by name, as the rows of the page's sortable and searchable table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from tracekit.model.analysis import KernelTime
from tracekit.model.comparison import Side
from tracekit.model.sequence import Operator
from tracekit.names import clipped, printable, short_kernel_name
from tracekit.numbers import count, counted, duration, percent
from tracekit.report.document import Explorer, ExplorerRow, Figure
from tracekit.report.sections.explorer import LONGEST_NAME, fitting
from tracekit.report.words.common import scope

#: Names with a row of their own, so that the page stays small; the rest are in one line.
MOST_ROWS = 500

#: Operators of a row, each with its sizes.
MOST_OPERATORS = 6


def every_kernel(side: Side) -> Explorer | None:
    """Kernels, copies and sets by name, largest total time first, and what those without a row come to. None for a CPU
    run."""
    found = _by_time(side)
    if not found:
        return None
    operators, whole_us = _operators(side), sum(each.total_us for each in found)
    rows = fitting(_row(at, each, side.steps, whole_us, operators) for at, each in enumerate(found[:MOST_ROWS]))
    return Explorer(
        caption=f"Kernels, copies and sets by name, {scope(side)}",
        noun="names",
        hint="kernel, family, operator, size",
        head="Kernel",
        words=("Family",),
        figures=("count", "total", "mean", "share"),
        rows=rows,
        note=_note(side, found[len(rows) :]),
    )


def _by_time(side: Side) -> list[KernelTime]:
    kernels, copies = side.analysis.kernels, side.analysis.copies
    found = [*(kernels.by_name if kernels else ()), *(copies.by_name if copies else ())]
    return sorted(found, key=lambda each: -each.total_us)


def _row(
    number: int, each: KernelTime, steps: int, whole_us: float, operators: dict[str, Counter[Operator]]
) -> ExplorerRow:
    share, name = each.total_us / whole_us if whole_us else 0.0, printable(each.name)
    short = short_kernel_name(each.name, 90)
    launching = operators.get(each.name, Counter()).most_common()
    more = [f"{len(launching) - MOST_OPERATORS} other calls"] if len(launching) > MOST_OPERATORS else []
    return ExplorerRow(
        number=number,
        label=short,
        is_code=True,
        words=(each.family,),
        figures=(
            Figure(count(each.count / steps), each.count / steps),
            Figure(duration(each.total_us / steps), each.total_us / steps),
            Figure(duration(each.mean_us), each.mean_us),
            Figure(percent(share), share),
        ),
        where=(*(_told(*call) for call in launching[:MOST_OPERATORS]), *more),
        evidence=(clipped(name, LONGEST_NAME),) if name != short else (),
    )


def _operators(side: Side) -> dict[str, Counter[Operator]]:
    """The operators that launched each kernel, and how often."""
    found: dict[str, Counter[Operator]] = defaultdict(Counter)
    for each in side.sequence.activities if side.sequence else ():
        if each.operator is not None:
            found[each.name][each.operator] += 1
    return found


def _told(operator: Operator, number: int) -> str:
    sizes = ", ".join("x".join(map(str, shape)) for shape in operator.dims if shape)
    called = f"{operator.name} ({sizes})" if sizes else operator.name
    return clipped(printable(f"{number}\N{MULTIPLICATION SIGN} {called}"), 160)


def _note(side: Side, rest: Sequence[KernelTime]) -> str:
    note = "Share: of the time of all of them."
    if side.sequence and side.sequence.operators != "none":
        note += " A row unfolds to the operators that launched its kernel, with the sizes of their inputs."
    if not rest:
        return note
    us = sum(each.total_us for each in rest) / side.steps
    return f"{note} {counted(len(rest), 'shorter name')}, {duration(us)} in all, are not listed."
