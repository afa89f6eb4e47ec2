"""Running a sweep's cells: each in a process of its own, saved as it ends; what fails is a result and stops nothing."""

import datetime
import os
import platform
import random
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
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
from tracekit.sweep.cells import Asked, Cell, CellAnswer, CellFailure, CellOutcome, CellResult, Processes
from tracekit.sweep.running.cell_process import describe_failure
from tracekit.sweep.running.folder import SweepFolder, changed_sources, is_outdated, process_lock
from tracekit.sweep.running.fork_server import ForkServer
from tracekit.sweep.running.progress_words import cell_timed_out, cell_without_answer, cell_words
from tracekit.wings import load
from tracekit.wire import decode, encode
from tracekit.workloads.registry import find

MODULE = "tracekit.sweep.running.cell_process"
#: Of what a process printed that gave no answer, so many lines are kept.
LAST_LINES = 30
#: What folders of cells' caches are called, and the lock in each that the sweep holds as long as it needs it.
PREFIX = "tracekit-cell-"
LOCK = "lock"

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


def run_cells(
    plan: SweepPlan, left: tuple[ToDo, ...], folder: SweepFolder, shown: Shown, server: ForkServer | None = None
) -> Iterator[tuple[ToDo, CellResult | None]]:
    """Runs each cell and saves it; gives it back with its result, None where another process has it. Without a
    fork server processes are fresh ones."""
    clear_dead_places()
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
                    result = run_cell(plan, each, len(left), place, progress, server)
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
    job = CellJob(cell.request, cell.forms, plan.timing.target_percent, plan.timing.budget_seconds, order)
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
        return _until_then(ended), _without_answer(ended, limit)
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
    run = _until_then(ended)
    if ended.answer is None:
        return run, _without_answer(ended, limit)
    if error is None:
        return run, None
    failure = describe_failure(error, ended.word)
    kind: CellOutcome = "killed" if isinstance(error, KilledRankError) else failure.kind
    kind = "out_of_memory" if out_of_memory else kind
    return run, replace(failure, kind=kind, last_lines=failure.last_lines or ended.lines[-LAST_LINES:])


def _until_then(ended: Ended) -> CellRun | None:
    return decode(ended.part, CellRun) if ended.part is not None else None


def _without_answer(ended: Ended, limit: float | None) -> CellFailure:
    lines = ended.lines[-LAST_LINES:]
    if ended.late:
        return CellFailure("timed_out", cell_timed_out(limit or 0.0), ended.word, lines)
    kind: CellOutcome = "killed" if ended.code < 0 else "failed"
    return CellFailure(kind, cell_without_answer(ended.code), ended.word, lines)


def seconds_left(left: tuple[ToDo, ...], done: tuple[CellResult, ...]) -> float | None:
    """How long these cells will take, going by those of the same workload, form and number of ranks that are done, else
    by all of them; None where there are none to go by."""
    if not done:
        return None
    seconds = defaultdict(list)
    for found in done:
        seconds[_kind(found.cell)].append(found.seconds)
    every = mean(found.seconds for found in done)
    return sum(mean(seconds.get(_kind(each.cell), [every])) for each in left)


def _kind(cell: Cell) -> tuple[str, str, int | None]:
    return cell.request.workload, cell.form, cell.request.nproc


@contextmanager
def cell_place() -> Iterator[Path]:
    """An empty folder for one cell, on the machine's own disk. What somebody still writes there stays and is no error:
    the next sweep clears it away."""
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as text, ExitStack() as held:
        place = Path(text)
        with suppress(OSError):
            held.enter_context(process_lock(place / f".{LOCK}"))
            # Under its name only now: nobody finds it unlocked while its owner lives.
            (place / f".{LOCK}").rename(place / LOCK)
        yield place


def clear_dead_places() -> None:
    """Removes what killed sweeps of this user left: folders whose lock nobody holds any more. Where that cannot be
    known they stay."""
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if place.is_symlink() or place.stat().st_uid != os.getuid() or not (place / LOCK).is_file():
                continue
            with process_lock(place / LOCK).acquire(blocking=False):
                shutil.rmtree(place, ignore_errors=True)
