from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tracekit.doctor.environment import (
    SWITCHES,
    bytes_held,
    check_compile_switches,
    check_hugging_face_cache,
    check_hugging_face_token,
    check_inductor_cache,
    check_python_version,
)


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SWITCHES, "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("version", "status"), [((3, 10, 9), "problem"), ((3, 11, 0), "ok"), ((3, 13, 2), "ok"), ((3, 99, 0), "warning")]
)
def test_old_pythons_are_refused_and_untried_ones_named(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], status: str
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    assert check_python_version().status == status


def test_a_switch_that_is_not_set_is_ok() -> None:
    assert check_compile_switches().status == "ok"


def test_a_switch_at_zero_is_not_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "0")
    assert check_compile_switches().status == "ok"


@pytest.mark.parametrize("name", SWITCHES)
def test_a_compiler_turned_off_is_a_problem(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    found = check_compile_switches()
    assert (found.status, found.fix) == ("problem", f"unset {name}")


def test_the_token_itself_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest.importorskip("huggingface_hub"), "get_token", lambda: "hf_thisIsSecret")
    found = check_hugging_face_token()
    assert found.status == "ok"
    assert "thisIsSecret" not in repr(found)


def test_no_token_limits_only_gated_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest.importorskip("huggingface_hub"), "get_token", lambda: None)
    found = check_hugging_face_token()
    assert (found.status, found.fix) == ("warning", "hf auth login")


def test_being_offline_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert check_hugging_face_token().fix == "unset HF_HUB_OFFLINE"


def test_linked_files_are_counted_once(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "weights").write_bytes(b"x" * 100_000)
    (tmp_path / "snapshot").symlink_to(tmp_path / "blobs" / "weights")
    assert 100_000 <= bytes_held(tmp_path) < 101_000


def test_inductors_cache_is_where_the_environment_puts_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "new" / "cache"))
    found = check_inductor_cache()
    assert found.status == "ok"
    assert f"{tmp_path / 'new' / 'cache'}: not made yet" in found.message
    assert not (tmp_path / "new").exists()


def test_a_cache_that_cannot_be_written_to_names_the_variable_that_moves_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    assert check_hugging_face_cache().status == "ok"
    # Root may write anywhere, so that the refusal is pretended.
    monkeypatch.setattr("os.access", lambda _path, _mode: False)
    found = check_hugging_face_cache()
    assert (found.status, found.fix) == ("problem", "export HF_HOME=A-FOLDER-OF-YOURS")
