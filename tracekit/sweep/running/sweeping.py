"""Running a sweep's cells: each in a process of its own, saved as it ends; what fails is a result and stops nothing."""

import datetime
import os
import platform
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from statistics import mean
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tracekit import __version__
from tracekit.errors import KilledRankError, TracekitError
from tracekit.measure.plan import RANKS_SECONDS, TimingPlan, jobs_wing
from tracekit.measure.processes import Ended, caches_in, run_module
from tracekit.model.bounded import Calls, Patience, Whole
from tracekit.model.cell import CellJob, CellRun
from tracekit.model.progress import Progress
from tracekit.model.run import FormName
from tracekit.numbers import counted
from tracekit.report.words.progress import exit_words
from tracekit.sweep.cells import CONFIRMING, Asked, Cell, CellAnswer, CellFailure, CellOutcome, CellResult, Processes
from tracekit.sweep.figures import COMPETING
from tracekit.sweep.reading.works import read_sweep
from tracekit.sweep.running.cell_process import LAST_LINES, describe_failure
from tracekit.sweep.running.folder import SweepFolder, changed_sources, is_outdated
from tracekit.sweep.running.fork_server import ForkServer
from tracekit.wings import load
from tracekit.wire import decode, encode
from tracekit.workloads.registry import find

MODULE = "tracekit.sweep.running.cell_process"

#: Shows the progress of one cell for as long as the block lasts.
Shown = Callable[[], AbstractContextManager[Progress]]
#: Why a cell is to be run: nothing came of it yet; `--again` asked for it since; it failed and is to be tried again;
#: what its model is made of is another one now.
Why = Literal["missing", "anew", "failed", "changed"]


class SweepPlan(Struct, frozen=True):
    """What one `tracekit sweep` is to do. `again` runs cells that are there anew, `retry_failed` those that failed.
    `processes` is in how many each cell is measured; None leaves it to what the folder knows."""

    cells: tuple[Cell, ...]
    seed: Whole
    iterations: Calls | None
    timing: TimingPlan
    cell_timeout_seconds: Patience | None = None
    rank_timeout_seconds: Patience | None = None
    again: bool = False
    retry_failed: bool = False
    processes: Processes | None = None


class ToDo(Struct, frozen=True):
    """A process of a cell to run, its number among those of this call, why, and when what is there was measured."""

    cell: Cell
    number: int
    seen: str | None
    why: Why = "missing"
    process: int = 1


def measured_as(plan: SweepPlan, cell: Cell) -> Cell:
    """The cell with what the plan says of all."""
    return replace(cell, request=replace(cell.request, seed=plan.seed, iterations=plan.iterations))


def processes_of(plan: SweepPlan, asked: Asked | None) -> dict[Cell, int]:
    """In how many processes each cell of the plan is to be measured."""
    known = asked.processes if asked else {}
    return {cell: plan.processes or known.get(cell.key, 1) for cell in plan.cells}


def find_left(plan: SweepPlan, folder: SweepFolder) -> tuple[ToDo, ...]:
    """The cells to run, in an order that the seed draws: no mode has the cool machine for itself. Each is run once
    before any is again. What `--again` and `--repeat-process` asked for before the folder knows (`SweepFolder.ask`)."""
    asked = folder.asked()
    since = asked.anew_since if asked else {}
    left: list[ToDo] = []
    for cell, number in processes_of(plan, asked).items():
        for process, found in folder.load_processes(cell.key, number).items():
            if why := why_to_run(plan, found, since.get(cell.key)):
                left.append(ToDo(cell, 0, found.started if found else None, why, process))
    random.Random(plan.seed).shuffle(left)
    left.sort(key=lambda each: each.process)
    return tuple(replace(each, number=number) for number, each in enumerate(left, 1))


def why_to_run(plan: SweepPlan, found: CellResult | None, since: str | None) -> Why | None:
    """Why a process is to be run of which this is there; None where it is not. `since` is when it was asked for
    anew."""
    if found is None:
        return "missing"
    if is_outdated(found, since):
        return "anew"
    if plan.retry_failed and found.outcome != "done":
        return "failed"
    return "changed" if changed_sources(found) else None


