"""A sweep's cells on the GPUs of a Ray cluster: one cell a GPU at a time, each saved here as it ends."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from concurrent.futures import Future, as_completed
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tracekit import __version__
from tracekit.errors import TracekitError, WorkerDiedError
from tracekit.model.progress import Silent
from tracekit.model.sweep import CellFailure, CellResult
from tracekit.report.words.noted import MEASURING_CELLS
from tracekit.shell import steering_variables
from tracekit.walks.sweeping import ToDo, cell_place, clear_dead_places, measured_as, run_cell

if TYPE_CHECKING:
    from tracekit.walks.ray_engine import RayExecutor
    from tracekit.walks.sweep_folder import SweepFolder
    from tracekit.walks.sweeping import Shown, SweepPlan

#: Ray sets it to the number of CPUs that a task asks for: without Ray it is the user's.
THREADS = "OMP_NUM_THREADS"


def reserve_gpus(cluster: RayExecutor, plan: SweepPlan) -> int:
    """How many cells the cluster runs at a time: each has a GPU of its own, and its share of the host's CPUs. Raises
    TracekitError where it has no GPU, and for cells of several ranks."""
    if any(cell.request.nproc for cell in plan.cells):
        raise TracekitError("--engine ray gives each cell one GPU: leave --nproc out, or measure without --engine")
    gpus = cluster.per_node("GPU")
    shares = [int(cpus / of) for cpus, of in zip(cluster.per_node("CPU"), gpus, strict=True) if of]
    if not shares:
        raise TracekitError("the Ray cluster has no GPU now: add a node with one, or leave --engine out")
    cluster.ask_for(cpus=max(1, min(shares)), gpus=1)
    return int(sum(gpus))


def run_cells_on(
    cluster: RayExecutor, plan: SweepPlan, left: tuple[ToDo, ...], folder: SweepFolder, shown: Shown
) -> Iterator[tuple[ToDo, CellResult | None]]:
    """As `run_cells`, in the order in which they end."""
    variables = _of_the_measurement()
    with ExitStack() as held:
        waiting: dict[Future[CellResult], ToDo] = {}
        held.enter_context(folder.turn(alone=False))
        for each in left:
            ours = held.enter_context(folder.claimed(each.cell.key, each.process))
            there = folder.load(each.cell.key, each.process)
            if not ours or (there.started if there else None) != each.seen:
                yield each, None
                continue
            waiting[cluster.submit(measure_here, plan, each, len(left), variables)] = each
        progress = held.enter_context(shown())
        progress.phase(MEASURING_CELLS, len(waiting))
        for future in as_completed(waiting):
            each = waiting[future]
            try:
                result = future.result()
            except WorkerDiedError as error:
                result = _given_up(plan, each, error)
            folder.save(result)
            progress.advance()
            yield each, result


def measure_here(plan: SweepPlan, each: ToDo, of: int, variables: dict[str, str]) -> CellResult:
    """On the node with the GPU: what came of the cell, in a process of its own. Variables are the command's."""
    for name in _of_the_measurement():
        del os.environ[name]
    os.environ.update(variables)
    clear_dead_places()
    with cell_place() as place:
        return run_cell(plan, each, of, place, Silent())


def _of_the_measurement() -> dict[str, str]:
    """What of the environment a cell's figures depend on."""
    threads = os.environ.get(THREADS)
    return steering_variables(os.environ) | ({THREADS: threads} if threads is not None else {})


def _given_up(plan: SweepPlan, each: ToDo, error: WorkerDiedError) -> CellResult:
    """A cell that Ray lost; nobody knows on which node, and for how long it ran."""
    failure = CellFailure("out_of_memory" if error.out_of_memory else "killed", str(error))
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
    cell = measured_as(plan, each.cell)
    return CellResult(
        "tracekit.sweep-cell/1", __version__, cell, failure.kind, now, 0.0, None, failure, process=each.process
    )
