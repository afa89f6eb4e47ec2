"""Processes that end with the one that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .test_processes import gone

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
