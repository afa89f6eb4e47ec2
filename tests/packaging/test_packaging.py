import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from tests.cli.runs import ROOT, tracekit_without
from tests.traces import recording

from tracekit import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
EXTRAS = PROJECT["optional-dependencies"]

OF_THE_EXTRA = {"torch", "diffusers", "transformers", "triton"}


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower().replace("_", "-")


def test_the_version_has_one_source() -> None:
    try:
        installed = metadata.version("torch-tracekit")
    except metadata.PackageNotFoundError:
        pytest.skip("run from a checkout that is not installed")
    assert installed == __version__


def test_constraints_pin_exact_public_versions() -> None:
    assert [pin for pin in PINS if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9A-Za-z.]+", pin)] == []


@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_whatever_is_asked_for_is_pinned(extra: str) -> None:
    asked = EXTRAS[extra] if extra else PROJECT["dependencies"]
    assert {name_of(each) for each in asked} <= {name_of(pin) for pin in PINS}


def test_the_core_asks_for_no_torch() -> None:
    assert OF_THE_EXTRA.isdisjoint(map(name_of, PROJECT["dependencies"]))


@pytest.mark.parametrize("target", ["demo", "test", "lint", "types", "imports", "check", "docs"])
def test_make_knows_its_way(target: str) -> None:
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_old_python_gets_one_clear_line(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    for file in ("pyproject.toml", "constraints.txt"):
        (tmp_path / file).touch()
    done = subprocess.run(["make", "test", f"PYTHON={old}"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"{old} is not Python 3.11 or newer" in done.stderr.splitlines()[0]
    assert not (tmp_path / ".venv").exists()


def test_without_torch_profile_names_the_extra(tmp_path: Path) -> None:
    done = tracekit_without(OF_THE_EXTRA, "profile", "flux", folder=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "pip install -c constraints.txt '.[profile]'" in done.stderr.splitlines()[-1]
    assert not list(tmp_path.glob("traces/*"))


def test_without_torch_traces_are_analysed_and_compared(tmp_path: Path) -> None:
    eager, compiled = (str(recording(f"vit_{form}")) for form in ("eager", "default"))
    assert tracekit_without(OF_THE_EXTRA, "analyze", eager, folder=tmp_path).returncode == 0
    assert tracekit_without(OF_THE_EXTRA, "compare", eager, compiled, folder=tmp_path).returncode == 0
