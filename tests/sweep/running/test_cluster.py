"""Cells that a cluster runs, here by stand-ins: what is asked of it, and what is kept of what it loses."""

import resource
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sweep.sweeps import Children, compiled_cell, eager_cell

from tracekit.errors import TracekitError, WorkerDiedError
from tracekit.measure.plan import TimingPlan
from tracekit.measure.ray_engine import GpuNode, RayExecutor
from tracekit.model.progress import Silent
from tracekit.sweep.cells import Cell, CellResult
from tracekit.sweep.running import cluster as cluster_sweep
from tracekit.sweep.running import sweeping
from tracekit.sweep.running.cluster import THREADS, Reserved, measure_here, reserve_gpus, run_cells_on, share_out
from tracekit.sweep.running.folder import SweepFolder
from tracekit.sweep.running.requirements import check_first
from tracekit.sweep.running.sweeping import SweepPlan, ToDo, find_left

CELLS = (eager_cell(), compiled_cell(), compiled_cell(batch_size=4))


def make_plan(*cells: Cell) -> SweepPlan:
    return SweepPlan(cells or CELLS, 0, 40, TimingPlan())


class Room:
    """One process on each of these hosts."""

    def __init__(self, cluster: RayExecutor, hosts: tuple[str, ...]) -> None:
        self.cluster, self.hosts, self.given_back = cluster, hosts, False

    def submit(self, number: int, call: Callable[..., Any], /, *args: Any) -> Future[Any]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sweeping.platform, "node", lambda: self.hosts[number])
            return self.cluster.submit(call, *args)

    def lacks(self) -> int:
        return len(self.cluster.stuck)

    def give_back(self) -> None:
        self.given_back = True
        for future in self.cluster.stuck:
            future.set_exception(WorkerDiedError("its node left"))
        self.cluster.stuck.clear()


