"""A wing is known to nothing but its line in `tracekit/wings.py`, and can be deleted."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from msgspec import Struct

from tracekit import wings

from .traces import ROOT

PACKAGE = ROOT / "tracekit"
FOLDERS = [PACKAGE / name.rpartition(".")[2] for name in wings.WINGS]
#: What runs the core's tests without any wing: those of a browser and long ones see nothing else of them.
PYTEST = ("pytest", "-p", "no:cacheprovider", "--snapshot-warn-unused")
CHOSEN = ("tests/report", "tests/comparison", "tests/cli", "-m", "not browser and not slow and not hypothesis")


def imported(path: Path) -> Iterator[str]:
    """Every module that a file of the package imports, within functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{path} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("name", wings.WINGS)
def test_no_file_of_the_core_imports_a_wing(name: str) -> None:
    core = [path for path in PACKAGE.rglob("*.py") if not any(map(path.is_relative_to, FOLDERS))]
    assert len(core) > 300
    assert [str(path) for path in core if any(within(each, name) for each in imported(path))] == []


def test_no_wing_imports_another() -> None:
    for folder, name in zip(FOLDERS, wings.WINGS, strict=True):
        others = [wing for wing in wings.WINGS if wing != name]
        known = [each for path in folder.rglob("*.py") for each in imported(path)]
        assert [each for each in known if any(within(each, wing) for wing in others)] == []


def test_no_test_outside_of_a_wing_does() -> None:
    for wing in wings.WINGS:
        own = ROOT / "tests" / wing.rpartition(".")[2]
        theirs = (wing, wing.replace("tracekit", "tests", 1))
        for path in (ROOT / "tests").rglob("*.py"):
            if not path.is_relative_to(own):
                names = re.findall(r"^\s*(?:from|import) (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
                assert [name for name in names if any(within(name, each) for each in theirs)] == [], path


@pytest.mark.parametrize("name", wings.WINGS)
def test_what_a_wing_names_is_there(name: str) -> None:
    wing = importlib.import_module(name).WING
    assert all(isinstance(wings.load(command.place), click.Command) for command in wing.commands.values())
    assert all(issubclass(wings.load(place), Struct) for place in wing.schemas.values())
    assert all(callable(wings.load(place)) for place in (*(wing.together or ()), *filter(None, [wing.beside])))
    assert all(wings.load(place) for place in wing.over_ranks or ())
    assert wing.why_no_traces is None or wings.load(wing.why_no_traces)(str(ROOT)) is None


def without(names: Sequence[str], folder: Path) -> None:
    """A copy of the project that these wings were deleted from."""
    for path in ROOT.iterdir():
        if path.name in ("tracekit", "tests"):
            shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.name != ".git":
            (folder / path.name).symlink_to(path)
    registry = folder / "tracekit" / "wings.py"
    lines = registry.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.strip() not in {f'"{name}",' for name in names}]
    assert len(kept) == len(lines) - len(names)
    registry.write_text("".join(kept), encoding="utf-8")
    for wing in (name.rpartition(".")[2] for name in names):
        shutil.rmtree(folder / "tracekit" / wing)
        shutil.rmtree(folder / "tests" / wing)
        (folder / "tests" / "gpu" / f"test_{wing}_on_gpu.py").unlink(missing_ok=True)


def done(folder: Path, *words: str) -> str:
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    command = [sys.executable, "-m", *words]
    environment = {**own, "PYTHONPATH": str(folder)}
    made = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-1000:]
    return made.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", wings.WINGS)
def test_without_a_wing_everything_is_found_and_a_run_is_read(name: str, tmp_path: Path) -> None:
    without([name], tmp_path)
    done(tmp_path, *PYTEST, "--collect-only", "-qq")
    told = done(tmp_path, "tracekit", "compare", "traces/h100-vit", "--out", str(tmp_path / "vit.html"))
    assert "faster compiled" in told and (tmp_path / "vit.html").is_file()


@pytest.mark.slow
def test_without_any_wing_the_core_is_whole(tmp_path: Path) -> None:
    without(wings.WINGS, tmp_path)
    done(tmp_path, *PYTEST, "-q", *CHOSEN)
