from __future__ import annotations

import shutil
import stat
from importlib import metadata
from pathlib import Path

import pytest

from tracekit.doctor import toolchain
from tracekit.doctor.toolchain import check_c_compiler, check_cpp_compiler, check_setuptools


def make_compiler(folder: Path, script: str) -> Path:
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
def test_a_compiler_that_works_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++")
    found = check_cpp_compiler()
    assert found.status == "ok"
    assert "g++" in found.message


def test_a_missing_compiler_is_a_problem_with_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc")
    found = check_c_compiler()
    assert (found.name, found.status, found.fix) == ("c compiler", "problem", "apt install gcc")
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check_c_compiler().status == "problem"
    assert check_cpp_compiler().status == "problem"


def test_a_compiler_that_fails_is_told_with_its_first_complaint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", str(make_compiler(tmp_path, "echo 'cannot find cc1' >&2; echo more >&2; exit 1")))
    found = check_c_compiler()
    assert found.status == "problem"
    assert found.message.endswith("does not work: cannot find cc1")


def test_a_compiler_with_a_wrapper_in_front_is_understood(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrapper = make_compiler(tmp_path, '[ "$1" = real ] && echo "cc 1.0"')
    monkeypatch.setenv("CC", f"{wrapper} real")
    assert check_c_compiler().message == "cc 1.0"


def test_setuptools_is_missed_only_where_python_brings_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    monkeypatch.setattr(toolchain, "SETUPTOOLS_NEEDED", False)
    assert check_setuptools().status == "ok"
    monkeypatch.setattr(toolchain, "SETUPTOOLS_NEEDED", True)
    assert (check_setuptools().status, check_setuptools().fix) == ("problem", "pip install setuptools")
