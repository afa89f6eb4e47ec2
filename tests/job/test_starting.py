"""Runs of several ranks: gloo on the CPU, started by tracekit and by torchrun."""

import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.runs import ROOT, assert_refused, invoke, tracekit
from tests.uneven_ranks import MODEL

from tracekit import store
from tracekit.errors import KilledRankError, TheirCodeError, TracekitError
from tracekit.job import starting
from tracekit.job.measuring import refuse_unshared
from tracekit.job.nouns import RankFailure, RankJob, decoded, encoded
from tracekit.job.starting import failure_of
from tracekit.measure.plan import Plan
from tracekit.measure.processes import Ended
from tracekit.model.cell import CellJob
from tracekit.model.workload import Request
from tracekit.nvml import Driver, NoDriver
from tracekit.reading.sides import compare_forms
from tracekit.tracefile.read import read_trace
from tracekit.workloads import sizes

#: Short, and of ranks that share two cores.
SHORT = ("--iterations", 6, "--no-provenance", "--no-numerics")
profile = partial(tracekit, "profile", "model.py:build", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("torch")
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


@pytest.mark.slow
def test_under_torchrun_all_ranks_make_the_same_calls_and_the_slowest_is_the_time_of_each(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    launcher = (sys.executable, "-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    command = (*launcher, "-m", "tracekit", "profile", "model.py:build", "--compiled", *map(str, SHORT), "-q")
    given = ("--", "late_ms=30", "uneven=1")
    done = subprocess.run((*command, *given), cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # The first rank alone reports.
    assert done.stdout.count("model-build-compiled-2-ranks.html") == 1
    here = folder / "traces" / "model-build-compiled-2-ranks"
    run, other = store.load(here), store.load(here / "rank1")
    assert run.settings.nproc == 2 and (run.status, other.status) == ("complete", "complete")
    assert [(each.rank, each.folder) for each in run.ranks] == [(0, None), (1, "rank1")] and not other.ranks
    assert run.order == other.order
    for form, theirs in zip(run.forms, other.forms, strict=True):
        # One time for all; it is not shorter than any rank's own, and has the sleep of the late one in it.
        assert form.wall_us == theirs.wall_us and len(form.wall_us) == 6
        assert min(form.wall_us) > 20_000
        for each in (form, theirs):
            assert all(own <= wall for own, wall in zip(each.own_wall_us, form.wall_us, strict=True))
        for rank, place, made in ((0, here, form), (1, here / "rank1", theirs)):
            trace = read_trace(place / next(each.path for each in made.recordings if each.kind == "rich"))
            assert trace.distributed is not None and trace.distributed.rank == rank
    assert sum(form.times_slowest for each in run.ranks for form in each.forms) == 12
    # What rank 1 alone did is told of it, in the run and in the report.
    of_ranks = [{form.name: form for form in each.forms} for each in run.ranks]
    assert not any(form.differs for form in (*of_ranks[0].values(), of_ranks[1]["eager"]))
    again, broke = of_ranks[1]["compiled"].differs
    assert (again.code, again.facts["timed"], broke.code) == ("rank_recompiled", 1, "rank_broke")
    assert "self.times == 2" in str(again.facts["guard"]) and "model.py" in str(broke.facts["where"])
    assert len(of_ranks[1]["compiled"].compiling_calls) == 1
    assert {"rank_recompiled", "rank_broke"} <= {note.code for note in compare_forms(here, run).notes}


@pytest.mark.slow
def test_a_rank_that_hangs_ends_the_run_in_one_message_and_leaves_no_process(folder: Path) -> None:
    done = profile("--nproc", 2, "--timeout", 5, *SHORT, "--", "late_ms=20000", folder=folder)
    assert done.returncode == 1
    error = done.stderr.splitlines()[-1]
    assert error.startswith("error: rank 1 of 2 hangs: the others waited 5 s for it"), done.stderr
    # Where it was, in the user's own file, and nothing of a run that nobody measured.
    assert "model.py" in done.stderr.replace("model.py:build", "")
    assert not store.is_run(folder / "traces" / "model-build-eager-2-ranks")
    assert not _running(str(folder))


def _running(text: str) -> list[str]:
    """The commands of processes that name this."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        found += [command] if text in command and "pytest" not in command else []
    return found


def test_what_cannot_be_asked_of_ranks_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    one = ("profile", "model.py:build")
    assert_refused(invoke(*one, "--nproc", 2, "--repeat-process", 2), "--nproc and --repeat-process cannot be combined")
    assert_refused(invoke(*one, "--timeout", 9), "--timeout has no effect without --nproc")
    refused = invoke("profile", "vit", "--nproc", 2)
    for part in ("vit has no --nproc", "causal-lm, gpt"):
        assert_refused(refused, part)
    for driver, heads in ((Driver("580", (13, 0), ("H200",)), "8 or 2"), (NoDriver("no_driver"), "2")):
        monkeypatch.setattr(sizes, "read_driver", lambda driver=driver: driver)
        assert_refused(invoke("profile", "causal-lm", "--nproc", 3), f"--parallel tp splits {heads} heads")
    assert_refused(invoke("profile", "gpt", "--parallel", "tp"), "--parallel tp is for several ranks: pass --nproc N")
    gpt = ("profile", "gpt", "--nproc", 2, "--compiled")
    for more, refusal in {
        ("--parallel", "fsdp2", "--compile-order", "before-sharding"): "--compile-order is for sharded blocks",
        ("--compiled-autograd",): "--compiled-autograd cannot trace ddp's reducer",
    }.items():
        assert_refused(invoke(*gpt, *more), refusal)
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert_refused(invoke(*one, "--nproc", 2), "a launcher has started this process as rank 1")


def test_a_port_in_use_and_ranks_that_do_not_come_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from tracekit.job.lockstep import joined

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        here = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        for name, value in here.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(TracekitError, match=f"127.0.0.1:{port}: the port is in use.*MASTER_PORT") as used:
            joined(1).__enter__()
    with pytest.raises(TracekitError, match=r"1/2 clients joined.*start all ranks") as alone:
        joined(1).__enter__()
    assert "\n" not in str(used.value) + str(alone.value)


def test_a_rank_without_a_gpu_is_told_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from tracekit.job.lockstep import joined

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name, value in {"RANK": "5", "LOCAL_RANK": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TracekitError, match=r"rank 5 has no GPU, .* has 2: pass --nproc 2"):
        joined(1).__enter__()


def test_all_ranks_refuse_a_folder_that_one_host_does_not_see(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tracekit.measure.ranks import OneProcess

    class OfThree(OneProcess):
        def gathered(self, value: Any) -> list[Any]:
            return [value, ("far", False), value]

    refuse_unshared(tmp_path, OneProcess())
    with pytest.raises(TracekitError, match=r"rank 1 \(far\) does not see .*--out"):
        refuse_unshared(tmp_path, OfThree())


LOST = RankFailure(0, "Connection closed by peer", "their frames", at=1.0, exit_code=1, lost_another=True)
FRAMES = 'Stack (most recent call first):\n  File "m.py", line 3 in step\n'


@pytest.mark.parametrize(
    ("gone", "kind", "said"),
    [
        # The launcher may see its end after that of the rank that lost it.
        (RankFailure(1, at=2.0, exit_code=-9), KilledRankError, "killed by SIGKILL, not by tracekit"),
        (RankFailure(1, at=2.0, exit_code=7), TracekitError, "exit code 7; tracekit stopped rank 2"),
        (RankFailure(1, at=2.0, exit_code=-6, seconds=9.0), KilledRankError, "killed by SIGABRT"),
        (RankFailure(1, "boom", at=0.5, exit_code=1), TracekitError, "rank 1 of 3: boom"),
    ],
)
def test_the_rank_that_others_lost_is_named(gone: RankFailure, kind: type[TracekitError], said: str) -> None:
    error = failure_of((LOST, gone, RankFailure(2, stands=FRAMES)), 3, 60)
    assert type(error) is kind and "rank 1 of 3" in str(error) and said in str(error)


def test_a_rank_that_aborts_because_it_lost_another_is_not_named() -> None:
    # As NCCL does; the rank that was lost says why.
    failed = RankFailure(1, "boom", at=0.5, exit_code=1)
    assert str(failure_of((RankFailure(0, at=0.6, exit_code=-6), failed), 2, 60)) == "rank 1 of 2: boom"


def test_the_rank_that_others_wait_for_is_named_with_where_it_stands() -> None:
    waited = RankFailure(0, "rank 2 did not come", at=1.0, exit_code=1, timed_out=True, waited_for=(2,), seconds=61.0)
    waits, hangs = RankFailure(1, stands=FRAMES.replace("m.py", "w.py")), RankFailure(2, stands=FRAMES)
    error = failure_of((waited, waits, hangs), 3, 60)
    assert "rank 2 of 3 hangs" in str(error)
    assert isinstance(error, TheirCodeError) and "m.py" in error.traceback and "w.py" not in error.traceback
    # NCCL aborts a process that has waited in vain, and does not say for whom.
    error = failure_of((RankFailure(0, exit_code=-6, seconds=61.0), waits, hangs), 3, 60)
    assert str(error).startswith(
        "rank 0 of 3 ended by SIGABRT: by NCCL, if it waited 60 s (--timeout) for rank 1 or 2,"
    )
    # A time-out of its own program.
    asked = RankFailure(0, "TimeoutError: timed out", at=1.0, exit_code=1, timed_out=True, seconds=9.0)
    assert str(failure_of((asked, waits), 2, 60)) == "rank 0 of 2: TimeoutError: timed out"


def test_a_job_goes_through_a_file_whole() -> None:
    plan = Plan(Request("model.py:build", nproc=2), ("eager",), Path("there"), force=False, command="tracekit")
    job = RankJob(2, 9.0, plan, Path("/draft"))
    assert decoded(encoded(job)) == job


def test_a_cell_is_timed_by_ranks_of_the_launcher_and_the_rank_that_failed_is_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = (RankFailure(1, "CUDA out of memory", at=1.0, exit_code=1, out_of_memory=True), RankFailure(0))
    killed = (RankFailure(0, "Connection closed by peer", at=1.0, exit_code=1), RankFailure(1, exit_code=-9))
    ends, jobs = [(), full, killed, None], []

    def launched(module: str, job: bytes, _place: Path, environment: dict[str, str], **_: Any) -> Ended:
        jobs.append(decoded(job))
        assert module == starting.MODULE and {"OMP_NUM_THREADS", "TORCHINDUCTOR_CACHE_DIR"} <= {*environment}
        answer = ends.pop(0)
        return Ended(0, msgspec.json.encode(answer) if answer is not None else None, ())

    monkeypatch.setattr(starting, "run_module", launched)
    cell = CellJob(Request("gpt", nproc=2, parallel="ddp"), ("eager",), None, None, 7)
    told = [
        starting.time_cell(cell, 2, tmp_path, 20.0, limit_seconds=None, on_word=lambda _: None)[1:] for _ in range(4)
    ]
    assert [(job.nproc, job.cell, job.timeout_seconds) for job in jobs] == [(2, cell, 20.0)] * 4
    assert [(str(error) if error else None, full) for error, full in told[:2]] == [
        (None, False),
        ("rank 1 of 2: CUDA out of memory", True),
    ]
    assert isinstance(told[2][0], KilledRankError) and told[3] == (None, False)
