from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from tracekit.doctor import build_tools, model_libraries, torch_build
from tracekit.doctor.build_tools import check_setuptools
from tracekit.doctor.model_libraries import check_diffusers, check_transformers
from tracekit.doctor.torch_build import INSTALL

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def pretend_version(monkeypatch: pytest.MonkeyPatch, installed: str | None) -> None:
    def version(name: str) -> str:
        if installed is None:
            raise metadata.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(metadata, "version", version)


def test_a_missing_library_names_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_version(monkeypatch, None)
    found = check_diffusers()
    assert (found.status, found.fix) == ("problem", INSTALL)


def test_an_old_library_names_the_version_to_get(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_version(monkeypatch, "4.40.1")
    found = check_transformers()
    assert found.status == "problem"
    assert found.fix == f"pip install -U 'transformers>={model_libraries.OLDEST['transformers']}'"


def test_a_new_library_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_version(monkeypatch, "99.1")
    assert (check_diffusers().status, check_diffusers().message) == ("ok", "99.1")


def test_the_oldest_versions_are_those_that_are_installed_with_the_profile_extra() -> None:
    extra = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["profile"]
    required = dict(found.groups() for each in extra if (found := re.match(r"([\w-]+)>=([\d.]+)", each)))
    for name, oldest in {**model_libraries.OLDEST, "torch": torch_build.OLDEST}.items():
        assert required[name] == oldest, name


def test_setuptools_is_missed_only_where_python_brings_none(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_version(monkeypatch, None)
    monkeypatch.setattr(build_tools, "IS_NEEDED", False)
    assert check_setuptools().status == "ok"
    monkeypatch.setattr(build_tools, "IS_NEEDED", True)
    assert (check_setuptools().status, check_setuptools().fix) == ("problem", "pip install setuptools")