def find_unconfirmed(plan: SweepPlan, folder: SweepFolder) -> tuple[ToDo, ...]:
    """The best of each work of the plan that has all its cells, where enough modes compete. What was measured again
    stays, unless another mode is the best now: nothing is chosen by it."""
    asked = folder.asked()
    cells = {cell.key: cell for cell in (*plan.cells, *(asked.cells if asked else ()))}
    modes = Counter(cell.work for cell in cells.values() if cell.form == "compiled")
    works = {cell.work for cell in plan.cells if modes[cell.work] >= COMPETING}
    if not works:
        return ()
    # A cell that failed takes no part: it need not be tried again first. In how many processes the folder knows.
    every = tuple(cell for cell in cells.values() if cell.work in works)
    whole = replace(plan, cells=every, retry_failed=False, processes=None)
    works -= {each.cell.work for each in find_left(whole, folder)}
    results = [each for each in folder.load_all() if each.cell.work in works]
    sweep = read_sweep(folder.name, asked, results, None, 1)
    since = asked.anew_since if asked else {}
    left: list[ToDo] = []
    for key in dict.fromkeys(best.to_confirm for work in sweep.works for best in work.best):
        found = folder.load(key, CONFIRMING) if key else None
        if key and (why := why_to_run(plan, found, since.get(key))):
            left.append(ToDo(cells[key], len(left) + 1, found.started if found else None, why, CONFIRMING))
    return tuple(left)


def run_cells(
    server: ForkServer | None, plan: SweepPlan, left: tuple[ToDo, ...], folder: SweepFolder, shown: Shown
) -> Iterator[tuple[ToDo, CellResult | None]]:
    """Runs each cell and saves it; gives it back with its result, None where another process has it. Without a
    fork server processes are fresh ones."""
    for each in left:
        with folder.claimed(each.cell.key, each.process) as ours:
            there = folder.load(each.cell.key, each.process)
            if not ours or (there.started if there else None) != each.seen:
                # Another process works on it, or has since this one looked.
                yield each, None
                continue
            # What runs on several GPUs disturbs whatever runs beside it, and is disturbed.
            with folder.turn(alone=each.cell.request.nproc is not None), cell_place() as place:
                with shown() as progress:
                    result = run_cell(plan, each, len(left), Path(place), progress, server)
                # Before anything is cleared away: what was measured is safe first.
                folder.save(result)
        yield each, result


def run_cell(
    plan: SweepPlan, each: ToDo, of: int, place: Path, progress: Progress, server: ForkServer | None = None
) -> CellResult:
    """What came of the cell, in a process whose caches are in an empty place; what goes wrong there is no exception
    here."""
    progress.phase(f"{each.number}/{of} {cell_words(each.cell, each.process)}", still=True)
    cell = measured_as(plan, each.cell)
    drawn = f"{plan.seed} {cell.key}" if each.process == 1 else f"{plan.seed} {cell.key} {each.process}"
    order = random.Random(drawn).randrange(2**31)
    forms: tuple[FormName, ...] = ("eager",) if cell.form == "eager" else ("eager", "compiled")
    job = CellJob(cell.request, forms, plan.timing.target_percent, plan.timing.budget_seconds, order)
    load, _, _ = os.getloadavg()
    started, began = datetime.datetime.now(datetime.UTC), time.monotonic()
    limit = plan.cell_timeout_seconds
    if cell.request.nproc:
        run, failure = _run_ranks(
            job, cell.request.nproc, limit, place, progress, plan.rank_timeout_seconds or RANKS_SECONDS
        )
    else:
        run, failure = _run_alone(job, limit, place, progress, server)
    outcome = failure.kind if failure else "done"
    when, seconds = started.isoformat(timespec="microseconds"), time.monotonic() - began
    return CellResult(
        "tracekit.sweep-cell/1",
        __version__,
        cell,
        outcome,
        when,
        seconds,
        run,
        failure,
        host_load=load,
        host=platform.node(),
        process=each.process,
    )


