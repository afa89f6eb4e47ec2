"""Running a sweep's cells: each in a process of its own, saved as it ends; what fails is a result and stops nothing."""

from __future__ import annotations

import datetime
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from tracekit import __version__
from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.sweep import Cell, CellAnswer, CellFailure, CellJob, CellOutcome, CellResult, CellRun
from tracekit.walks.cell_caches import caches_in, cell_place, clear_dead_places
from tracekit.walks.forked import Zygote
from tracekit.walks.matrix import with_seed
from tracekit.walks.processes import Ended, Start, describe_ending, run_module
from tracekit.walks.sweep_folder import SweepFolder, is_outdated
from tracekit.walks.timing_plan import TimingPlan
from tracekit.workloads.registry import find
from tracekit.workloads.sources import find_changed

CHILD = "tracekit.walks.cell_child"
#: Of what a process printed that gave no answer, so many lines are kept.
LAST_LINES = 30
#: What Linux sends to a process when the machine runs out of memory, and anybody else may.
SIGKILL = -9

#: Shows the progress of one cell for as long as the block lasts.
Shown = Callable[[], AbstractContextManager[Progress]]


#: Why a cell is to be run: nothing came of it yet; `--again` asked for it since; it failed and is to be tried again;
#: what its model is made of is another one now.
Why = Literal["missing", "anew", "failed", "changed"]


@dataclass(frozen=True)
class SweepPlan:
    """What one `tracekit sweep` is to do. `again` runs cells that are there anew, `retry_failed` those that failed."""

    cells: tuple[Cell, ...]
    seed: int
    iterations: int | None
    timing: TimingPlan
    cell_timeout_seconds: float | None = None
    again: bool = False
    retry_failed: bool = False


@dataclass(frozen=True, slots=True)
class ToDo:
    """A cell to run, its number among those of this call, why, and when what is there of it was measured."""

    cell: Cell
    number: int
    seen: str | None
    why: Why = "missing"


def find_left(plan: SweepPlan, folder: SweepFolder) -> tuple[ToDo, ...]:
    """The cells to run, in an order that the seed draws: no mode has the cool machine for itself. What `--again` asks
    for the folder knows (`SweepFolder.ask`)."""
    asked = folder.asked()
    since = asked.anew_since if asked else {}
    there = {cell.key: folder.load(cell.key) for cell in plan.cells}
    wanted = {key: why for key, found in there.items() if (why := why_wanted(plan, found, since.get(key)))}
    cells = [cell for cell in plan.cells if cell.key in wanted]
    random.Random(plan.seed).shuffle(cells)
    seen = {key: found.started if found else None for key, found in there.items()}
    return tuple(ToDo(cell, number, seen[cell.key], wanted[cell.key]) for number, cell in enumerate(cells, 1))


def why_wanted(plan: SweepPlan, found: CellResult | None, since: str | None) -> Why | None:
    """Why a cell of which this is there is to be run; None where it is not. `since` is when it was asked for anew."""
    if found is None:
        return "missing"
    if is_outdated(found, since):
        return "anew"
    if plan.retry_failed and found.outcome != "done":
        return "failed"
    return "changed" if changed_sources(found) else None


def is_due(found: CellResult, since: str | None) -> bool:
    """Whether going on with a sweep measures a cell anew that is there; `since` as above."""
    return is_outdated(found, since) or bool(changed_sources(found))


def changed_sources(found: CellResult) -> tuple[str, ...]:
    """What of the files that the cell's model was made of is otherwise now."""
    sources = found.run.sources if found.run else None
    return find_changed(found.cell.request.workload, sources) if sources else ()


def run_cells(
    plan: SweepPlan, left: tuple[ToDo, ...], folder: SweepFolder, shown: Shown, zygote: Zygote | None = None
) -> Iterator[tuple[ToDo, CellResult | None]]:
    """Runs each cell and saves it; gives it back with its result, None where another process has it. Without a
    zygote processes are fresh ones."""
    clear_dead_places()
    for each in left:
        with folder.claimed(each.cell.key) as ours:
            there = folder.load(each.cell.key)
            is_new = (there.started if there else None) != each.seen
            if not ours or is_new:
                # Another process works on it, or has since this one looked.
                yield each, None
                continue
            with cell_place() as place:
                with shown() as progress:
                    result = run_cell(plan, each, len(left), place, progress, zygote)
                # Before anything is cleared away: what was measured is safe first.
                folder.save(result)
        yield each, result


