"""What `tracekit sweep` says while it runs."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from tracekit.cli.output import measuring_command_line, say
from tracekit.cli.publishing import destination
from tracekit.errors import TracekitError
from tracekit.measure.engines import LOCAL, opened_ray
from tracekit.measure.plan import stopping_rule
from tracekit.measure.progress import console_of_its_own, shown
from tracekit.model.note import note_sentences
from tracekit.model.workload import Request
from tracekit.numbers import counted
from tracekit.shell import steering_variables, variable_words
from tracekit.sweep.cells import AskedCall, CellResult
from tracekit.sweep.commands.asking import Planned
from tracekit.sweep.commands.showing import (
    identity_of_sweep,
    reports_of_sweep,
    resume_command,
    show_command,
    show_sweep,
)
from tracekit.sweep.reading.cell_figures import read_cell
from tracekit.sweep.report.words import OUTCOMES, milliseconds, seconds, speedup
from tracekit.sweep.running.cluster import Reserved, reserve_gpus, run_cells_on
from tracekit.sweep.running.folder import cells_of_other_versions, unreadable_cells
from tracekit.sweep.running.fork_server import ForkServer, shared_modules
from tracekit.sweep.running.requirements import check_first
from tracekit.sweep.running.sweeping import (
    SweepPlan,
    ToDo,
    cell_words,
    find_left,
    find_unconfirmed,
    processes_of,
    run_cells,
    seconds_left,
)
from tracekit.workloads.registry import find

if TYPE_CHECKING:
    from rich.console import Console

    from tracekit.report.thirty_lines import Detail
    from tracekit.sweep.running.folder import SweepFolder
    from tracekit.sweep.running.sweeping import Shown

    #: Runs cells, each on a GPU.
    Run = Callable[[SweepPlan, tuple[ToDo, ...], SweepFolder, Shown], Iterator[tuple[ToDo, CellResult | None]]]


def sweep_and_show(
    planned: Planned, calls: int, json_path: str | None, detail: Detail, engine: str, *, force: bool
) -> None:
    """Runs what is left by the engine, saying what came of each cell, and shows all that the folder holds.

    Raises TracekitError, before anything is run or written, for what keeps cells from being measured at all; and at the
    end, where none of those that were asked for has times.
    """
    folder, plan = planned.folder, planned.plan
    # Before the cells' requirements are checked, which takes seconds.
    folder.check_content()
    asked = folder.asked()
    identity, reports = identity_of_sweep(asked, ()) if asked else None, reports_of_sweep(folder.path)
    destination(f"sweep-{folder.name}", identity, reports, json_path, force=force)
    console = console_of_its_own()
    left = (*find_left(plan, folder), *find_unconfirmed(plan, folder))
    wanted = plan.cells if plan.again else tuple(dict.fromkeys(each.cell for each in left))
    with ExitStack() as held:
        cluster = held.enter_context(opened_ray(engine)) if engine != LOCAL and wanted else None
        on = reserve_gpus(cluster, plan, asked) if cluster else Reserved(1)
        modules = () if cluster else shared_modules(find(cell.request.workload) for cell in wanted)
        server = held.enter_context(closing(ForkServer(modules)))
        with shown(console) as progress:
            if doubt := check_first(wanted, progress, server.start, folder.load_all(), cluster):
                say(console, doubt)
        run = partial(run_cells_on, cluster) if cluster else partial(run_cells, server)
        _run_and_say(planned, console, engine, on, run)
    show_sweep(folder.path, calls, json_path, detail, force=force)
    found = [list(filter(None, folder.load_processes(cell.key, 1).values())) for cell in plan.cells]
    failed = sum(bool(each) and all(result.outcome != "done" for result in each) for each in found)
    again = resume_command(folder, "--retry-failed")
    if failed and failed == len(plan.cells):
        raise TracekitError(f"every cell failed, for the reasons above: fix them, then run {again}")
    if failed:
        say(console, f"{counted(failed, 'cell')} without times; retry: {again}")
    elif lost := sum(result.outcome != "done" for each in found for result in each):
        say(console, f"{counted(lost, 'process')} without times; retry: {again}")


def _run_and_say(planned: Planned, console: Console, engine: str, on: Reserved, run: Run) -> None:
    folder, plan = planned.folder, planned.plan
    folder.check()
    call = AskedCall(
        command=measuring_command_line(),
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seed=plan.seed,
        iterations=plan.iterations,
        target_percent=plan.timing.target_percent,
        budget_seconds=plan.timing.budget_seconds,
        cell_timeout_seconds=plan.cell_timeout_seconds,
        rank_timeout_seconds=plan.rank_timeout_seconds,
        engine=engine,
        processes=plan.processes,
    )
    keys = {cell.key for cell in plan.cells}
    processes = dict.fromkeys(keys, plan.processes) if plan.processes else {}
    folder.ask(planned.suite, planned.every, call, keys if plan.again else (), processes)
    if why := folder.unlocked():
        say(console, f"{folder.path} does not support file locks ({why}): run one sweep at a time in it")
    left = find_left(plan, folder)
    for line in _announced(planned, left, on):
        say(console, line)
    try:
        taken = _run_each(planned, left, console, run)
        if again := find_unconfirmed(plan, folder):
            say(console, f"{counted(len(again), 'best mode')} to measure again, in a process that did not choose it")
            taken |= _run_each(planned, again, console, run)
    except KeyboardInterrupt:
        say(console, f"finished cells are kept; to continue: {resume_command(folder)}")
        raise
    if taken:
        say(
            console,
            f"{counted(len(taken), 'cell')} left to another process; report on all: {show_command(folder.path)}",
        )


def _run_each(planned: Planned, left: tuple[ToDo, ...], console: Console, run: Run) -> set[str]:
    """Runs these, saying what came of each; the keys of cells that another process has."""
    taken = set()
    for each, result in run(planned.plan, left, planned.folder, lambda: shown(console)):
        if result is None:
            taken.add(each.cell.key)
        else:
            named = cell_words(each.cell, each.process)
            say(console, f"  {each.number}/{len(left)} {named}: {outcome_line(result)}")
    return taken


def _announced(planned: Planned, left: Sequence[ToDo], on: Reserved) -> Iterator[str]:
    """How large the matrix is, what of it is left and why, and how long that may take."""
    plan, folder = planned.plan, planned.folder
    eager = sum(cell.form == "eager" for cell in plan.cells)
    yield (
        f"{counted(len(plan.cells), 'cell')} in {folder.path}: {eager} eager, {len(plan.cells) - eager} compiled"
        f" (interleaved with eager); {_to_run(planned, left)}"
    )
    there = folder.load_all()
    yield from note_sentences(unreadable_cells(folder))
    # Why cells that are there are run once more.
    keys: dict[str, set[str]] = {}
    for each in left:
        keys.setdefault(each.why, set()).add(each.cell.key)
    if anew := keys.get("anew"):
        yield f"{counted(len(anew), 'cell')} to measure again (--again); those already repeated are kept"
    if failed := keys.get("failed"):
        yield f"{counted(len(failed), 'cell')} to retry (failed before)"
    yield from note_sentences(
        cells_of_other_versions([each for each in there if each.cell.key in keys.get("changed", ())])
    )
    yield from _otherwise(planned, left, there)
    if not left:
        return
    if on.hosts is not None:
        repeats = max(_processes_a_cell(planned, left))
        where = counted(on.hosts, "host") + (f" with {on.model}" if on.model else "")
        how = "some share a host" if repeats > on.hosts else "each on another"
        yield f"{repeats} processes a cell on {where}: {how}"
    seconds, at_once = seconds_left(tuple(left), tuple(found for found in there if found.outcome == "done")), on.gpus
    if seconds is not None:
        yield f"about {_minutes(seconds / min(at_once, len(left)))} left, estimated from the finished cells"
    else:
        rounds, most = ceil(len(left) / at_once), plan.cell_timeout_seconds
        limit = f"; at most {_minutes(most * rounds)}" if most else ""
        yield f"time left: unknown until the first cell is finished{limit}"


def _to_run(planned: Planned, left: Sequence[ToDo]) -> str:
    """`6 to run`; `14 processes to run (3 a cell)`."""
    each = _processes_a_cell(planned, left)
    if each <= {1}:
        return f"{len(left)} to run"
    return f"{counted(len(left), 'process')} to run ({'up to ' if len(each) > 1 else ''}{max(each)} a cell)"


def _processes_a_cell(planned: Planned, left: Sequence[ToDo]) -> set[int]:
    """The numbers of processes that cells are measured in: those asked for, and more of which there were before."""
    found = {cell.key: number for cell, number in processes_of(planned.plan, planned.folder.asked()).items()}
    for each in left:
        found[each.cell.key] = max(found[each.cell.key], each.process)
    return set(found.values())


def _otherwise(planned: Planned, left: Sequence[ToDo], there: Sequence[CellResult]) -> Iterator[str]:
    """How cells that will not be run were measured otherwise than is asked for now."""
    plan, asked = planned.plan, {cell.key for cell in planned.plan.cells}
    again = {(each.cell.key, each.process) for each in left}
    kept = [each for each in there if each.cell.key in asked and (each.cell.key, each.process) not in again]
    if others := {found.cell.key for found in kept if not _is_by_rule(plan, found)}:
        yield f"{counted(len(others), 'cell')} kept with another timing rule; --again measures them with this one"
    if others := {found.cell.key for found in kept if found.cell.request.seed != plan.seed}:
        yield f"{counted(len(others), 'cell')} kept with another --seed; --again measures them with {plan.seed}"
    now = steering_variables(os.environ)
    if others := {found.cell.key for found in kept if found.run is not None and found.run.settings.variables != now}:
        told = variable_words(now) or "none"
        other = f"{counted(len(others), 'cell')} kept with other torch environment variables"
        yield f"{other}; --again measures them with {told}"


def _is_by_rule(plan: SweepPlan, found: CellResult) -> bool:
    """Whether the cell was timed as one of its settings would be now; of one that never ran nobody knows."""
    if found.run is None:
        return True
    settings, then = found.run.settings, found.run.rule
    now = stopping_rule(plan.timing, Request(settings.workload, iterations=plan.iterations), settings)
    if now.rounds is not None or then.rounds is not None:
        return now.rounds == then.rounds
    return (now.target, now.budget_seconds) == (then.target, then.budget_seconds)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def outcome_line(result: CellResult) -> str:
    """What came of a cell, in one line."""
    took = f"{seconds(result.seconds)} s"
    if result.failure is not None:
        return f"{OUTCOMES[result.outcome]} after {took}: {result.failure.message}"
    cell = read_cell((result,), 1)
    if cell.compiled is None or cell.eager is None:
        return f"{milliseconds(cell.eager.median_us if cell.eager else None)} ms; took {took}"
    return (
        f"{milliseconds(cell.compiled.median_us)} ms, {speedup(cell)} vs eager,"
        f" compile time {seconds(cell.compile_seconds)} s; took {took}"
    )