def _run_alone(
    job: CellJob, limit: float | None, place: Path, progress: Progress, server: ForkServer | None
) -> tuple[CellRun | None, CellFailure | None]:
    start = None
    # A file of the user's own that has gone since: the cell's process says so, and the others are run.
    with suppress(TracekitError):
        start = server.start_of(find(job.request.workload)) if server else None
    ended = run_module(
        MODULE,
        encode(job),
        place,
        caches_in(place),
        limit_seconds=limit,
        on_word=progress.detail,
        start=start,
    )
    if ended.answer is None:
        return _left_by(ended, limit)
    answer = decode(ended.answer, CellAnswer)
    failure = answer.failure
    # An error that says no more than its line: what was printed before it may.
    lines = ended.lines[-LAST_LINES:]
    return answer.run, replace(failure, last_lines=failure.last_lines or lines) if failure else None


def _run_ranks(
    job: CellJob, nproc: int, limit: float | None, place: Path, progress: Progress, timeout_seconds: float
) -> tuple[CellRun | None, CellFailure | None]:
    """What came of a cell of several ranks, which rank 0 tells; and what failed, on the rank where it did."""
    ended: Ended
    error: TracekitError | None
    ended, error, out_of_memory = load(jobs_wing().time_cell)(
        job, nproc, place, timeout_seconds, limit_seconds=limit, on_word=progress.detail
    )
    run, lost = _left_by(ended, limit)
    if lost or error is None:
        return run, lost
    failure = describe_failure(error, ended.word)
    kind: CellOutcome = "killed" if isinstance(error, KilledRankError) else failure.kind
    kind = "out_of_memory" if out_of_memory else kind
    return run, replace(failure, kind=kind, last_lines=failure.last_lines or ended.lines[-LAST_LINES:])


def _left_by(ended: Ended, limit: float | None) -> tuple[CellRun | None, CellFailure | None]:
    """What a process had found out when it ended, and why it gave no answer; None where it did."""
    run = decode(ended.part, CellRun) if ended.part is not None else None
    if ended.answer is not None:
        return run, None
    lines = ended.lines[-LAST_LINES:]
    if ended.late:
        return run, CellFailure("timed_out", f"timed out after {limit or 0.0:g} s (--cell-timeout)", ended.word, lines)
    message = f"the process ended without a result: {exit_words(ended.code)}"
    return run, CellFailure("killed" if ended.code < 0 else "failed", message, ended.word, lines)


def cell_place() -> tempfile.TemporaryDirectory[str]:
    """An empty folder for one cell, on the machine's own disk. What somebody still writes there stays and is no
    error."""
    return tempfile.TemporaryDirectory(prefix="tracekit-cell-", ignore_cleanup_errors=True)


def seconds_left(left: tuple[ToDo, ...], done: tuple[CellResult, ...]) -> float | None:
    """How long these cells will take, going by those of the same workload, form and number of ranks that are done, else
    by all of them; None where there are none to go by."""
    if not done:
        return None
    every, kinds = mean(found.seconds for found in done), defaultdict[tuple[object, ...], list[float]](list)
    for found in done:
        kinds[found.cell.request.workload, found.cell.form, found.cell.request.nproc].append(found.seconds)
    alike = (kinds.get((each.cell.request.workload, each.cell.form, each.cell.request.nproc), [every]) for each in left)
    return sum(map(mean, alike))


def cell_words(cell: Cell, process: int = 1) -> str:
    """`flux batch 5, 512x512, reduce-overhead of regional, process 2`: what tells it from the other cells."""
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
    parts += [counted(asked.nproc, "rank")] if asked.nproc else []
    parts += [asked.parallel] if asked.parallel else []
    parts += asked.options
    parts.append("eager" if cell.form == "eager" else f"{asked.mode} of {asked.scope}")
    which = "measured again" if process == CONFIRMING else f"process {process}" if process > 1 else ""
    return ", ".join(filter(None, (*parts, which)))
