"""Processes of tracekit's own: how they end, and what is kept of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tracekit.files import MOST_LOG_BYTES
from tracekit.measure import processes
from tracekit.measure.processes import run_module

ROOT = Path(__file__).parents[2]
TIE = "tracekit.measure.end_with_parent"


def python(monkeypatch: pytest.MonkeyPatch, script: str) -> list[list[str]]:
    """Every child runs this script instead, with the last two words of its command; the commands, as they come."""
    real, commands = subprocess.Popen, []

    def started(command: list[str], **more: Any) -> Any:
        commands.append(command)
        return real([sys.executable, "-c", script, *command[-2:]], **more)

    monkeypatch.setattr(processes.subprocess, "Popen", started)
    return commands


def gone(pid: int) -> bool:
    """Whether the process ends within a minute; a zombie nobody waits for has ended."""
    for _ in range(1200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def wait_for(path: Path) -> str:
    for _ in range(3000):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.02)
    raise AssertionError(f"{path} never came")


def late_when(monkeypatch: pytest.MonkeyPatch, is_so: Callable[[], object]) -> None:
    """The time of the next child is up as soon as that is so, however slow the machine is."""
    began = iter([0.0])
    clock = SimpleNamespace(sleep=time.sleep, monotonic=lambda: next(began, 1e9 if is_so() else 0.0))
    monkeypatch.setattr(processes, "time", clock)


#: Starts a process that hears no polite word, notes its number, and then does something else.
STUBBORN = """
import os, pathlib, signal, subprocess, sys, time
deaf = "import pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
deaf += " pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", deaf, {ready!r}])
while not pathlib.Path({ready!r}).exists():
    time.sleep(0.01)
pathlib.Path({note!r}).write_text(str(child.pid))
"""


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """Where what a process started notes its number."""
    return tmp_path / "note"


def stubborn(note: Path, then: str) -> str:
    return STUBBORN.format(ready=str(note.with_name("ready")), note=str(note)) + then


def test_an_interrupt_ends_the_process_and_what_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, note: Path
) -> None:
    python(monkeypatch, stubborn(note, "time.sleep(60)"))

    def interrupted(_seconds: float) -> None:
        if note.exists() and note.read_text():
            monkeypatch.undo()
            raise KeyboardInterrupt

    monkeypatch.setattr(processes.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_module("any", b"{}", tmp_path, {})
    assert gone(int(note.read_text()))


@pytest.mark.parametrize("ends", ["TERM is heard", "TERM is not heard"])
def test_a_second_interrupt_while_the_process_is_asked_to_end_lets_nothing_live_on(
    ends: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN);" if ends == "TERM is not heard" else ""
    script = f"import pathlib, signal, time; {deaf} pathlib.Path({str(ready)!r}).write_text('1'); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    wait_for(ready)
    wait = process.wait

    def interrupted(timeout: float | None = None) -> int:
        if timeout is not None:
            raise KeyboardInterrupt
        return wait()

    monkeypatch.setattr(process, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        processes.end_groups(process)
    assert process.returncode in (-signal.SIGTERM, -signal.SIGKILL)


@pytest.mark.parametrize("then", ["sys.exit('error: broken')", "os.kill(os.getpid(), 9)", "sys.exit(0)"])
def test_what_a_process_started_ends_with_it_however_it_ends(
    then: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, note: Path
) -> None:
    python(monkeypatch, stubborn(note, then))
    run_module("any", b"{}", tmp_path, {})
    assert gone(int(note.read_text()))


def test_one_whose_time_is_up_is_ended_with_what_shrugs_off_a_polite_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, note: Path
) -> None:
    then = "print('so far', flush=True); pathlib.Path(sys.argv[1]).with_name('word').write_text('compiling')"
    python(monkeypatch, stubborn(note, f"{then}; time.sleep(60)"))
    words: list[str] = []
    late_when(monkeypatch, lambda: words)
    ended = run_module("any", b"{}", tmp_path, {}, limit_seconds=60.0, on_word=words.append)
    assert (ended.late, ended.code, ended.answer) == (True, -signal.SIGTERM, None)
    assert (ended.lines, ended.word, words) == (("so far",), "compiling", ["compiling"])
    assert gone(int(note.read_text()))


def test_a_process_is_tied_to_this_one_and_leaves_what_it_had_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left = "pathlib.Path(sys.argv[1]).with_name('part.json').write_text('so far')"
    commands = python(monkeypatch, f"import os, pathlib, sys; {left}; os.kill(os.getpid(), 9)")
    ended = run_module("a.module", b"{}", tmp_path, {})
    assert (ended.code, ended.answer, ended.part) == (-signal.SIGKILL, None, b"so far")
    assert commands[0][2:6] == ["-m", TIE, str(os.getpid()), "a.module"]


def test_of_what_a_process_prints_without_end_both_ends_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python(monkeypatch, f"print('first'); print('x' * {MOST_LOG_BYTES}); print('last')")
    lines = run_module("any", b"{}", tmp_path, {}).lines
    assert (lines[0], lines[-1]) == ("first", "last") and any("left out" in line for line in lines)
    assert sum(map(len, lines)) < MOST_LOG_BYTES


#: A module that says that it runs, and with what.
RUNNING = """
import pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(" ".join([__name__, *sys.argv[2:]]))
time.sleep(float(sys.argv[2]))
"""
#: Starts that module tied to itself, notes its number, and waits.
PARENT = """
import os, pathlib, subprocess, sys, time
command = [sys.executable, "-m", "tracekit.measure.end_with_parent", str(os.getpid()), "running", *sys.argv[2:]]
pathlib.Path(sys.argv[1]).write_text(str(subprocess.Popen(command, start_new_session=True).pid))
time.sleep(60)
"""
LATE = f"""
import os, sys, time
while {TIE!r} in sys.orig_argv and not os.path.exists({{starts!r}}):
    time.sleep(0.01)
"""


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "running.py").write_text(RUNNING)
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}


@pytest.mark.parametrize(("parent", "code"), [(os.getpid, 0), (lambda: 1, 3)], ids=["its own", "another"])
def test_it_runs_the_module_as_python_does_where_that_is_its_parent(
    parent: Any, code: int, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    command = [sys.executable, "-m", TIE, str(parent()), "running", str(tmp_path / "runs"), "0"]
    assert subprocess.run(command, env=surroundings, check=False).returncode == code
    assert [path.read_text() for path in tmp_path.glob("runs")] == ["__main__ 0"] * (code == 0)


@pytest.mark.parametrize("looked", [True, False])
def test_it_ends_when_its_parent_is_killed_also_before_it_could_look(
    looked: bool, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    pid, runs, starts = tmp_path / "pid", tmp_path / "runs", tmp_path / "starts"
    # Python runs this before anything else: the child's own begins when there is `starts`.
    (tmp_path / "sitecustomize.py").write_text(LATE.format(starts=str(starts)))
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(pid), str(runs), "60"], env=surroundings)
    child = int(wait_for(pid))
    if looked:
        starts.touch()
        wait_for(runs)
    parent.kill()
    parent.wait()
    starts.touch()
    assert gone(child)
    assert looked or not runs.exists()


def test_it_loads_nothing_before_it_is_tied() -> None:
    script = f"import sys, {TIE}; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"msgspec", "numpy", "torch", "ctypes", "tracekit.model"} & set(found.stdout.split())
