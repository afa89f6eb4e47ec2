import faulthandler
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from tracekit.errors import LateRankError
from tracekit.job import rank_process
from tracekit.job.nouns import END_OF_RANK, RankFailure, RankJob, encoded
from tracekit.measure.plan import RANK

TOLD = "os.kill(os.getpid(), signal.SIGTERM) or 'no'"


def test_an_error_of_several_lines_is_told_in_one_and_its_traceback_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> NoReturn:
        raise RuntimeError("CUDA error: misaligned address\nCompile with TORCH_USE_CUDA_DSA to enable assertions.\n")

    for module, name in ((signal, "signal"), (faulthandler, "register")):
        monkeypatch.setattr(module, name, lambda *_, **__: None)
    monkeypatch.setattr(rank_process, "work", fail)
    monkeypatch.setattr(os, "_exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))
    monkeypatch.setenv(RANK, "1")
    (tmp_path / "job").write_bytes(encoded(RankJob(2)))
    with pytest.raises(SystemExit):
        rank_process.main(tmp_path / "job")
    failure = msgspec.json.decode((tmp_path / END_OF_RANK.format(1)).read_bytes(), type=RankFailure)
    assert failure.message == "RuntimeError: CUDA error: misaligned address"
    assert "TORCH_USE_CUDA_DSA" in failure.traceback and not failure.timed_out


@pytest.mark.parametrize(
    ("does", "code", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -signal.SIGTERM, None),
        ("sys.exit(0)", 1, "SystemExit: 0"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
        ("pass", 0, "null"),
        # One that has failed is not told to end before it has said so.
        (f"""raise type("Told", (Exception,), {{"__str__": lambda _: {TOLD}}})""", 1, "Told: no"),
    ],
)
def test_a_rank_says_how_it_ends_but_when_it_is_told_to(does: str, code: int, said: str | None, tmp_path: Path) -> None:
    script = "import os, signal, sys, time; from pathlib import Path; from tracekit.job import rank_process\n"
    script += f"def work(*_):\n    {does}\n"
    script += "rank_process.work = work; rank_process.main(Path(sys.argv[1]))"
    (tmp_path / "job").write_bytes(encoded(RankJob(2)))
    command = [sys.executable, "-c", script, str(tmp_path / "job")]
    assert subprocess.run(command, env={**os.environ, RANK: "1"}, check=False).returncode == code
    end = tmp_path / END_OF_RANK.format(1)
    assert (end.read_text() if end.exists() else None) == said or (said is not None and said in end.read_text())
    assert ("most recent call" in (tmp_path / "stands-rank1.txt").read_text()) == (code < 0)


def test_a_rank_that_lost_another_is_told_from_one_that_failed() -> None:
    lost = RuntimeError("[pair.cc:534] Connection closed by peer [127.0.0.1]:3")
    late = LateRankError("rank 3 did not come to the next call", (3,))
    told = [rank_process.failure_of_rank(0, error) for error in (lost, late, ValueError("no"))]
    assert [(each.lost_another, each.timed_out, each.waited_for) for each in told] == [
        (True, False, ()),
        (False, True, (3,)),
        (False, False, ()),
    ]
