"""The launcher with ranks that import no torch: what it tells of one that fails, and that none lives on."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.measure.test_processes import gone, wait_for

from tracekit.job import launcher
from tracekit.job.lockstep import meeting_place
from tracekit.job.nouns import END_OF_RANK, RankFailure, RankJob, encoded
from tracekit.job.starting import failure_of

#: Notes its number; rank 1 then ends as it is told to, when all are there, and the others wait.
RANK = """
import os, pathlib, signal, sys, time
place, rank = pathlib.Path(sys.argv[1]).parent, int(os.environ["RANK"])
OTHER
(place / f"number-{rank}").write_text(str(os.getpid()))
while len(list(place.glob("number-*"))) < 2:
    time.sleep(0.01)
if rank == 1:
    ENDS
time.sleep(60)
"""
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
DONE = f"(place / {END_OF_RANK!r}.format(rank)).write_text('null'); os._exit(0)"


def launched(folder: Path, patch: pytest.MonkeyPatch, ends: str, other: str = "") -> tuple[RankFailure, ...]:
    (folder / "rank_of_a_test.py").write_text(RANK.replace("ENDS", ends).replace("OTHER", other))
    patch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{Path(__file__).parents[2]}")
    patch.setattr(launcher, "MODULE", "rank_of_a_test")
    (folder / "job.json").write_bytes(encoded(RankJob(2)))
    failures = launcher.launch(folder / "job.json")
    for number in folder.glob("number-*"):
        with pytest.raises(ProcessLookupError):
            os.kill(int(number.read_text()), 0)
    return failures


@pytest.mark.parametrize(
    ("ends", "code", "said"),
    [
        ("os.kill(os.getpid(), 9)", -signal.SIGKILL, "killed by SIGKILL, not by tracekit"),
        # Somebody else's, not the launcher's.
        ("os.kill(os.getpid(), 15)", -signal.SIGTERM, "killed by SIGTERM"),
        ("os._exit(7)", 7, "exit code 7"),
        # Before it has said that it had done all.
        ("os._exit(0)", 0, "exit code 0"),
    ],
)
def test_a_rank_that_ends_without_a_word_is_named_and_the_others_are_said_to_be_stopped(
    ends: str, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = launched(tmp_path, monkeypatch, ends)
    assert [(each.rank, each.exit_code) for each in failures] == [(0, None), (1, code)]
    error = str(failure_of(failures, 2, 60))
    assert error.startswith("rank 1 of 2 ended") and said in error and error.endswith("tracekit stopped rank 0")


def test_ranks_meet_where_other_machines_cannot_reach() -> None:
    with meeting_place() as address:
        port = int(address["MASTER_PORT"])
        socket.create_connection(("127.0.0.1", port), 5).close()
        # An address of this machine too, of which one that listens on all would hear.
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), 5)


def test_a_rank_that_does_not_hear_is_killed_soon_and_that_is_no_failure_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "PATIENCE_SECONDS", 0.2)
    failures = launched(tmp_path, monkeypatch, "os._exit(7)", DEAF)
    assert [(each.rank, each.exit_code) for each in failures] == [(0, None), (1, 7)]


def test_what_befalls_a_rank_while_it_is_stopped_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As one that is dying already when another says that it has lost it.
    failures = launched(tmp_path, monkeypatch, "os._exit(1)", "signal.signal(signal.SIGTERM, lambda *_: os._exit(9))")
    assert [(each.rank, each.exit_code) for each in failures] == [(0, 9), (1, 1)]


def test_a_launcher_that_is_told_to_end_stops_its_ranks_first(tmp_path: Path) -> None:
    (tmp_path / "rank_of_a_test.py").write_text(RANK.replace("ENDS", "pass").replace("OTHER", DEAF))
    (tmp_path / "job").write_bytes(encoded(RankJob(2)))
    script = "import sys; from pathlib import Path; from tracekit.job import launcher as it; it.PATIENCE_SECONDS = 0.2"
    script += "; it.MODULE = 'rank_of_a_test'; it.main(*map(Path, sys.argv[1:]))"
    command = [sys.executable, "-c", script, str(tmp_path / "job"), str(tmp_path / "answer")]
    paths = f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths})
    numbers = [int(wait_for(tmp_path / f"number-{rank}")) for rank in range(2)]
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert all(map(gone, numbers)) and not (tmp_path / "answer").exists()


def test_ranks_that_have_done_all_are_no_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "RANK", RANK.replace("if rank == 1:", "if True:"))
    assert launched(tmp_path, monkeypatch, DONE) == ()
