"""Which lines of the user's model a page may show."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.sides import make_run, make_settings

from tracekit.model.provenance import EagerOp, EagerOps, SourceLines
from tracekit.model.run import Run, UserModel
from tracekit.reading import model_code
from tracekit.reading.model_code import read_model_code

CODE = "def forward(x):\n    y = x + 1\n    return y\n"
STARTED = "2026-11-21T19:00:00+00:00"
BEFORE, AFTER = 1_700_000_000, 1_900_000_000


def told(*places: str | None) -> EagerOps:
    return EagerOps(1, "2.13.0", tuple(EagerOp("aten.add.Tensor", "", place, (), 0, None) for place in places))


def run_of(workload: str, own: UserModel | None = UserModel()) -> Run:  # noqa: B008 - it is frozen.
    return make_run(started=STARTED, settings=replace(make_settings(), workload=workload, own=own))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model in it, in which commands are called."""
    folder = tmp_path / "project"
    (folder / "models" / "parts").mkdir(parents=True)
    for path in (tmp_path / "secret.py", folder / "outer.py", *(folder / "models" / n for n in ("m.py", "parts/p.py"))):
        path.write_text(CODE)
        os.utime(path, (BEFORE, BEFORE))
    monkeypatch.chdir(folder)
    return folder


def test_the_lines_around_each_place_in_the_model_s_folder_are_read() -> None:
    found = read_model_code(run_of("models/m.py:build"), told("m.py:2", "parts/p.py:1", None, "m.py:99", "m.py:2"))
    assert found == {
        "m.py:2": SourceLines(1, 2, tuple(CODE.splitlines()), changed=False),
        "parts/p.py:1": SourceLines(1, 1, tuple(CODE.splitlines()[:2]), changed=False),
    }


def test_a_file_that_was_written_after_the_run_is_said_to_have_changed(project: Path) -> None:
    os.utime(project / "models" / "m.py", (AFTER, AFTER))
    assert read_model_code(run_of("models/m.py:build"), told("m.py:2"))["m.py:2"].changed


@pytest.mark.parametrize(
    "workload", ["models.m:build", "step"], ids=["a module, which is found from the current folder", "in a program"]
)
def test_a_model_without_a_file_of_its_own_is_in_the_current_folder(workload: str) -> None:
    own = UserModel(in_program=workload == "step")
    assert [*read_model_code(run_of(workload, own), told("models/m.py:2", "m.py:2"))] == ["models/m.py:2"]


OUTSIDE: dict[str, Callable[[Path], tuple[str, str]]] = {
    "above": lambda _: ("models/m.py:build", "../outer.py:1"),
    "absolute": lambda project: ("models/m.py:build", f"{project / 'outer.py'}:1"),
    "a model above the current folder": lambda _: ("../secret.py:build", "secret.py:1"),
    "an absolute model": lambda project: (f"{project.parent / 'secret.py'}:build", "secret.py:1"),
    "a link": lambda _: ("models/m.py:build", "link.py:1"),
    "a pipe": lambda _: ("models/m.py:build", "pipe.py:1"),
    "no Python": lambda _: ("models/m.py:build", "notes.txt:1"),
    "no text": lambda _: ("models/m.py:build", "binary.py:1"),
    "too large": lambda _: ("models/m.py:build", "large.py:1"),
    "a zero": lambda _: ("models/m.py:build", "a\0b.py:1"),
    "a zero in the model": lambda _: ("models/\0m.py:build", "m.py:1"),
    "no number": lambda _: ("models/m.py:build", "m.py:one"),
    "line 0": lambda _: ("models/m.py:build", "m.py:0"),
}


@pytest.mark.parametrize("place", OUTSIDE)
def test_nothing_else_is_read(project: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr(model_code, "MOST_BYTES", len(CODE))
    folder = project / "models"
    (folder / "link.py").symlink_to(project / "outer.py")
    os.mkfifo(folder / "pipe.py")
    (folder / "notes.txt").write_text(CODE)
    (folder / "binary.py").write_bytes(b"\xff\xfe\x00")
    (folder / "large.py").write_text(CODE + "#")
    workload, line = OUTSIDE[place](project)
    assert read_model_code(run_of(workload), told(line)) == {}


def test_models_of_libraries_and_runs_that_do_not_tell_have_no_code() -> None:
    assert read_model_code(run_of("vit", own=None), told("models/m.py:2")) == {}
    assert read_model_code(run_of("models/m.py:build"), None) == {}
