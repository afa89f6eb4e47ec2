"""Folders for caches: gone with the cell, and those of killed sweeps with the next one."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tracekit.walks.sweeping import caches_in, cell_place, clear_dead_places

ROOT = Path(__file__).parents[2]

OWNER = """
import time
from tracekit.walks.sweeping import cell_place
with cell_place() as place:
    (place / "inductor").mkdir()
    print(place, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_both_caches_are_in_an_empty_folder_that_goes() -> None:
    with cell_place() as place:
        caches = caches_in(place)
        assert caches == {"TORCHINDUCTOR_CACHE_DIR": f"{place}/inductor", "TRITON_CACHE_DIR": f"{place}/triton"}
        assert not any(Path(each).exists() for each in caches.values())
        (place / "inductor").mkdir()
    assert not place.exists()


def test_what_somebody_still_writes_there_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.rmdir

    def busy(path: Any, **more: Any) -> None:
        if str(path).endswith("inductor"):
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        real(path, **more)

    with cell_place() as place:
        (place / "inductor").mkdir()
        monkeypatch.setattr(os, "rmdir", busy)
    monkeypatch.setattr(os, "rmdir", real)
    assert place.exists()


def test_what_a_killed_sweep_left_goes_and_what_a_living_one_has_stays(temporary: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    owner = subprocess.Popen([sys.executable, "-c", OWNER], env=environment, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    place = Path(owner.stdout.readline().strip())
    clear_dead_places()
    assert (place / "inductor").is_dir()
    os.kill(owner.pid, signal.SIGKILL)
    owner.communicate()
    clear_dead_places()
    assert not place.exists()


def test_a_folder_of_which_nobody_knows_whether_its_owner_lives_stays(temporary: Path) -> None:
    (temporary / "tracekit-cell-unknown").mkdir()
    (temporary / "tracekit-cell-file").write_text("mine")
    other = temporary / "other"
    other.mkdir()
    (other / "lock").touch()
    (temporary / "tracekit-cell-link").symlink_to(other)
    clear_dead_places()
    assert len(list(temporary.glob("tracekit-cell-*"))) == 3
    assert (other / "lock").exists()


def test_without_locks_there_is_a_folder_and_none_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with cell_place() as place:
        clear_dead_places()
        assert place.is_dir()
    assert not place.exists()


def test_a_folder_of_another_user_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = temporary / "tracekit-cell-theirs"
    place.mkdir()
    (place / "lock").touch()
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    clear_dead_places()
    assert place.is_dir()
    monkeypatch.setattr(os, "getuid", lambda: mine)
    clear_dead_places()
    assert not place.exists()
