"""Ray as an engine: what it gives is what processes give, and what it cannot give is one line."""

import os
import platform
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.cli.runs import invoke
from tests.sweep.sweeps import Children, answered
from tests.traces import DATA

from tracekit.errors import TracekitError
from tracekit.measure import ray_engine
from tracekit.measure.engines import opened_engine
from tracekit.measure.processes import Ended
from tracekit.ranks.reading.many_files import Question, ask_each
from tracekit.sweep.cells import CellAnswer, CellResult, CheckAnswer
from tracekit.sweep.running import cluster as cluster_sweep
from tracekit.sweep.running import requirements, sweeping
from tracekit.sweep.running.cluster import measure_here
from tracekit.sweep.running.folder import SweepFolder

from ...measure.test_processes import wait_for


@pytest.mark.parametrize(
    "address", ["ray://127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:way-too-far", "ray://", "ray://here"]
)
def test_a_cluster_that_is_not_there_is_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", address)
    told = invoke("ranks", str(DATA / "ranks"), "--engine", "ray")
    assert (told.exit_code, len(told.stderr.splitlines())) == (1, 1)
    assert address in told.stderr


def test_without_ray_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    told = invoke("ranks", str(DATA / "ranks"), "--engine", "ray")
    assert (told.exit_code, len(told.stderr.splitlines())) == (1, 1)
    assert "pip install '.[ray]'" in told.stderr


@contextmanager
def cluster() -> Iterator[Any]:
    """Ray on this machine, of two CPUs and two GPUs that are not there; its processes end with the block."""
    ray = pytest.importorskip("ray")
    # Ray asks for those that it is to hand out.
    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
    ray.init("local", num_cpus=2, num_gpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield ray
    finally:
        ray.shutdown()
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def die_once(number: int) -> int:
    """The second time it is well."""
    marker = Path(f"died-{number}")
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


class GaveUp(Executor):
    """Ray's answer where it will not begin a task again."""

    def __init__(self, error: Exception) -> None:
        self._error = ray_engine._explained(error)

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        lost: Future[Any] = Future()
        lost.set_exception(self._error)
        return lost


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


def sweep_over_two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_sweep, "measure_here", measure_with_stand_in)
    monkeypatch.setattr(requirements, "_ask", nothing_wrong)
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


@pytest.mark.slow
def test_ray_reads_and_measures_as_processes_do_and_what_died_is_begun_again_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # One test: each process that ran a part of it would start Ray, which takes longer than all that is done here.
    command = ("ranks", str(DATA / "ranks"), "--window", "whole", "--no-cache", "--json", "-")
    alone = invoke(*command)
    monkeypatch.chdir(tmp_path)
    capfd.readouterr()
    with cluster() as ray, opened_engine("ray", 1 << 60) as executor:
        assert invoke(*command, "--engine", "ray").stdout == alone.stdout
        assert ask_each(Question(die_once), (1,), 0, executor) == [1]
        assert executor is not None
        gone = ModuleType("gone")
        exec("def call(): pass", gone.__dict__)
        monkeypatch.setitem(sys.modules, "gone", gone)
        with pytest.raises(TracekitError, match=r"cannot load tracekit .* 'gone'"):
            executor.submit(gone.call).result()
        for error in (ray.exceptions.WorkerCrashedError(), ray.exceptions.OutOfMemoryError("many\nlines")):
            refused: list[TracekitError] = []
            assert ask_each(Question(len, "rank{}.json".format, refused.append), (1,), 0, GaveUp(error)) == []
            assert [str(each).partition(":")[0] for each in refused] == ["rank1.json"]
        sweep_over_two_gpus(monkeypatch)
    assert not ray.is_initialized()
    assert capfd.readouterr().out == ""