def run_cell(
    plan: SweepPlan, each: ToDo, of: int, place: Path, progress: Progress, zygote: Zygote | None = None
) -> CellResult:
    """What came of the cell, in a process whose caches are in an empty place; what goes wrong there is no exception
    here."""
    progress.phase(f"{each.number}/{of} {describe_cell(each.cell)}", still=True)
    cell = with_seed(each.cell, plan.seed, plan.iterations)
    order = random.Random(f"{plan.seed} {cell.key}").randrange(2**31)
    job = CellJob(cell.request, cell.forms, plan.timing.target_percent, plan.timing.budget_seconds, order)
    load, _, _ = os.getloadavg()
    started, began = datetime.datetime.now(datetime.UTC), time.monotonic()
    ended = run_module(
        CHILD,
        msgspec.json.encode(job),
        place,
        caches_in(place),
        limit_seconds=plan.cell_timeout_seconds,
        on_word=progress.detail,
        start=_start(zygote, cell.request.workload) if zygote else None,
    )
    answer = _answer(ended, plan)
    return CellResult(
        schema="tracekit.sweep-cell/1",
        tracekit=__version__,
        cell=cell,
        outcome=answer.failure.kind if answer.failure else "done",
        started=started.isoformat(timespec="microseconds"),
        seconds=time.monotonic() - began,
        run=answer.run,
        failure=answer.failure,
        host_load=load,
    )


def _start(zygote: Zygote, workload: str) -> Start | None:
    try:
        return zygote.start_of(find(workload))
    except TracekitError:
        # A file of the user's own that has gone since: the cell's process says so, and the others are run.
        return None


def _answer(ended: Ended, plan: SweepPlan) -> CellAnswer:
    lines = ended.lines[-LAST_LINES:]
    if ended.answer is not None:
        answer = msgspec.json.decode(ended.answer, type=CellAnswer)
        if answer.failure is None or answer.failure.last_lines:
            return answer
        # An error that says no more than its line: what was printed before it may.
        return replace(answer, failure=replace(answer.failure, last_lines=lines))
    run = msgspec.json.decode(ended.part, type=CellRun) if ended.part is not None else None
    if ended.late:
        limit = plan.cell_timeout_seconds or 0.0
        message = f"not done after {limit:g} s (--cell-timeout)"
        return CellAnswer(run, CellFailure("timed_out", message, ended.word, lines))
    kind: CellOutcome = "killed" if ended.code < 0 else "failed"
    message = f"its process gave no answer ({describe_ending(ended.code)})"
    if ended.code == SIGKILL:
        message += ": the machine may have run out of memory"
    return CellAnswer(run, CellFailure(kind, message, ended.word, lines))


def describe_cell(cell: Cell) -> str:
    """`flux batch 5, 512x512, reduce-overhead of regional`: what tells it from the other cells."""
    asked = cell.request
    parts = [f"{asked.workload} batch {asked.batch_size}"]
    parts += [f"{asked.height}x{asked.width}" if asked.width else f"height {asked.height}"] if asked.height else []
    parts += [f"{asked.seq_length} tokens"] if asked.seq_length else []
    parts += [f"{asked.steps} steps"] if asked.steps else []
    parts += [asked.size] if asked.size != "auto" else []
    parts += [asked.dtype] if asked.dtype else []
    parts += [f"{asked.cache} cache"] if asked.cache else []
    parts += [asked.phase] if asked.phase else []
    parts += [f"{asked.max_new_tokens} new tokens"] if asked.max_new_tokens else []
    parts += asked.options
    return ", ".join([*parts, "eager" if cell.form == "eager" else f"{asked.mode} of {asked.scope}"])


def seconds_left(left: tuple[ToDo, ...], done: tuple[CellResult, ...]) -> float | None:
    """How long these cells will take, going by those of the same workload and form that are done, else by all of them;
    None where there are none to go by."""
    if not done:
        return None
    every = _mean(done)
    total = 0.0
    for each in left:
        alike = [
            found
            for found in done
            if (found.cell.request.workload, found.cell.form) == (each.cell.request.workload, each.cell.form)
        ]
        total += _mean(alike) if alike else every
    return total


def _mean(found: list[CellResult] | tuple[CellResult, ...]) -> float:
    return sum(each.seconds for each in found) / len(found)
