import os
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from tracekit.doctor import environment

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*environment.SWITCHES, "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("version", "status"), [((3, 10, 9), "problem"), ((3, 11, 0), "ok"), ((3, 13, 2), "ok"), ((3, 99, 0), "warning")]
)
def test_old_pythons_are_refused_and_untried_ones_named(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], status: str
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    assert environment.check_python_version().status == status


@pytest.mark.parametrize("name", environment.SWITCHES)
def test_a_compiler_turned_off_is_a_problem(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for value in (None, "0"):
        if value:
            monkeypatch.setenv(name, value)
        assert environment.check_compile_switches().status == "ok"
    monkeypatch.setenv(name, "1")
    found = environment.check_compile_switches()
    assert (found.status, found.fix) == ("problem", f"unset {name}")


def test_the_token_itself_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest.importorskip("huggingface_hub"), "get_token", lambda: "hf_thisIsSecret")
    found = environment.check_hugging_face_token()
    assert found.status == "ok"
    assert "thisIsSecret" not in repr(found)


@pytest.mark.parametrize(("offline", "fix"), [("0", "hf auth login"), ("1", "unset HF_HUB_OFFLINE")])
def test_no_token_and_being_offline_limit_only_gated_models(
    monkeypatch: pytest.MonkeyPatch, offline: str, fix: str
) -> None:
    monkeypatch.setattr(pytest.importorskip("huggingface_hub"), "get_token", lambda: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    found = environment.check_hugging_face_token()
    assert (found.status, found.fix) == ("warning", fix)


def test_linked_files_are_counted_once(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "weights").write_bytes(b"x" * 100_000)
    (tmp_path / "snapshot").symlink_to(tmp_path / "blobs" / "weights")
    assert 100_000 <= environment.bytes_held(tmp_path) < 101_000


def test_inductors_cache_is_where_the_environment_puts_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "new" / "cache"))
    found = environment.check_inductor_cache()
    assert found.status == "ok"
    assert f"{tmp_path / 'new' / 'cache'}: " in found.message
    assert not (tmp_path / "new").exists()


def test_a_cache_that_cannot_be_written_to_names_the_variable_that_moves_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    assert environment.check_hugging_face_cache().status == "ok"
    # Root may write anywhere, so that the refusal is pretended.
    monkeypatch.setattr("os.access", lambda _path, _mode: False)
    found = environment.check_hugging_face_cache()
    assert (found.status, str(found.fix).startswith("export HF_HOME=")) == ("problem", True)


def test_a_home_that_cannot_be_made_is_no_bug_and_another_folder_mends_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    file = tmp_path / "file"
    file.touch()
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(file / "home" / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(file / "home" / "token"))
    cache, token = environment.check_hugging_face_cache(), environment.check_hugging_face_token()
    assert (cache.status, token.status) == ("problem", "warning")
    assert (str(file) in cache.message, cache.fix) == (True, token.fix)


@pytest.mark.parametrize(
    ("installed", "status", "fix"),
    [
        (None, "problem", environment.INSTALL),
        ("4.40.1", "problem", f"pip install -U 'transformers>={environment.OLDEST['transformers']}'"),
        ("99.1", "ok", None),
    ],
)
def test_a_library_is_there_and_new_enough_or_what_to_install_is_named(
    monkeypatch: pytest.MonkeyPatch, installed: str | None, status: str, fix: str | None
) -> None:
    def version(name: str) -> str:
        if installed is None:
            raise metadata.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(metadata, "version", version)
    found = environment.check_library("transformers")
    assert (found.status, found.fix) == (status, fix)


def test_the_oldest_versions_are_those_that_are_installed_with_the_profile_extra() -> None:
    extra = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["profile"]
    required = dict(found.groups() for each in extra if (found := re.match(r"([\w-]+)>=([\d.]+)", each)))
    for name, oldest in environment.OLDEST.items():
        assert required[name] == oldest, name


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("2.13.0+cpu", "2.9", False),
        ("2.8.1", "2.9", True),
        ("2.9", "2.9.0", False),
        ("2.9.0rc1", "2.9", False),
        ("0.35.2", "0.35", False),
        ("0.9.9", "0.35", True),
        ("10", "9.9", False),
    ],
)
def test_versions_are_compared_as_numbers(version: str, than: str, older: bool) -> None:
    assert environment.is_older(version, than) is older


def test_what_is_no_version_is_refused() -> None:
    with pytest.raises(ValueError, match="does not begin with a number"):
        environment.is_older("unknown", "2.9")


@pytest.mark.parametrize(("load", "status"), [(1.5, "ok"), (8.0, "warning")])
def test_a_busy_host_is_warned_of(load: float, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    found = environment.check_host_load()
    assert (found.status, f"{load:.1f} on 2 cores" in found.message) == (status, True)
