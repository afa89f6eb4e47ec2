"""Which cells do the same work, and what does the whole sweep say?"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from tracekit import __version__
from tracekit.model.bounded import Each
from tracekit.model.cell import CellRun
from tracekit.model.note import Note
from tracekit.model.run import Environment
from tracekit.shell import variable_words
from tracekit.sweep.cells import Asked, CellResult, Suite
from tracekit.sweep.figures import Sweep, Work
from tracekit.sweep.reading.best import confirm, find_best
from tracekit.sweep.reading.calls import pool_eager
from tracekit.sweep.reading.cell_figures import command_of, read_cell
from tracekit.sweep.reading.chances import judge_together
from tracekit.sweep.reading.published import find_differences_from_published, set_beside_published
from tracekit.sweep.statements import notes as statements

#: Packages whose version decides which kernels run and how long the host takes to start them.
PACKAGES = ("torch", "triton", "transformers", "diffusers")
#: What cells of one row always have in common.
IDENTITY = ("size", "dtype", "machine", "torch")
#: What machines differ in, where that is not called by its own name.
CALLED = {"cpu": "CPU", "python": "Python"}
#: A cell that begins while the one before it is still going out meets little of it.
SHORTEST_SECONDS = 5.0


def read_sweep(
    name: str,
    asked: Asked | None,
    results: Sequence[CellResult],
    suite: Suite | None,
    calls: int,
    again: Sequence[CellResult] = (),
) -> Sweep:
    """All that these cells say. `asked` is None where nobody knows what was; `suite` is the one they are of, `again`
    what processes say that measured the best of works again."""
    apart = {work: _find_apart(each) for work, each in _grouped(results, lambda each: each.cell.work).items()}
    groups = tuple(_by_work(results, apart))
    together = [sum(seconds > SHORTEST_SECONDS for seconds in each) for each in _overlaps(results)]
    named = [(each, cells) for each, cells in zip(results, together, strict=True) if each.host]
    concurrent = {(each.cell.key, each.started): cells for each, cells in named}
    works = tuple(_read_work(group, calls, concurrent, apart[group[0].cell.work], again) for group in groups)
    there = set(map(_process, results))
    keys = {key for key, _ in there}
    processes = asked.processes if asked else {}
    left = tuple(cell for cell in (asked.cells if asked else ()) if cell.key not in keys)
    beside = set_beside_published(works, suite) if suite else ()
    return Sweep(
        tracekit=__version__,
        name=name,
        suite=suite.name if suite else None,
        command=asked.calls[-1].command if asked and asked.calls else None,
        calls=calls,
        missing=len(left),
        works=works,
        published=beside,
        published_source=suite.source if suite and beside else "",
        differences=tuple(find_differences_from_published(works, results)) if beside else (),
        notes=tuple(_find_notes(results, works, groups)),
        left=left,
        processes_missing=sum(
            (key, process) not in there for key in keys for process in range(1, processes.get(key, 1) + 1)
        ),
    )


def machine_of(environment: Environment) -> str | None:
    """The GPU's name, or the CPU's where there is none."""
    return environment.gpu or environment.cpu


def _by_work(results: Sequence[CellResult], apart: Mapping[str, Collection[str]]) -> Iterator[tuple[CellResult, ...]]:
    """Cells of the same work, size, type, machine and torch, and of all else that processes of one of them differ in:
    none is pooled over machines that are not alike. One that never said goes with the first of its work."""
    groups: dict[str, dict[tuple[object, ...], list[int]]] = {}
    for number, result in enumerate(results):
        where: tuple[object, ...] = ()
        if result.run is not None:
            facts = _machine_facts(result.run)
            where = tuple(facts[name] for name in (*IDENTITY, *apart[result.cell.work]))
        groups.setdefault(result.cell.work, {}).setdefault(where, []).append(number)
    for group in groups.values():
        silent = group.pop((), [])
        first, *others = list(group.values()) or [[]]
        yield from (tuple(results[number] for number in sorted(some)) for some in (first + silent, *others))


def _machine_facts(run: CellRun) -> dict[str, str | None]:
    """What figures of one work may depend on besides its settings; None for what nobody noted."""
    environment = run.environment
    facts: dict[str, str | None] = {"size": run.settings.size, "dtype": run.settings.dtype}
    facts |= {"machine": machine_of(environment), "cpu": environment.cpu if environment.gpu else None}
    facts |= {"driver": environment.driver, "python": environment.python}
    facts |= {name: environment.packages.get(name) for name in PACKAGES}
    facts |= {"float32_matmul_precision": environment.float32_matmul_precision}
    return facts | {"variables": variable_words(run.settings.variables)}


def _is_alike(one: Mapping[str, object], other: Mapping[str, object], apart: Collection[str]) -> bool:
    return all(one[name] == other[name] for name in (*IDENTITY, *apart))


def _find_apart(results: Sequence[CellResult]) -> dict[str, list[str]]:
    """What processes of one cell differ in, with the values of each: machines are alike that have all of it in common.
    What one does not say is taken to be as in the others."""
    found: dict[str, dict[str, None]] = {}
    for processes in _grouped(results, lambda each: each.cell.key).values():
        several = len({each.process for each in processes}) > 1
        for what, values in _values_of(processes if several else ()).items():
            if len(values) > 1:
                found.setdefault(what, {}).update(dict.fromkeys(values))
    return {what: list(values) for what, values in found.items()}


def _values_of(results: Iterable[CellResult]) -> dict[str, list[str]]:
    """Every value of what their machines have."""
    found: dict[str, dict[str, None]] = {}
    for run in (result.run for result in results if result.run):
        for what, value in _machine_facts(run).items():
            if value is not None:
                found.setdefault(what, {})[value] = None
    return {what: list(values) for what, values in found.items()}


def _grouped(results: Iterable[CellResult], key: Callable[[CellResult], str]) -> dict[str, list[CellResult]]:
    groups: dict[str, list[CellResult]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups


def _process(result: CellResult) -> tuple[str, int]:
    """What tells processes of cells apart."""
    return result.cell.key, result.process


def _read_work(
    group: Sequence[CellResult],
    calls: int,
    concurrent: Mapping[tuple[str, str], int],
    apart: Collection[str],
    again: Sequence[CellResult],
) -> Work:
    # Of several files of one process the one that was begun last, where the first of them stands.
    latest: dict[tuple[str, int], CellResult] = {}
    for result in group:
        known = latest.get(_process(result))
        latest[_process(result)] = result if known is None or result.started > known.started else known
    results = tuple(latest.values())

    first = next((result for result in results if result.run), None)
    run = first.run if first else None
    eager = pool_eager(results, calls)
    read = [
        read_cell(processes, calls, [concurrent.get((each.cell.key, each.started)) for each in processes])
        for processes in _grouped(results, lambda each: each.cell.key).values()
    ]
    cells, facts = judge_together(read), _machine_facts(run) if run else {}
    bests = find_best(eager, cells, calls, command_of(first, "eager") if first else "")
    here = [each for each in again if each.cell.work == results[0].cell.work]
    alike = [each for each in here if not each.run or (facts and _is_alike(facts, _machine_facts(each.run), apart))]
    return Work(
        key=results[0].cell.work,
        workload=results[0].cell.request.workload,
        settings=run.settings if run else None,
        machine=machine_of(run.environment) if run else None,
        torch=run.environment.packages.get("torch") if run else None,
        eager=eager,
        cells=cells,
        best=tuple(confirm(best, alike) for best in bests),
        # Hosts of one kind are alike, whatever their names: it is what they have that counts.
        differs=tuple(_difference(what, each) for what, each in _values_of(results).items() if len(each) > 1),
        apart=tuple(_difference(name, (facts.get(name),)) for name in apart if name not in IDENTITY),
    )


def _difference(what: str, values: Iterable[str | None]) -> str:
    """`driver: 580.1, 590.2`."""
    return f"{CALLED.get(what, what)}: {', '.join(value or 'none' for value in values)}"


def _several(values: Iterable[Each | None]) -> list[Each]:
    """Each of these once, where there are several."""
    found = list(dict.fromkeys(each for each in values if each))
    return found if len(found) > 1 else []


def _find_notes(
    results: Sequence[CellResult], works: Sequence[Work], groups: Sequence[Sequence[CellResult]]
) -> Iterator[Note]:
    """What keeps cells from being compared; where machines of one work differ, one cell has several files, cells ran
    beside each other, or were throttled."""
    by_key = _grouped(results, lambda each: each.cell.key).values()
    if apart := _find_apart(results):
        differences = [_difference(what, values) for what, values in apart.items()]
        unlike = sum(bool(_find_apart(each)) for each in by_key)
        yield statements.ProcessesNotPooled(cells=unlike, of_cells=len(by_key), differences=differences)
    ran = [result.run for result in results if result.run]
    # Where a number of calls was asked for, nothing else counts.
    rules = [
        (rule.rounds,) if rule.rounds is not None else (None, rule.target, rule.budget_seconds)
        for rule in (run.rule for run in ran)
    ]
    if machines := _several(machine_of(run.environment) for run in ran):
        yield statements.SeveralMachines(machines=machines)
    if versions := _several(run.environment.packages.get("torch") for run in ran):
        yield statements.SeveralTorches(versions=versions)
    if _several(rules):
        yield statements.SeveralTimingRules()
    if versions := _several(result.tracekit for result in results):
        yield statements.SeveralTracekits(versions=versions)
    if differing := [work for work in works if work.differs]:
        differences = list(dict.fromkeys(each for work in differing for each in work.differs))
        yield statements.MachinesOfAWorkDiffer(differences=differences, works=len(differing), of_works=len(works))
    for group in groups:
        for (key, _), number in Counter(map(_process, group)).items():
            if number > 1:
                yield statements.SameCellInFiles(key=key, files=number)
    yield from find_side_by_side(results)
    on_hosts = ([each for each in cell if each.host] for cell in by_key)
    hosts = [(len({each.process for each in cell}), len({each.host for each in cell})) for cell in on_hosts]
    # Where all are of one host nobody spread them.
    if shared := sum(processes > number > 1 for processes, number in hosts):
        of_cells = sum(processes > 1 for processes, _ in hosts)
        yield statements.ProcessesShareHosts(cells=shared, of_cells=of_cells)
    timed = [cell for work in works for cell in work.cells if cell.failure is None]
    if held := sum(any(each.conditions.limits for each in cell.processes) for cell in timed):
        yield statements.CellsThrottled(cells=held, of_cells=len(timed))


def find_side_by_side(results: Sequence[CellResult]) -> Iterator[Note]:
    """A note where cells that have times were measured while others ran on the same host, as far as hosts are named."""
    timed = [each for each in zip(_overlaps(results), results, strict=True) if each[1].outcome == "done"]
    if beside := {result.cell.key for seconds, result in timed if sum(seconds) > SHORTEST_SECONDS}:
        of_cells = len({result.cell.key for _, result in timed})
        yield statements.CellsSideBySide(cells=len(beside), of_cells=of_cells)


def _overlaps(results: Sequence[CellResult]) -> Iterator[list[float]]:
    """Of each cell, for how many of its seconds each other one ran that may have been on its host."""
    begins = [datetime.fromisoformat(result.started).timestamp() for result in results]
    for result, began in zip(results, begins, strict=True):
        yield [
            max(0.0, min(began + result.seconds, begin + other.seconds) - max(began, begin))
            for other, begin in zip(results, begins, strict=True)
            # A process does not run beside itself.
            if _process(other) != _process(result) and (other.host == result.host or None in (other.host, result.host))
        ]
