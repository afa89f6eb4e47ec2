"""What the options of `tracekit sweep` ask for: which cells, in which folder, timed how."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tracekit.asked import ON_THE_COMMAND_LINE, check_asked, check_value
from tracekit.errors import TracekitError
from tracekit.measure.plan import folder_name, plan_timing
from tracekit.model.bounded import PlaceName
from tracekit.sweep.cells import Cell
from tracekit.sweep.running.folder import ASKED, SweepFolder
from tracekit.sweep.running.matrix import expand
from tracekit.sweep.running.sweeping import SweepPlan
from tracekit.sweep.suites import find_suite
from tracekit.workloads.own_function import parse_options

#: Where sweeps lie when nobody says.
SWEEPS = Path("sweeps")
DEFAULT_MODES = ("eager", "default")
#: Characters of a folder's name made of workloads' names, before a digest stands for the rest.
LONGEST = 80
DIGEST = 8


class Ask(Struct, frozen=True):
    """The options of one `tracekit sweep`; None and empty where they were not given."""

    workloads: tuple[str, ...]
    suite: str | None
    only: tuple[str, ...]
    resume: Path | None
    out: Path | None
    axes: Mapping[str, Sequence[Any]]
    fixed: Mapping[str, Any]
    options: tuple[str, ...] = ()
    seed: int | None = None
    iterations: int | None = None
    target: float | None = None
    time_budget: float | None = None
    repeats: int | None = None
    cell_timeout: float | None = None
    timeout: float | None = None
    again: bool = False
    retry_failed: bool = False


class Planned(Struct, frozen=True):
    """What one call does: the cells of `plan`, which are some or all of `every`, in a folder."""

    folder: SweepFolder
    plan: SweepPlan
    every: tuple[Cell, ...]
    suite: str | None


def plan_sweep(ask: Ask) -> Planned:
    """What the options ask for. Raises TracekitError, before anything is run, for settings that a workload has not, and
    where not exactly one thing is asked for."""
    if sum((bool(ask.workloads), ask.suite is not None, ask.resume is not None)) != 1:
        raise TracekitError("pass exactly one of: workloads, --suite NAME (vision, quick), --resume FOLDER")
    if ask.resume is not None:
        return _resumed(ask, ask.resume)
    suite = find_suite(ask.suite) if ask.suite else None
    axes: dict[str, Sequence[Any]] = {"mode": DEFAULT_MODES}
    if suite:
        axes = {"size": (suite.size,), "batch_size": suite.batch_sizes, "mode": suite.modes}
    given = dict(ask.axes)
    if "scope" in given:
        # Commas are between cells here; in a Request they are between parts.
        parts = {scope: [name.strip() for name in scope.split("+")] for scope in given["scope"]}
        if empty := [scope for scope, names in parts.items() if not all(names)]:
            raise TracekitError(
                f"--scope {empty[0]!r} has an empty name: separate scopes to try by commas, and parts to compile"
                " together by +"
            )
        given["scope"] = tuple(map(",".join, parts.values()))
    options = parse_options(ask.options)
    fixed = {**ask.fixed, "options": options} if options else ask.fixed
    every, iterations = expand(suite.workloads if suite else ask.workloads, {**axes, **given}, fixed), ask.iterations
    if iterations is None and suite and ask.target is None and ask.time_budget is None:
        iterations = suite.iterations
    # The suite's name, or the workloads' as runs are named by them; of many the rest is a digest.
    name = ask.suite or "-".join(map(folder_name, ask.workloads))
    if len(name) > LONGEST:
        name = f"{name[:LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:DIGEST]}"
    return Planned(SweepFolder(ask.out or SWEEPS / name), _plan(ask, every, iterations), every, ask.suite)


def _plan(ask: Ask, every: tuple[Cell, ...], iterations: int | None) -> SweepPlan:
    there = dict.fromkeys(cell.request.workload for cell in every)
    for name in ask.only:
        if name not in there:
            raise TracekitError(f"--only {name}: not in this sweep; pass one of {', '.join(there)}")
    plan = SweepPlan(
        cells=tuple(cell for cell in every if not ask.only or cell.request.workload in ask.only),
        seed=ask.seed or 0,
        iterations=iterations,
        timing=plan_timing(iterations is not None, ask.target, ask.time_budget, 0, False),
        cell_timeout_seconds=ask.cell_timeout,
        rank_timeout_seconds=ask.timeout,
        again=ask.again,
        retry_failed=ask.retry_failed,
        processes=ask.repeats,
    )
    check_value("--out ", str(ask.out or ""), PlaceName)
    for asked in (plan, *(cell.request for cell in every)):
        check_asked(asked, ON_THE_COMMAND_LINE)
    return plan


def _resumed(ask: Ask, path: Path) -> Planned:
    """What was asked in that folder, by the rule of the last call that asked; options that are given go before it."""
    given = [*ask.axes, *ask.fixed, *(["out"] if ask.out else [])]
    words = [f"--{name.replace('_', '-')}" for name in given] + (["-- " + " ".join(ask.options)] if ask.options else [])
    if words:
        raise TracekitError(f"--resume continues with the settings of the sweep: leave {', '.join(words)} out")
    folder = SweepFolder(path)
    asked = folder.asked() if path.is_dir() else None
    if asked is None:
        raise TracekitError(f"{path} holds no {ASKED}: pass a folder that `tracekit sweep` wrote")
    last = asked.calls[-1]
    timed = ask.iterations is not None or ask.target is not None or ask.time_budget is not None
    again = replace(
        ask,
        seed=last.seed if ask.seed is None else ask.seed,
        target=ask.target if timed else last.target_percent,
        time_budget=ask.time_budget if timed else last.budget_seconds,
        cell_timeout=ask.cell_timeout or last.cell_timeout_seconds,
        timeout=ask.timeout or last.rank_timeout_seconds,
    )
    plan = _plan(again, asked.cells, ask.iterations if timed else last.iterations)
    return Planned(folder, plan, asked.cells, asked.suite)
