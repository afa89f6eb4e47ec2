"""Processes forked from one that has imported: what they are, how they end, and what happens where none can be."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from tracekit.measure import processes
from tracekit.measure.processes import Ended, Start, run_module
from tracekit.sweep.running import fork_server
from tracekit.sweep.running.fork_server import ForkServer, shared_modules
from tracekit.workloads.registry import all_workloads, find

from ...measure.test_processes import ROOT, gone, late_when, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")

#: Imported before anything is forked: it notes each time.
HEAVY = """
import os, pathlib
pathlib.Path(os.environ["NOTES"], f"imported-{os.getpid()}").touch()
print("chatter of a library")
value = []
"""
#: What the job says is run in the process.
WORK = """
import json, os, pathlib, sys
job = pathlib.Path(sys.argv[1])
answer = pathlib.Path(sys.argv[2])
exec(json.loads(job.read_text()))
"""


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the modules are, and what they note."""
    (tmp_path / "heavy.py").write_text(HEAVY)
    (tmp_path / "work.py").write_text(WORK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("NOTES", str(tmp_path))
    # As users have it: what is printed waits in a buffer.
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    return tmp_path


def forking(*modules: str) -> AbstractContextManager[ForkServer]:
    return closing(ForkServer(modules))


Run = Callable[..., Ended]


@pytest.fixture
def run(notes: Path) -> Iterator[Run]:
    """Runs code in a process that was forked from one that has imported `heavy`, or as `start` says."""

    def started(
        code: str, environment: dict[str, str] | None = None, start: Start | None = None, limit: float | None = None
    ) -> Ended:
        job = msgspec.json.encode(code)
        return run_module("work", job, notes, environment or {}, limit_seconds=limit, start=start or server.start)

    with forking("heavy") as server:
        yield started


def imported(notes: Path) -> list[int]:
    return [int(path.name.partition("-")[2]) for path in notes.glob("imported-*")]


def test_what_was_imported_once_is_there_in_every_process(
    run: Run, notes: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import __main__, heavy\n"
        "heavy.value.append(1)\n"
        "answer.write_text(f'{len(heavy.value)} {os.getppid()} {__name__} {__main__.job is job}')"
    )
    told = {run(code).answer for _ in range(3)}
    assert told == {f"1 {imported(notes)[0]} __main__ True".encode()}
    assert len(imported(notes)) == 1
    assert capfd.readouterr() == ("", "")


def test_what_is_imported_is_kept_quiet_and_asks_nvml_and_the_first_is_told_how_long_it_took(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = "import os, time\nenvironment = dict(os.environ)\ntime.sleep(0.2)\nopen({!r}, 'w').write('done')"
    (notes / "slow.py").write_text(slow.format(str(notes / "over")))
    monkeypatch.delenv("TRANSFORMERS_VERBOSITY", raising=False)
    # To import takes an hour, and nothing else takes any time.
    clock = SimpleNamespace(sleep=time.sleep, monotonic=lambda: 3600.0 * (notes / "over").exists())
    monkeypatch.setattr(processes, "time", clock)
    # It is still there when it is looked whether its time is up.
    told = "answer.write_text(json.dumps([slow.environment, dict(os.environ), sys.argv[3]]))"
    code = f"import json, slow, time; {told}; time.sleep(0.3)"
    with forking("slow") as server:
        ended = run(code, start=server.start, limit=60.0)
    assert not ended.late and ended.answer is not None
    importing, own, seconds = json.loads(ended.answer)
    assert 0.2 <= float(seconds) < 60
    assert (importing["TRANSFORMERS_VERBOSITY"], importing["PYTORCH_NVML_BASED_CUDA_CHECK"]) == ("error", "1")
    assert "TRANSFORMERS_VERBOSITY" not in own


def test_each_has_its_own_environment_and_nothing_to_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "answer.write_text(str([os.environ.get('ONE'), os.environ.get('PYTORCH_NVML_BASED_CUDA_CHECK')]))"
    assert run(code, {"ONE": "first"}).answer == b"['first', None]"
    assert run(code).answer == b"[None, None]"
    assert run("answer.write_text(repr(sys.stdin.read()))").answer == b"''"
    # No text.
    monkeypatch.setenv("ODD", os.fsdecode(b"\xff\n"))
    assert run("answer.write_text(repr(os.environb[b'ODD']))").answer == b"b'\\xff\\n'"


def test_what_it_prints_and_how_it_ends_is_told_as_of_any_process(run: Run) -> None:
    said = run("print('out'); os.write(2, b'err\\n'); answer.write_text('told')")
    assert (said.code, set(said.lines), said.answer) == (0, {"out", "err"}, b"told")
    failed = run("answer.write_text('half'); sys.exit('error: no such thing')")
    assert (failed.code, failed.lines[-1], failed.answer) == (1, "error: no such thing", None)
    assert run("sys.exit(7)").code == 7
    raised = run("1 / 0")
    assert (raised.code, raised.lines[-1]) == (1, "ZeroDivisionError: division by zero")
    assert run("os.kill(os.getpid(), 9)").code == -signal.SIGKILL
    # However it leaves its output.
    for code in ("sys.stdout.close()", "sys.stderr = None", "sys.stdout = object()"):
        told = run(f"answer.write_text('told'); print('out', flush=True); {code}")
        assert (told.code, told.lines, told.answer) == (0, ("out",), b"told"), code


def test_one_whose_time_is_up_is_ended_with_what_it_started(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = notes / "child"
    code = (
        "import subprocess, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(child)!r}).write_text(f'{{child.pid}} {{os.getpid()}}')\n"
        "time.sleep(60)"
    )
    late_when(monkeypatch, lambda: child.exists() and child.read_text())
    ended = run(code, limit=60.0)
    assert (ended.late, ended.code) == (True, -signal.SIGTERM)
    assert all(gone(int(pid)) for pid in child.read_text().split())


def test_nobody_hears_of_a_process_before_it_leads_a_group_that_can_be_ended(notes: Path) -> None:
    (notes / "slow.py").write_text("import os, time\nreal = os.setsid\nos.setsid = lambda: (time.sleep(0.5), real())")
    job = notes / "job.json"
    job.write_text(json.dumps("import time; time.sleep(60)"))
    with forking("slow") as server:
        with server.start("work", (str(job), "none"), {}, notes / "printed") as process:
            assert os.getpgid(process.pid) == process.pid
        assert gone(process.pid)


def test_nothing_is_imported_before_something_is_started_and_nobody_lives_on(run: Run, notes: Path) -> None:
    with forking("heavy") as server:
        time.sleep(0.3)
        assert imported(notes) == []
        run("pass", start=server.start)
        (number,) = imported(notes)
    assert gone(number)


def test_one_that_still_imports_is_not_waited_for(notes: Path) -> None:
    on = notes / "on"
    (notes / "slow.py").write_text(f"import time; open({str(on)!r}, 'w').write('on'); time.sleep(60)")
    with forking("slow") as server, ThreadPoolExecutor(1) as threads:
        threads.submit(server.start("work", (), {}, notes / "printed").__enter__)
        wait_for(on)
        server.close()
    assert server._process is not None and server._process.returncode == -signal.SIGTERM


def test_with_nothing_to_import_before_processes_are_fresh(run: Run) -> None:
    with forking() as server:
        assert run("answer.write_text(str(os.getppid()))", start=server.start).answer == str(os.getpid()).encode()


def test_where_importing_fails_a_fresh_process_says_why(run: Run, notes: Path) -> None:
    (notes / "broken.py").write_text("raise RuntimeError('no such library')")
    code = "import heavy; answer.write_text(str(len(sys.argv)))"
    with forking("heavy", "broken") as server:
        # Three words, for nothing was imported before.
        assert [run(code, start=server.start).answer for _ in range(2)] == [b"3", b"3"]
    assert len(imported(notes)) == 3


def test_a_process_that_has_a_gpu_open_forks_none(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = str(notes / "nvidia-uvm")
    here = "from tracekit.sweep.running import fork_server"
    (notes / "spoiling.py").write_text(
        f"{here}\nopened = open({device!r}, 'w')\nfork_server.CUDA_DEVICES = ({device!r},)"
    )
    (notes / "entry.py").write_text(f"import sys\n{here}\nfork_server.main(sys.argv[1:])")
    monkeypatch.setattr(fork_server, "MODULE", "entry")
    server = ForkServer(["spoiling"])
    with server.start("work", ("none",), {}, notes / "printed") as process:
        process.wait(60)
    assert server._process is not None
    assert server._process.wait(60) == 4


def test_a_server_that_is_killed_takes_its_process_along_and_the_next_is_a_fresh_one(run: Run) -> None:
    # What it has forked itself lives until its group is ended, and is not waited for. It is given the time to be told
    # of: in place of one that nobody was told of, a fresh one is started.
    began = time.monotonic()
    killed = run("import time; time.sleep(1); os.fork() and os.kill(os.getppid(), 9); time.sleep(120)")
    assert (killed.code, killed.answer) == (-signal.SIGKILL, None)
    assert time.monotonic() - began < 60
    assert run("answer.write_text(str(os.getppid()))").answer == str(os.getpid()).encode()


def test_of_several_workloads_only_such_share_what_import_a_library_of_models() -> None:
    vit, sdxl, mlp = map(find, ("vit", "sdxl", "mlp"))
    assert shared_modules([vit, find("bert"), sdxl, vit]) == (vit.module, sdxl.module)
    assert shared_modules([mlp, vit, sdxl]) == (vit.module, sdxl.module)
    assert shared_modules([mlp, mlp]) == (mlp.module,)
    assert shared_modules([find("a.b:c"), mlp]) == ()
    assert shared_modules([]) == ()


def test_workloads_that_say_so_import_torch_and_no_library_of_models() -> None:
    pytest.importorskip("torch")
    alone = sorted({info.module for info in (*all_workloads(), find("a.b:c")) if info.needs_only_torch})
    assert alone == ["tracekit.workloads.gpt", "tracekit.workloads.one_forward", "tracekit.workloads.own"]
    code = f"import sys, {', '.join(alone)}; print({{'torch._dynamo', 'transformers', 'diffusers'}} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"


#: Starts a process by a server and waits.
OWNER = """
import pathlib, sys, time
from tracekit.sweep.running.fork_server import ForkServer
place = pathlib.Path(sys.argv[1])
with ForkServer(["heavy"]).start("work", (str(place / "job.json"), str(place / "pids")), {}, place / "printed"):
    time.sleep(60)
"""


def test_all_end_when_the_owner_is_killed(notes: Path) -> None:
    code = "import time; answer.write_text(f'{os.getpid()} {os.getppid()}'); time.sleep(60)"
    (notes / "job.json").write_bytes(msgspec.json.encode(code))
    path = f"{ROOT}{os.pathsep}{notes}"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(notes)], env={**os.environ, "PYTHONPATH": path})
    both = [int(pid) for pid in wait_for(notes / "pids").split()]
    owner.kill()
    owner.wait()
    assert all(map(gone, both))
