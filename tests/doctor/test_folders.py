from __future__ import annotations

from pathlib import Path

import pytest

from tracekit.doctor.folders import bytes_held, described, is_writable, nearest_existing
from tracekit.doctor.inductor_cache import check_inductor_cache


def test_linked_files_are_counted_once(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "weights").write_bytes(b"x" * 100_000)
    (tmp_path / "snapshot").symlink_to(tmp_path / "blobs" / "weights")
    assert 100_000 <= bytes_held(tmp_path) < 101_000


def test_a_folder_not_made_yet_is_described_as_such(tmp_path: Path) -> None:
    assert nearest_existing(tmp_path / "a" / "b") == tmp_path
    assert "not made yet" in described(tmp_path / "a" / "b")
    assert is_writable(tmp_path / "a" / "b")


def test_inductors_cache_is_where_the_environment_puts_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    found = check_inductor_cache()
    assert found.status == "ok"
    assert str(tmp_path / "cache") in found.message
    assert not (tmp_path / "cache").exists()
