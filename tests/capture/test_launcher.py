"""torch's launcher with ranks that import no torch: what it tells of one that fails, and that none lives on."""

import os
import signal
from collections.abc import Iterator
from dataclasses import fields, make_dataclass
from pathlib import Path

import msgspec
import pytest

torch = pytest.importorskip("torch")

from tracekit.capture import launcher  # noqa: E402
from tracekit.model.child import LaunchedJob  # noqa: E402
from tracekit.walks.job import failure_of  # noqa: E402

#: Notes its number; rank 1 then ends as it is told to, when all are there, and the others wait.
RANK = """
import os, pathlib, sys, time
place, rank = pathlib.Path(sys.argv[1]).parent, int(os.environ["RANK"])
(place / f"number-{rank}").write_text(str(os.getpid()))
while len(list(place.glob("number-*"))) < 2:
    time.sleep(0.01)
if rank == 1:
    ENDS
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """The launcher hears signals itself and leaves it so: its process ends with it."""
    heard = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)}
    yield
    for each, handler in heard.items():
        signal.signal(each, handler)


@pytest.mark.parametrize(
    ("ends", "code", "said"),
    [
        ("os.kill(os.getpid(), 9)", -9, "rank 1 of 2 was ended by SIGKILL"),
        ("sys.exit(3)", 3, "rank 1: 3"),
    ],
)
def test_a_rank_that_ends_itself_is_named_and_takes_the_others_with_it(
    ends: str, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rank_of_a_test.py").write_text(RANK.replace("ENDS", ends))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(launcher, "MODULE", "rank_of_a_test")
    (tmp_path / "job.json").write_bytes(msgspec.json.encode(LaunchedJob(2)))
    failures = launcher.launch(tmp_path / "job.json")
    assert [each.rank for each in failures] == [0, 1] and failures[1].exit_code == code
    assert said in str(failure_of(failures, 2, 60))
    for each in tmp_path.glob("number-*"):
        with pytest.raises(ProcessLookupError):
            os.kill(int(each.read_text()), 0)


def test_ranks_are_started_where_torchs_launcher_lacks_a_time_to_end_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch.distributed.launcher.api import LaunchConfig

    kept = [(field.name, field.type, field) for field in fields(LaunchConfig) if field.name != "shutdown_timeout"]
    configs: list[object] = []
    monkeypatch.setattr(launcher, "elastic_launch", lambda config, _: lambda *_: configs.append(config))
    (tmp_path / "job.json").write_bytes(msgspec.json.encode(LaunchedJob(2)))
    for kind in (make_dataclass("LaunchConfig", kept), LaunchConfig):
        monkeypatch.setattr(launcher, "LaunchConfig", kind)
        assert launcher.launch(tmp_path / "job.json") == ()
    assert [getattr(config, "shutdown_timeout", None) for config in configs] == [None, 3]
