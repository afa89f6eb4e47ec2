"""A sweep's cells on the GPUs of a Ray cluster: one cell a GPU at a time, each saved here as it ends. Several processes
of a cell are on different hosts, where there are such."""

from __future__ import annotations

import datetime
import os
import resource
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tracekit import __version__
from tracekit.errors import TracekitError, WorkerDiedError
from tracekit.model.progress import Silent
from tracekit.shell import steering_variables
from tracekit.sweep.cells import Asked, CellFailure, CellResult
from tracekit.sweep.running.sweeping import ToDo, cell_place, measured_as, processes_of, run_cell

if TYPE_CHECKING:
    from tracekit.measure.ray_engine import GpuNode, RayExecutor, Room
    from tracekit.sweep.running.folder import SweepFolder
    from tracekit.sweep.running.sweeping import Shown, SweepPlan

#: Ray sets it to the number of CPUs that a task asks for: without Ray it is the user's.
THREADS = "OMP_NUM_THREADS"
NO_GPU = "the Ray cluster has no GPU now: add a node with one, or leave --engine out"
#: Where nothing ends for so long, the nodes are looked at.
LOOK_SECONDS = 30.0


class Reserved(Struct, frozen=True):
    """What a cluster has for a sweep. Of one with cells in several processes `hosts` are those whose GPUs are of one
    `model`, the one that most hosts have: such cells are measured there."""

    gpus: int
    hosts: int | None = None
    model: str | None = None


def reserve_gpus(cluster: RayExecutor, plan: SweepPlan, asked: Asked | None) -> Reserved:
    """How many cells the cluster runs at a time: each has a GPU of its own, and its share of the host's CPUs. Raises
    TracekitError where it has no GPU, and for cells of several ranks."""
    if any(cell.request.nproc for cell in plan.cells):
        raise TracekitError("--engine ray gives each cell one GPU: leave --nproc out, or measure without --engine")
    gpus = cluster.per_node("GPU")
    shares = [int(cpus / of) for cpus, of in zip(cluster.per_node("CPU"), gpus, strict=True) if of]
    if not shares:
        raise TracekitError(NO_GPU)
    cluster.ask_for(cpus=max(1, min(shares)), gpus=1)
    if max(processes_of(plan, asked).values(), default=1) == 1:
        return Reserved(int(sum(gpus)))
    if not cluster.can_reserve():
        raise TracekitError(
            "--repeat-process with --engine ray needs ray 2.49: pip install -U 'ray[client]' on all nodes"
        )
    nodes = find_alike(cluster.gpu_nodes(), ())
    return Reserved(sum(node.gpus for node in nodes), len({node.host for node in nodes}), nodes[0].model)


def find_alike(nodes: Sequence[GpuNode], used: Collection[str]) -> tuple[GpuNode, ...]:
    """The nodes whose GPUs are of one model, as far as Ray knows: that of the hosts `used`, on which a cell was
    measured before, else the one that most hosts have. Raises TracekitError where there is none."""
    if not nodes:
        raise TracekitError(NO_GPU)
    kinds: dict[str | None, list[GpuNode]] = {}
    for node in nodes:
        kinds.setdefault(node.model, []).append(node)

    def fit(some: Iterable[GpuNode]) -> tuple[int, int, int]:
        gpus = Counter[str]()
        for node in some:
            gpus[node.host] += node.gpus
        return len(gpus.keys() & set(used)), len(gpus), gpus.total()

    return tuple(max(kinds.values(), key=fit))


def share_out(
    processes: Sequence[ToDo], nodes: Sequence[GpuNode], used: Collection[str]
) -> Iterator[tuple[Sequence[ToDo], Sequence[GpuNode]]]:
    """Processes of one cell in groups, each with the nodes of which every process of the group is to have another one:
    first those on hosts where the cell was not measured yet, then all that are alike."""
    alike = find_alike(nodes, used)
    free = tuple(node for node in alike if node.host not in used) or alike
    while processes:
        yield processes[: len(free)], free
        processes, free = processes[len(free) :], alike