class Cluster(RayExecutor):
    """Nodes of so many GPUs and CPUs; it runs what it is given at once, and loses what `lost` has an error for."""

    def __init__(self, *nodes: tuple[int, int], lost: dict[str, Exception] | None = None) -> None:
        self.nodes, self.lost, self.asked = nodes, lost or {}, {}
        self.rooms: list[Room] = []
        #: What waits for a node that has left, which processes of these numbers do.
        self.stuck: list[Future[Any]] = []
        self.gone: tuple[int, ...] = ()

    def per_node(self, resource: str) -> list[float]:
        return [float(node[("GPU", "CPU").index(resource)]) for node in self.nodes]

    def ask_for(self, **asked: Any) -> None:
        self.asked = asked

    def gpu_nodes(self) -> tuple[GpuNode, ...]:
        return tuple(GpuNode(host, host, gpus, "H100") for host, (gpus, _) in zip("abc", self.nodes, strict=False))

    def can_reserve(self) -> bool:
        return True

    def reserve(self, number: int, nodes: Sequence[GpuNode]) -> Any:
        self.rooms.append(Room(self, tuple(node.host for node in nodes[:number])))
        return self.rooms[-1]

    def submit(self, call: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        told: Future[Any] = Future()
        todo = next((each for each in args if isinstance(each, ToDo)), None)
        cell = todo.cell.key if todo else ""
        if todo and todo.process in self.gone:
            self.stuck.append(told)
        elif cell in self.lost:
            told.set_exception(self.lost[cell])
        else:
            told.set_result(call(*args))
        return told


def run(cluster: Cluster, plan: SweepPlan, folder: SweepFolder) -> list[tuple[ToDo, CellResult | None]]:
    return list(run_cells_on(cluster, plan, find_left(plan, folder), folder, lambda: nullcontext(Silent())))


def test_a_cell_has_a_gpu_and_its_share_of_the_hosts_cpus() -> None:
    cluster = Cluster((0, 64), (8, 100), (4, 40))
    assert (reserve_gpus(cluster, make_plan(), None), cluster.asked) == (Reserved(12), {"cpus": 10, "gpus": 1})
    few = Cluster((4, 2))
    assert (reserve_gpus(few, make_plan(), None), few.asked) == (Reserved(4), {"cpus": 1, "gpus": 1})
    several = replace(make_plan(), processes=3)
    assert reserve_gpus(Cluster((8, 80), (4, 40)), several, None) == Reserved(12, 2, "H100")


def test_without_a_gpu_and_for_several_ranks_no_cell_is_run() -> None:
    with pytest.raises(TracekitError, match="no GPU"):
        reserve_gpus(Cluster((0, 64)), make_plan(), None)
    with pytest.raises(TracekitError, match="--nproc"):
        reserve_gpus(Cluster((8, 64)), make_plan(compiled_cell("gpt", nproc=2, parallel="ddp")), None)


def test_a_cell_that_the_cluster_lost_is_a_result_and_the_others_are_run(
    children: Children, folder: SweepFolder
) -> None:
    plan = make_plan()
    lost = {
        CELLS[0].key: WorkerDiedError("memory ran out", out_of_memory=True),
        CELLS[1].key: WorkerDiedError("the worker died"),
    }
    with SweepFolder(folder.path).claimed(CELLS[2].key):
        ran = run(Cluster(lost=lost), plan, folder)
    assert [each.cell for each, result in ran if result is None] == [CELLS[2]], "another process has it"
    kept = {found.cell.key: found for found in folder.load_all()}
    assert [kept[cell.key].outcome for cell in CELLS[:2]] == ["out_of_memory", "killed"]
    ran = run(Cluster(), plan, folder)
    assert [result and (result.cell.key, result.outcome) for _, result in ran] == [(CELLS[2].key, "done")]
    assert find_left(plan, folder) == (), "what was measured stays"
    other = Cluster(lost={cell.key: TracekitError("another version") for cell in CELLS})
    with pytest.raises(TracekitError, match="another version"):
        run(other, replace(plan, retry_failed=True), folder)


def test_torch_is_steered_as_the_command_says_on_every_node(
    children: Children, folder: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (each, *_) = find_left(make_plan(), folder)
    told: list[dict[str, str]] = []

    def run_module(*_: Any, **__: Any) -> Any:
        told.append({name: sweeping.os.environ.get(name, "") for name in (THREADS, "TORCHINDUCTOR_FX", "TRITON_X")})
        return children(*_, **__)

    monkeypatch.setattr(sweeping, "run_module", run_module)
    monkeypatch.setenv(THREADS, "1")
    monkeypatch.setenv("TRITON_X", "of the node")
    monkeypatch.setenv("TORCHINDUCTOR_FX", "")
    measure_here(make_plan(), each, 1, {"TORCHINDUCTOR_FX": "1"})
    assert told == [{THREADS: "", "TORCHINDUCTOR_FX": "1", "TRITON_X": ""}]


def test_the_cluster_is_looked_at_in_this_machines_place(children: Children) -> None:
    assert check_first(CELLS, Silent(), cluster=Cluster((1, 1))) is None
    assert len(children.checked) == 1


def test_processes_of_a_cell_are_on_different_hosts_and_more_of_them_on_others(
    children: Children, folder: SweepFolder
) -> None:
    cluster, plan = Cluster((1, 8), (1, 8), (1, 8)), replace(make_plan(*CELLS[:2]), processes=2)
    assert len(run(cluster, plan, folder)) == 4
    assert [room.hosts for room in cluster.rooms] == [("a", "b")] * 2
    plan = replace(plan, processes=5)
    run(cluster, plan, folder)
    assert [room.hosts for room in cluster.rooms[2:]] == [("c",), ("a", "b")] * 2, "then those that have one"
    hosts = {found.cell.key: [] for found in folder.load_all()}
    for found in folder.load_all():
        hosts[found.cell.key].append(found.host)
    assert list(hosts.values()) == [["a", "b", "c", "a", "b"]] * 2
    assert all(room.given_back for room in cluster.rooms)


def test_what_ends_a_sweep_gives_its_rooms_back(children: Children, folder: SweepFolder) -> None:
    cluster = Cluster((1, 8), (1, 8), lost={cell.key: TracekitError("another version") for cell in CELLS})
    with pytest.raises(TracekitError, match="another version"):
        run(cluster, replace(make_plan(), processes=2), folder)
    assert len(cluster.rooms) == 3 and all(room.given_back for room in cluster.rooms)


def test_what_waits_for_a_node_that_has_left_is_given_up_and_not_waited_for(
    children: Children, folder: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_sweep, "LOOK_SECONDS", 0.01)
    cluster, plan = Cluster((1, 8), (1, 8)), replace(make_plan(CELLS[0]), processes=2)
    cluster.gone = (2,)
    run(cluster, plan, folder)
    assert [each.outcome for each in folder.load_all()] == ["done", "killed"]
    assert [each.process for each in find_left(replace(plan, retry_failed=True), folder)] == [2]


def test_more_processes_than_files_that_may_be_open_have_a_lock_each(folder: SweepFolder) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    plan = replace(make_plan(), processes=50)
    lost = {cell.key: WorkerDiedError("the worker died") for cell in CELLS}
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 50, hard))
    try:
        assert len(run(Cluster((1, 8), lost=lost), plan, folder)) == 150
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_only_hosts_with_gpus_of_one_model_share_a_cell() -> None:
    models = {"a": "A100", "b": "H100", "c": "H100", "d": None}
    nodes = [GpuNode(host, host, 8, model) for host, model in models.items()]
    todo = tuple(ToDo(CELLS[0], number, None, process=number) for number in (1, 2, 3))

    def shared(processes: int, *used: str) -> list[tuple[list[int], str]]:
        groups = share_out(todo[:processes], nodes, used)
        return [([each.process for each in group], "".join(node.host for node in among)) for group, among in groups]

    assert shared(3) == [([1, 2], "bc"), ([3], "bc")]
    assert shared(1, "a") == [([1], "a")], "as its other processes"
    assert shared(2, "b") == [([1], "c"), ([2], "bc")], "first where it was not"
    with pytest.raises(TracekitError, match="no GPU now"):
        list(share_out(todo, [], ()))
