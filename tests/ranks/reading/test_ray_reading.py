"""Ray reads what processes read, and what it cannot read is one line."""

import os
import signal
import sys
from concurrent.futures import Executor, Future
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.cli.runs import invoke
from tests.ray_cluster import cluster
from tests.traces import DATA

from tracekit.errors import TracekitError
from tracekit.measure import ray_engine
from tracekit.measure.engines import opened_engine
from tracekit.ranks.reading.many_files import Question, ask_each


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


@pytest.mark.slow
def test_ray_reads_as_processes_do_and_what_died_is_begun_again_or_named(
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
    assert not ray.is_initialized()
    assert capfd.readouterr().out == ""
