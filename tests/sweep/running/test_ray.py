"""A sweep over Ray: each cell has a GPU of its own."""

import os
import platform
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.cli.runs import invoke
from tests.measure.test_processes import wait_for
from tests.ray_cluster import cluster
from tests.sweep.sweeps import Children, answered

from tracekit.measure.processes import Ended
from tracekit.sweep.cells import CellAnswer, CellResult, CheckAnswer
from tracekit.sweep.running import cluster as cluster_sweep
from tracekit.sweep.running import requirements, sweeping
from tracekit.sweep.running.cluster import measure_here
from tracekit.sweep.running.folder import SweepFolder


def measure_with_stand_in(*asked: Any) -> CellResult:
    """A cell that is over when two run, each on another GPU."""

    def run_module(*job: Any, **more: Any) -> Ended:
        gpu = os.environ["CUDA_VISIBLE_DEVICES"]
        Path(f"on-{gpu}").write_text("measured")
        wait_for(Path("on-1" if gpu == "0" else "on-0"))
        answer = msgspec.json.decode(Children()(*job, **more).answer or b"", type=CellAnswer)
        assert answer.run is not None
        return answered(replace(answer, run=replace(answer.run, gpu_uuid=gpu)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeping, "run_module", run_module)
        return measure_here(*asked)


def nothing_wrong(_: bytes) -> Ended:
    return answered(CheckAnswer())


@pytest.mark.slow
def test_cells_are_measured_side_by_side_each_on_a_gpu_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster_sweep, "measure_here", measure_with_stand_in)
    monkeypatch.setattr(requirements, "_ask", nothing_wrong)
    with cluster():
        sweep_twice()


def sweep_twice() -> None:
    done = invoke("sweep", "vit", "--mode", "eager,default", "--engine", "ray")
    assert done.exit_code == 0, done.output
    folder = SweepFolder(Path("sweeps/vit"))
    cells = folder.load_all()
    assert {each.run.gpu_uuid for each in cells if each.run} == {"0", "1"}
    assert [(each.outcome, each.host) for each in cells] == [("done", platform.node())] * 2
    asked = folder.asked()
    assert asked is not None and asked.calls[-1].engine == "ray"
    # What is there is not measured again.
    assert "0 to run" in invoke("sweep", "--resume", "sweeps/vit", "--engine", "ray").stderr
    # Two more processes of the eager cell, on the one host that there is.
    more = invoke("sweep", "vit", "--mode", "eager", "--repeat-process", "3", "--engine", "ray")
    assert more.exit_code == 0, more.output
    assert "2 processes to run" in more.stderr and "some share a host" in more.stderr
    assert [each.process for each in folder.load_all() if each.cell.form == "eager"] == [1, 2, 3]
