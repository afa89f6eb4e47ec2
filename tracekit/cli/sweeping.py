"""What `tracekit sweep` is asked, what it shows while it runs, and after."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracekit.cli.output import command_line, console_beside, say, write_json
from tracekit.comparison.sweeping import read_sweep
from tracekit.errors import TracekitError
from tracekit.model.suite import Suite
from tracekit.model.sweep import AskedCall, Cell, CellResult
from tracekit.model.sweep_figures import Sweep
from tracekit.walks.files import write_file
from tracekit.walks.matrix import expand
from tracekit.walks.progress import console_of_its_own, shown
from tracekit.walks.sweep_folder import ASKED, SweepFolder, is_sweep
from tracekit.walks.sweeping import SweepPlan, ToDo, describe_cell, find_left, run_cells, seconds_left
from tracekit.walks.timing import plan_timing
from tracekit.workloads.suites import find_suite

if TYPE_CHECKING:
    from rich.console import Console

#: Where sweeps lie when nobody says.
SWEEPS = Path("sweeps")
REPORTS = Path("reports")
DEFAULT_MODES = ("eager", "default")


@dataclass(frozen=True)
class Ask:
    """The options of one `tracekit sweep`; None and empty where they were not given."""

    workloads: tuple[str, ...]
    suite: str | None
    only: tuple[str, ...]
    resume: Path | None
    out: Path | None
    axes: Mapping[str, Sequence[Any]]
    fixed: Mapping[str, Any]
    seed: int | None = None
    iterations: int | None = None
    target: float | None = None
    time_budget: float | None = None
    cell_timeout: float | None = None
    again: bool = False
    retry_failed: bool = False


@dataclass(frozen=True)
class Planned:
    """What one call does: the cells of `plan`, which are some or all of `every`, in a folder."""

    folder: SweepFolder
    plan: SweepPlan
    every: tuple[Cell, ...]
    suite: str | None


def plan_sweep(ask: Ask) -> Planned:
    """What the options ask for. Raises TracekitError, before anything is run, for settings that a workload has not, and
    where not exactly one thing is asked for."""
    if sum((bool(ask.workloads), ask.suite is not None, ask.resume is not None)) != 1:
        raise TracekitError("name workloads to sweep, or --suite NAME (vision, quick), or --resume FOLDER: one of them")
    if ask.resume is not None:
        return _resumed(ask, ask.resume)
    suite = find_suite(ask.suite) if ask.suite else None
    every, iterations = _cells(ask, suite), ask.iterations
    if iterations is None and suite and ask.target is None and ask.time_budget is None:
        iterations = suite.iterations
    return Planned(SweepFolder(ask.out or SWEEPS / _name(ask)), _plan(ask, every, iterations), every, ask.suite)


def _name(ask: Ask) -> str:
    words = (Path(each).name.replace(":", "-") for each in ask.workloads)
    return ask.suite or "-".join(words)


def _cells(ask: Ask, suite: Suite | None) -> tuple[Cell, ...]:
    axes: dict[str, Sequence[Any]] = {"mode": DEFAULT_MODES}
    if suite:
        axes = {"size": (suite.size,), "batch_size": suite.batch_sizes, "mode": suite.modes}
    return expand(suite.workloads if suite else ask.workloads, {**axes, **ask.axes}, ask.fixed)


def _plan(ask: Ask, every: tuple[Cell, ...], iterations: int | None) -> SweepPlan:
    return SweepPlan(
        cells=_only(every, ask.only),
        seed=ask.seed or 0,
        iterations=iterations,
        timing=plan_timing(iterations is not None, ask.target, ask.time_budget, 0, False),
        cell_timeout_seconds=ask.cell_timeout,
        again=ask.again,
        retry_failed=ask.retry_failed,
    )


def _only(every: tuple[Cell, ...], workloads: tuple[str, ...]) -> tuple[Cell, ...]:
    there = dict.fromkeys(cell.request.workload for cell in every)
    for name in workloads:
        if name not in there:
            raise TracekitError(f"--only {name}: this sweep has no such workload; it has {', '.join(there)}")
    return tuple(cell for cell in every if not workloads or cell.request.workload in workloads)


def _resumed(ask: Ask, path: Path) -> Planned:
    """What was asked in that folder, by the rule of the last call that asked; options that are given go before it."""
    given = [*ask.axes, *ask.fixed, *(["out"] if ask.out else [])]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise TracekitError(f"--resume goes on with what was asked for: leave {options} out")
    folder = SweepFolder(path)
    asked = folder.asked() if path.is_dir() else None
    if asked is None:
        raise TracekitError(f"{path} holds no {ASKED}: name a folder that `tracekit sweep` made")
    last = asked.calls[-1]
    timed = ask.iterations is not None or ask.target is not None or ask.time_budget is not None
    again = replace(
        ask,
        seed=last.seed if ask.seed is None else ask.seed,
        target=ask.target if timed else last.target_percent,
        time_budget=ask.time_budget if timed else last.budget_seconds,
        cell_timeout=ask.cell_timeout or last.cell_timeout_seconds,
    )
    plan = _plan(again, asked.cells, ask.iterations if timed else last.iterations)
    return Planned(folder, plan, asked.cells, asked.suite)


def sweep_and_show(planned: Planned, calls: int, json_path: str | None) -> None:
    """Runs what is left, saying what came of each cell, and shows all that the folder holds."""
    folder, plan = planned.folder, planned.plan
    folder.check()
    folder.ask(planned.suite, planned.every, _call(plan))
    console = console_of_its_own()
    if why := folder.unlocked():
        say(console, f"nothing can be locked in {folder.path} ({why}): run one sweep at a time there")
    left = find_left(plan, folder)
    for line in _announced(planned, left):
        say(console, line)
    try:
        elsewhere = _run(plan, left, folder, console)
    except KeyboardInterrupt:
        say(console, f"stopped; what is done is kept. To go on: {_resume_command(folder)}")
        raise
    if elsewhere:
        say(console, f"{_cells_word(elsewhere)} are another process's; to see all: tracekit sweep --show {folder.path}")
    show_sweep(folder.path, calls, json_path)


def _run(plan: SweepPlan, left: tuple[ToDo, ...], folder: SweepFolder, console: Console) -> int:
    """Runs the cells; returns how many another process took."""
    elsewhere = 0
    for each, result in run_cells(plan, left, folder, lambda: shown(console)):
        elsewhere += result is None
        if result is not None:
            say(console, f"  {each.number}/{len(left)} {describe_cell(each.cell)}: {outcome_line(result)}")
    return elsewhere


def _call(plan: SweepPlan) -> AskedCall:
    return AskedCall(
        command=command_line(),
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seed=plan.seed,
        iterations=plan.iterations,
        target_percent=plan.timing.target_percent,
        budget_seconds=plan.timing.budget_seconds,
        cell_timeout_seconds=plan.cell_timeout_seconds,
    )


def _resume_command(folder: SweepFolder) -> str:
    return shlex.join(["tracekit", "sweep", "--resume", str(folder.path)])


def _announced(planned: Planned, left: tuple[ToDo, ...]) -> Iterator[str]:
    """How large the matrix is, what of it is left, and how long that may take."""
    cells = planned.plan.cells
    eager = sum(cell.form == "eager" for cell in cells)
    yield (
        f"{_cells_word(len(cells))} in {planned.folder.path}: {eager} eager, {len(cells) - eager} compiled with eager"
        f" beside it; {len(left)} to run"
    )
    there = planned.folder.load_all()
    if others := _by_other_rules(planned.plan, there):
        yield f"{_cells_word(others)} of these were timed by another rule before; --again runs them by this one"
    if not left:
        return
    done = tuple(found for found in there if found.outcome == "done")
    seconds = seconds_left(left, done)
    limit = planned.plan.cell_timeout_seconds
    yield (
        f"about {_minutes(seconds)}, going by those that are done"
        if seconds is not None
        else "how long that takes is not known before the first is done"
        + (f"; at most {_minutes(limit * len(left))}" if limit else "")
    )


def _by_other_rules(plan: SweepPlan, there: tuple[CellResult, ...]) -> int:
    """How many cells that will not be run made another number of calls than is asked for now."""
    keys = {cell.key for cell in plan.cells}
    kept = [found for found in there if found.cell.key in keys and not plan.wants(found)]
    return sum(found.run is not None and found.run.rule.rounds != plan.iterations for found in kept)


def _cells_word(number: int) -> str:
    return f"{number} cell{'' if number == 1 else 's'}"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def outcome_line(result: CellResult) -> str:
    """What came of a cell, in one line."""
    from tracekit.comparison.sweeping.cells import read_cell
    from tracekit.report.sweep.words import OUTCOMES, milliseconds, seconds, speedup

    took = f"{seconds(result.seconds)} s"
    if result.failure is not None:
        return f"{OUTCOMES[result.outcome]} after {took}: {result.failure.message}"
    cell = read_cell(result, 1)
    if cell.compiled is None or cell.eager is None:
        return f"{milliseconds(cell.eager.median_us if cell.eager else None)} ms; took {took}"
    return (
        f"{milliseconds(cell.eager.median_us)} to {milliseconds(cell.compiled.median_us)} ms, {speedup(cell)},"
        f" compiling {seconds(cell.compile_seconds)} s; took {took}"
    )


def show_sweep(path: Path, calls: int, json_path: str | None) -> None:
    """Shows and writes what the folder holds. Raises TracekitError for a folder that is no sweep's, or is empty."""
    from tracekit.report.sweep.contract import sweep_json
    from tracekit.report.sweep.markdown import sweep_markdown
    from tracekit.report.sweep.page import sweep_page
    from tracekit.report.sweep.terminal import sweep_summary

    console = console_beside(json_path)
    found = load_sweep(path, calls)
    command = _resume_command(SweepFolder(path))
    page, twin = REPORTS / f"sweep-{found.name}.html", REPORTS / f"sweep-{found.name}.md"
    write_file(page, sweep_page(found, command))
    write_file(twin, sweep_markdown(found, command))
    console.print(sweep_summary(found))
    for written in (page, twin):
        say(console, f"written: {written}")
    write_json(sweep_json(found), json_path)


def load_sweep(path: Path, calls: int) -> Sweep:
    """What the folder's cells say. Raises TracekitError for a folder that is no sweep's, or is empty."""
    if not is_sweep(path):
        raise TracekitError(f"{path} is no sweep's folder: name one that `tracekit sweep` made")
    folder = SweepFolder(path)
    results, asked = folder.load_all(), folder.asked()
    if not results:
        raise TracekitError(f"{path} holds no cells yet: {_resume_command(folder)} runs them")
    suite = find_suite(asked.suite) if asked and asked.suite else None
    return read_sweep(folder.name, asked, results, suite, calls)
