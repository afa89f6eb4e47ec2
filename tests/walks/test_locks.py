"""Locks in a folder that may be a stranger's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracekit.walks.locks import locked


def test_a_lock_is_one_holder_s_at_a_time(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "a.lock", blocking=False) as first,
        locked(tmp_path / "a.lock", blocking=False) as second,
    ):
        assert (first, second) == (True, False)
    with locked(tmp_path / "a.lock", blocking=False) as third:
        assert third


@pytest.mark.parametrize("target", ["victim", "absent", "pipe", "/dev/null"])
def test_a_lock_is_made_and_held_through_no_link(tmp_path: Path, target: str) -> None:
    (tmp_path / "victim").write_text("precious")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.lock").symlink_to(tmp_path / target)
    with pytest.raises(OSError, match=r"a\.lock"), locked(tmp_path / "a.lock", blocking=False):
        raise AssertionError("it was locked")
    assert not (tmp_path / "absent").exists()
    # Nor is anybody else kept from locking the victim.
    with locked(tmp_path / "victim", blocking=False) as ours:
        assert ours


@pytest.mark.parametrize("blocking", [True, False])
def test_a_pipe_in_place_of_a_lock_is_neither_locked_nor_waited_for(tmp_path: Path, blocking: bool) -> None:
    os.mkfifo(tmp_path / "a.lock")
    with pytest.raises(OSError, match="no regular file"), locked(tmp_path / "a.lock", blocking=blocking):
        raise AssertionError("it was locked")
