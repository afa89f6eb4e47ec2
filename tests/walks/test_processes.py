"""Processes of tracekit's own: how they end, and what is kept of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tracekit.walks import processes
from tracekit.walks.processes import run_module


def python(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Every child runs this script instead."""
    real = subprocess.Popen

    def started(_command: list[str], **more: Any) -> Any:
        return real([sys.executable, "-c", script], **more)

    monkeypatch.setattr(processes.subprocess, "Popen", started)


def test_an_interrupt_ends_the_process_and_what_it_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    note = tmp_path / "grandchild"
    script = (
        "import subprocess, sys, pathlib, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(note)!r}).write_text(str(child.pid))\n"
        "time.sleep(60)"
    )
    python(monkeypatch, script)

    def interrupted(_seconds: float) -> None:
        if note.exists() and note.read_text():
            raise KeyboardInterrupt

    monkeypatch.setattr(processes.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_module("any", b"{}", tmp_path, {})
    monkeypatch.undo()
    assert gone(int(note.read_text()))


#: Starts a process that hears no polite word, notes its number, and then does something else.
STUBBORN = """
import pathlib, signal, subprocess, sys, time
deaf = "import pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
deaf += " pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", deaf, {ready!r}])
while not pathlib.Path({ready!r}).exists():
    time.sleep(0.01)
pathlib.Path({note!r}).write_text(str(child.pid))
"""


@pytest.mark.parametrize("then", ["sys.exit('error: broken')", "import os; os.kill(os.getpid(), 9)", "sys.exit(0)"])
def test_what_a_process_started_ends_with_it_however_it_ends(
    then: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    python(monkeypatch, STUBBORN.format(ready=str(tmp_path / "ready"), note=str(note)) + then)
    run_module("any", b"{}", tmp_path, {})
    assert gone(int(note.read_text()))


def test_what_shrugs_off_a_polite_word_is_ended_with_its_leader(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    python(monkeypatch, STUBBORN.format(ready=str(tmp_path / "ready"), note=str(note)) + "time.sleep(60)")
    ended = run_module("any", b"{}", tmp_path, {}, limit_seconds=2.0)
    assert (ended.late, ended.code) == (True, -signal.SIGTERM)
    assert gone(int(note.read_text()))


def test_a_process_is_tied_to_this_one_and_leaves_what_it_had_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real, asked = subprocess.Popen, []
    script = (
        "import os, pathlib, sys\n"
        "pathlib.Path(sys.argv[1]).with_name('part.json').write_text('so far')\n"
        "os.kill(os.getpid(), 9)"
    )

    def started(command: list[str], **more: Any) -> Any:
        asked.append(command)
        return real([sys.executable, "-c", script, *command[-2:]], **more)

    monkeypatch.setattr(processes.subprocess, "Popen", started)
    ended = run_module("a.module", b"{}", tmp_path, {})
    assert (ended.code, ended.answer, ended.part) == (-signal.SIGKILL, None, b"so far")
    assert asked[0][2:6] == ["-m", "tracekit.walks.end_with_parent", str(os.getpid()), "a.module"]


def gone(pid: int) -> bool:
    """Whether the process ends within a few seconds; a zombie nobody waits for has ended."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


ROOT = Path(__file__).parents[2]


#: A module that says that it runs, and with what.
RUNNING = """
import pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(" ".join([__name__, *sys.argv[2:]]))
time.sleep(float(sys.argv[2]))
"""


#: Starts that module tied to itself, notes its number, and waits.
PARENT = """
import os, pathlib, subprocess, sys, time
command = [sys.executable, "-m", "tracekit.walks.end_with_parent", str(os.getpid()), "running", *sys.argv[2:]]
pathlib.Path(sys.argv[1]).write_text(str(subprocess.Popen(command, start_new_session=True).pid))
time.sleep(60)
"""


def surroundings(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "running.py").write_text(RUNNING)
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}


def wait_for(path: Path) -> str:
    for _ in range(600):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.02)
    raise AssertionError(f"{path} never came")


def start_parent(tmp_path: Path) -> tuple[subprocess.Popen[bytes], int]:
    words = [str(tmp_path / "pid"), str(tmp_path / "runs"), "60"]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, *words], env=surroundings(tmp_path))
    return parent, int(wait_for(tmp_path / "pid"))


def test_it_runs_the_module_as_python_does_with_its_words(tmp_path: Path) -> None:
    words = [str(os.getpid()), "running", str(tmp_path / "runs"), "0"]
    command = [sys.executable, "-m", "tracekit.walks.end_with_parent", *words]
    assert subprocess.run(command, env=surroundings(tmp_path), check=False).returncode == 0
    assert (tmp_path / "runs").read_text() == "__main__ 0"


def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent, child = start_parent(tmp_path)
    wait_for(tmp_path / "runs")
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert gone(child)


def test_it_ends_when_its_parent_was_killed_before_it_could_look(tmp_path: Path) -> None:
    parent, child = start_parent(tmp_path)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert gone(child)
    assert not (tmp_path / "runs").exists()


def test_it_does_nothing_where_another_process_is_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tracekit.walks.end_with_parent", "1", "running", str(tmp_path / "runs"), "0"]
    assert subprocess.run(command, env=surroundings(tmp_path), check=False).returncode != 0
    assert not (tmp_path / "runs").exists()


def test_it_loads_nothing_before_it_is_tied() -> None:
    script = "import sys, tracekit.walks.end_with_parent; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"msgspec", "numpy", "torch", "ctypes", "tracekit.model"} & set(found.stdout.split())
