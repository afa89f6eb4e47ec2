"""The tables of a report on several ways to compile: one column a form."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tracekit.model.comparison import Comparison
from tracekit.model.comparisons import Comparisons
from tracekit.numbers import MISSING, count, duration, times
from tracekit.report.document import Column, Table
from tracekit.report.sections.overview import (
    compilation_time,
    figures_note,
    memory_figures,
    time_figures,
    work_figures,
)
from tracekit.report.sections.startup import KINDS, pays_after
from tracekit.report.sections.waterfall import waterfall_table
from tracekit.report.sides import Sides, side_name, with_letters
from tracekit.report.words.common import result_word, scope_of

#: Of a form beside the eager one of its process.
AGAINST_EAGER: dict[str, Callable[[Comparison], str]] = {
    "Eager in the same process": lambda each: duration(each.a.wall_us),
    "Speed-up over that": lambda each: times(each.verdict.speedup) if each.verdict.speedup else MISSING,
    "95 % interval of the speed-up": lambda each: (
        f"{each.verdict.ci95[0]:.3f} to {each.verdict.ci95[1]:.3f}" if each.verdict.ci95 else MISSING
    ),
    "Verdict": lambda each: result_word(each).lower(),
}


def sides_of(told: Comparisons) -> Sides:
    """The columns."""
    return with_letters(*told.sides)


def figures_table(told: Comparisons) -> Table:
    """Times, counts, memory and what compiling costs, a column for each form, per step."""
    sides = sides_of(told)
    forms = [side for _, side in sides]
    rows = (
        *((each.label, *map(each.shown, each.values)) for each in time_figures(forms)),
        *((label, *_of_each(told, figure)) for label, figure in AGAINST_EAGER.items()),
        *((each.label, *map(each.shown, each.values)) for each in (*work_figures(forms), *memory_figures(forms))),
        ("Compilation before timing", *map(compilation_time, forms)),
        *_start_rows(told),
    )
    eager = "The eager column is of the first run. " if told.alike else ""
    return Table(
        caption=f"Figures, {scope_of(sides)}",
        columns=(Column("Figure", numeric=False), *(Column(side_name(*each)) for each in sides)),
        rows=tuple(rows),
        note=f"{eager}{figures_note(forms)}",
    )


def _of_each(told: Comparisons, figure: Callable[[Comparison], str]) -> Iterator[str]:
    """The figure of every compiled side; nothing of an eager one."""
    for side in told.sides:
        comparison = told.of(side)
        yield figure(comparison) if comparison else ""


def _start_rows(told: Comparisons) -> Iterator[tuple[str, ...]]:
    """After how many calls compiling has paid for itself, for each kind of start that was measured."""
    kinds = dict.fromkeys(start.kind for each in told.comparisons for start in each.break_even)
    for kind in kinds:
        yield f"Pays after ({KINDS[kind]})", *_of_each(told, lambda each, kind=kind: _pays(each, kind))  # type: ignore[misc]


def _pays(comparison: Comparison, kind: str | None) -> str:
    return next((pays_after(each) for each in comparison.break_even if each.kind == kind), MISSING)


def waterfall_tables(told: Comparisons) -> tuple[Table, ...]:
    """From the eager form of its own process to each form, where both were timed."""
    tables = (waterfall_table(each, ends_of(each)) for each in told.comparisons)
    return tuple(table for table in tables if table is not None)


def ends_of(comparison: Comparison) -> tuple[str, str]:
    """What a waterfall's ends go by: the forms' own names, for the eager one is not the column's."""
    return comparison.a.label, comparison.b.label


def run_table(told: Comparisons) -> Table:
    """Which run each form comes from."""
    rows = tuple(
        (each.b.label, path, count(len(each.b.form.wall_us) if each.b.form else None))
        for each, path in zip(told.comparisons, told.paths, strict=True)
    )
    columns = (Column("Form", numeric=False), Column("Run", numeric=False), Column("Timed calls"))
    return Table("The runs", columns, rows)
