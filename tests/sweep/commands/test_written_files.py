"""A sweep's report replaces nothing but an older one of the same, unless --force is given."""

from pathlib import Path

import pytest
from tests.sweep.sweeps import compiled_cell, make_asked, make_result

from tracekit.sweep.running.folder import SweepFolder

from ...cli.test_written_files import (
    assert_its_own_alone_is_replaced,
    assert_refused_where_a_file_is,
    assert_what_is_no_report_stays,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(folder: Path, minute: int = 4) -> list[str]:
    """A sweep, and the command that makes its report."""
    folder.mkdir()
    cells = SweepFolder(folder / "swept")
    cells.check()
    asked = make_asked([compiled_cell()])
    told = asked.calls[0]
    cells.ask(None, asked.cells, type(told)(f"tracekit sweep vit --seed {minute}", told.started, 0, *[None] * 4))
    cells.save(make_result(compiled_cell()))
    return ["sweep", "--show", str(folder / "swept"), "--out"]


def test_its_own_report_is_replaced_and_that_of_something_else_is_not(folder: Path) -> None:
    assert_its_own_alone_is_replaced(make(folder / "a"), make(folder / "b", minute=5))


@pytest.mark.parametrize("name", ["notes.html", "notes.md"])
def test_what_is_no_report_stays_whether_it_was_named_or_not(folder: Path, name: str) -> None:
    assert_what_is_no_report_stays(make(folder / "a"), folder, name)


@pytest.mark.parametrize("kind", ["html", "md"])
def test_what_is_to_begin_is_refused_where_either_file_is_there(folder: Path, kind: str) -> None:
    assert_refused_where_a_file_is(folder, ("sweep", "mlp"), "sweep-mlp", kind)
