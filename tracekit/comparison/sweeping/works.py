"""Which cells do the same work, and what does the whole sweep say?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tracekit import __version__
from tracekit.comparison.sweeping.beside import differences, set_beside
from tracekit.comparison.sweeping.best import find_best
from tracekit.comparison.sweeping.cells import read_cell
from tracekit.comparison.sweeping.commanding import command_of
from tracekit.comparison.sweeping.machines import find_differences, machine_of
from tracekit.comparison.sweeping.neighbours import of_neighbours
from tracekit.comparison.sweeping.pooling import pool_eager
from tracekit.comparison.sweeping.spread import is_within_spread
from tracekit.model.note import Note
from tracekit.model.sweep import Asked, CellResult, Suite
from tracekit.model.sweep_figures import CellFigures, EagerPool, Sweep, Work
from tracekit.model.timing import StoppingRule


def read_sweep(name: str, asked: Asked | None, results: Sequence[CellResult], suite: Suite | None, calls: int) -> Sweep:
    """All that these cells say. `asked` is None where nobody knows what was; `suite` is the one they are of."""
    groups = tuple(_by_work(results))
    works = tuple(_read_work(_without_doubles(group), calls) for group in groups)
    there = {result.cell.key for result in results}
    left = tuple(cell for cell in (asked.cells if asked else ()) if cell.key not in there)
    beside = set_beside(works, suite) if suite else ()
    return Sweep(
        schema="tracekit.sweep/1",
        tracekit=__version__,
        name=name,
        suite=suite.name if suite else None,
        command=asked.calls[-1].command if asked and asked.calls else None,
        calls=calls,
        missing=len(left),
        works=works,
        published=beside,
        published_source=suite.source if suite and beside else "",
        differs=differences(works, results) if beside else (),
        notes=(
            *_unlike_cells(results),
            *_of_differences(works),
            *_of_doubles(groups),
            *of_neighbours(results),
            *_of_limits(works),
        ),
        left=left,
    )


def _read_work(results: Sequence[CellResult], calls: int) -> Work:
    first = next((result for result in results if result.run), None)
    run = first.run if first else None
    eager = pool_eager(results, calls)
    cells = tuple(_beside_spread(read_cell(result, calls), eager) for result in results)
    return Work(
        key=results[0].cell.work,
        workload=results[0].cell.request.workload,
        settings=run.settings if run else None,
        machine=machine_of(run.environment) if run else None,
        torch=run.environment.packages.get("torch") if run else None,
        eager=eager,
        cells=cells,
        best=find_best(eager, cells, calls, command_of(first, "eager") if first else ""),
        differs=find_differences(results),
    )


def _beside_spread(cell: CellFigures, eager: EagerPool | None) -> CellFigures:
    return replace(cell, within_eager_spread=is_within_spread(cell.verdict, eager))


def _by_work(results: Sequence[CellResult]) -> Iterator[tuple[CellResult, ...]]:
    """Cells of the same work, size, type, machine and torch. One that never said goes with the first of its work."""
    groups: dict[str, dict[tuple[object, ...], list[CellResult]]] = {}
    for result in results:
        groups.setdefault(result.cell.work, {}).setdefault(_where(result), []).append(result)
    for group in groups.values():
        silent = group.pop((), [])
        kept = list(group.values()) or [[]]
        kept[0].extend(silent)
        order = {id(result): number for number, result in enumerate(results)}
        yield from (tuple(sorted(some, key=lambda each: order[id(each)])) for some in kept)


def _without_doubles(results: Sequence[CellResult]) -> tuple[CellResult, ...]:
    """Of several files of one cell the one that was begun last, where the first of them stands."""
    latest: dict[str, CellResult] = {}
    for result in results:
        known = latest.get(result.cell.key)
        latest[result.cell.key] = result if known is None or result.started > known.started else known
    return tuple(latest.values())


def _of_doubles(groups: Sequence[Sequence[CellResult]]) -> Iterator[Note]:
    for group in groups:
        for key, number in Counter(result.cell.key for result in group).items():
            if number > 1:
                yield Note("same_cell_in_files", facts={"key": key, "files": number})


def _of_differences(works: Sequence[Work]) -> Iterator[Note]:
    differing = [work for work in works if work.differs]
    if differing:
        differences = list(dict.fromkeys(each for work in differing for each in work.differs))
        facts = {"differences": differences, "works": len(differing), "of_works": len(works)}
        yield Note("machines_of_a_work_differ", facts=facts)


def _of_limits(works: Sequence[Work]) -> Iterator[Note]:
    timed = [cell for work in works for cell in work.cells if cell.failure is None]
    if held := sum(bool(cell.conditions.limits) for cell in timed):
        yield Note("cells_throttled", facts={"cells": held, "of_cells": len(timed)})


def _where(result: CellResult) -> tuple[object, ...]:
    if result.run is None:
        return ()
    settings, environment = result.run.settings, result.run.environment
    return settings.size, settings.dtype, machine_of(environment), environment.packages.get("torch")


def _unlike_cells(results: Sequence[CellResult]) -> Iterator[Note]:
    """What keeps the cells from being compared with each other."""
    ran = [result.run.environment for result in results if result.run]
    machines = list(dict.fromkeys(name for each in ran if (name := machine_of(each))))
    torches = list(dict.fromkeys(name for each in ran if (name := each.packages.get("torch"))))
    if len(machines) > 1:
        yield Note("several_machines", facts={"machines": machines})
    if len(torches) > 1:
        yield Note("several_torches", facts={"versions": torches})
    rules = {_rule(result.run.rule) for result in results if result.run}
    if len(rules) > 1:
        yield Note("several_timing_rules")
    versions = list(dict.fromkeys(result.tracekit for result in results))
    if len(versions) > 1:
        yield Note("several_tracekits", facts={"versions": versions})


def _rule(rule: StoppingRule) -> tuple[float | None, ...]:
    """Where a number of calls was asked for, nothing else counts."""
    return (rule.rounds,) if rule.rounds is not None else (None, rule.target, rule.budget_seconds)
