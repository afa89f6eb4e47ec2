"""Cells that a cluster runs, here by stand-ins: what is asked of it, and what is kept of what it loses."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sweeps import Children, compiled_cell, eager_cell

from tracekit.errors import TracekitError, WorkerDiedError
from tracekit.model.progress import Silent
from tracekit.model.sweep import Cell, CellResult
from tracekit.walks import sweep_check, sweeping
from tracekit.walks.cluster_sweep import THREADS, measure_here, reserve_gpus, run_cells_on
from tracekit.walks.plan import TimingPlan
from tracekit.walks.ray_engine import RayExecutor
from tracekit.walks.sweep_check import check_first
from tracekit.walks.sweep_folder import SweepFolder
from tracekit.walks.sweeping import SweepPlan, ToDo, find_left

CELLS = (eager_cell(), compiled_cell(), compiled_cell(batch_size=4))


def make_plan(*cells: Cell) -> SweepPlan:
    return SweepPlan(cells or CELLS, 0, 40, TimingPlan())


class Cluster(RayExecutor):
    """Nodes of so many GPUs and CPUs; it runs what it is given at once, and loses what `lost` has an error for."""

    def __init__(self, *nodes: tuple[int, int], lost: dict[str, Exception] | None = None) -> None:
        self.nodes, self.lost, self.asked = nodes, lost or {}, {}

    def per_node(self, resource: str) -> list[float]:
        return [float(node[("GPU", "CPU").index(resource)]) for node in self.nodes]

    def ask_for(self, **asked: Any) -> None:
        self.asked = asked

    def submit(self, call: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        told: Future[Any] = Future()
        cell = next((each.cell.key for each in args if isinstance(each, ToDo)), "")
        if cell in self.lost:
            told.set_exception(self.lost[cell])
        else:
            told.set_result(call(*args))
        return told


def run(cluster: Cluster, plan: SweepPlan, folder: SweepFolder) -> list[tuple[ToDo, CellResult | None]]:
    return list(run_cells_on(cluster, plan, find_left(plan, folder), folder, lambda: nullcontext(Silent())))


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    fake = Children()
    monkeypatch.setattr(sweeping, "run_module", fake)
    monkeypatch.setattr(sweep_check, "run_module", fake)
    return fake


def test_a_cell_has_a_gpu_and_its_share_of_the_hosts_cpus() -> None:
    cluster = Cluster((0, 64), (8, 100), (4, 40))
    assert (reserve_gpus(cluster, make_plan()), cluster.asked) == (12, {"cpus": 10, "gpus": 1})
    few = Cluster((4, 2))
    assert (reserve_gpus(few, make_plan()), few.asked) == (4, {"cpus": 1, "gpus": 1})


def test_without_a_gpu_and_for_several_ranks_no_cell_is_run() -> None:
    with pytest.raises(TracekitError, match="no GPU"):
        reserve_gpus(Cluster((0, 64)), make_plan())
    with pytest.raises(TracekitError, match="--nproc"):
        reserve_gpus(Cluster((8, 64)), make_plan(compiled_cell("gpt", nproc=2, parallel="ddp")))


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
