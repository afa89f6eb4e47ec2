from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from tracekit.doctor.torch_build import INSTALL, OLDEST, check_diffusers, check_transformers, is_older

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
    assert found.fix == f"pip install -U 'transformers>={OLDEST['transformers']}'"


def test_a_new_library_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_version(monkeypatch, "99.1")
    assert (check_diffusers().status, check_diffusers().message) == ("ok", "99.1")


def test_the_oldest_versions_are_those_that_are_installed_with_the_profile_extra() -> None:
    extra = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["profile"]
    required = dict(found.groups() for each in extra if (found := re.match(r"([\w-]+)>=([\d.]+)", each)))
    for name, oldest in OLDEST.items():
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
    assert is_older(version, than) is older


def test_what_is_no_version_is_refused() -> None:
    with pytest.raises(ValueError, match="does not begin with a number"):
        is_older("unknown", "2.9")
