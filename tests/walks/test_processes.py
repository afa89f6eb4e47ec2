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