def run_cells_on(
    cluster: RayExecutor, plan: SweepPlan, left: tuple[ToDo, ...], folder: SweepFolder, shown: Shown
) -> Iterator[tuple[ToDo, CellResult | None]]:
    """As `run_cells`, in the order in which they end."""
    with ExitStack() as held:
        held.enter_context(folder.turn(alone=False))
        _allow_files(len(left))
        ours: list[ToDo] = []
        for each in left:
            is_ours = held.enter_context(folder.claimed(each.cell.key, each.process))
            there = folder.load(each.cell.key, each.process)
            if is_ours and (there.started if there else None) == each.seen:
                ours.append(each)
            else:
                yield each, None
        rooms: dict[Future[CellResult], Room] = {}
        held.callback(_give_back_all, rooms)
        waiting = _submitted(cluster, plan, ours, len(left), folder, rooms)
        progress = held.enter_context(shown())
        progress.phase("measuring cells, one a GPU", len(waiting))
        for future in _ended(waiting, rooms):
            each = waiting[future]
            try:
                result = future.result()
            except WorkerDiedError as error:
                result = _given_up(plan, each, error)
            folder.save(result)
            room = rooms.pop(future, None)
            if room is not None and room not in rooms.values():
                room.give_back()
            progress.advance()
            yield each, result


def _allow_files(more: int) -> None:
    """Has this process open so many more files, as far as it may: each process of a cell has a lock."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        most = soft + more if hard == resource.RLIM_INFINITY else min(soft + more, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _ended(
    waiting: Collection[Future[CellResult]], rooms: dict[Future[CellResult], Room]
) -> Iterator[Future[CellResult]]:
    """Each of them as it ends. What waits for a node that has left the cluster is ended, once nothing else of its room
    runs."""
    left = set(waiting)
    while left:
        done, left = wait(left, LOOK_SECONDS, FIRST_COMPLETED)
        yield from (future for future in waiting if future in done)
        if not done:
            for room, number in Counter(rooms[future] for future in left if future in rooms).items():
                if number <= room.lacks():
                    room.give_back()


def _give_back_all(rooms: dict[Future[CellResult], Room]) -> None:
    for room in set(rooms.values()):
        room.give_back()


def _submitted(
    cluster: RayExecutor,
    plan: SweepPlan,
    ours: Sequence[ToDo],
    of: int,
    folder: SweepFolder,
    rooms: dict[Future[CellResult], Room],
) -> dict[Future[CellResult], ToDo]:
    """All of them, waiting for a GPU. `rooms` is told of those that have one on nodes that were chosen for it."""
    variables = _of_the_measurement()
    waiting: dict[Future[CellResult], ToDo] = {}
    repeated = {cell.key for cell, number in processes_of(plan, folder.asked()).items() if number > 1}
    nodes = cluster.gpu_nodes() if repeated else ()
    cells: dict[str, list[ToDo]] = {}
    for each in ours:
        cells.setdefault(each.cell.key, []).append(each)
    for key, processes in cells.items():
        if key not in repeated:
            waiting |= {cluster.submit(measure_here, plan, each, of, variables): each for each in processes}
            continue
        anew = {each.process for each in processes}
        there = folder.load_processes(key, 1).items()
        used = {found.host for number, found in there if found and found.host and number not in anew}
        for group, among in share_out(processes, nodes, used):
            room = cluster.reserve(len(group), among)
            for number, each in enumerate(group):
                future = room.submit(number, measure_here, plan, each, of, variables)
                waiting[future], rooms[future] = each, room
    return waiting


def measure_here(plan: SweepPlan, each: ToDo, of: int, variables: dict[str, str]) -> CellResult:
    """On the node with the GPU: what came of the cell, in a process of its own. Variables are the command's."""
    for name in _of_the_measurement():
        del os.environ[name]
    os.environ.update(variables)
    with cell_place() as place:
        return run_cell(plan, each, of, Path(place), Silent())


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
