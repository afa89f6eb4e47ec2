"""The lines of a user's file, and what is read of it for a run that came from anybody."""

import os
from pathlib import Path

import pytest

from tracekit.walks.single_run import MOST_BYTES, read_source

TEXT = "def forward(x):\n    x = x + 1\n    return x.item()\n"


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(TEXT)
    return tmp_path / "model.py"


def test_the_lines_around_one_are_those_of_the_file_here() -> None:
    source = read_source("model.py:2", "x = x + 1")
    assert source is not None
    assert (source.first, source.lines, source.marked) == (1, tuple(TEXT.splitlines()), 2)
    last = read_source("model.py:3", "return x.item()")
    assert last is not None and (last.first, len(last.lines)) == (2, 2)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        *((f"model.py:{number}", "x = x + 1") for number in ("3", "0", "4", "-1", "", "9" * 5000, "²")),
        ("model.py:2", "x"),
        ("gone.py:2", "x = x + 1"),
        ("{folder}/outside.py:2", "x = x + 1"),
        ("../outside.py:2", "x = x + 1"),
        ("linked.py:2", "x = x + 1"),
        ("pipe.py:2", "x = x + 1"),
        ("large.py:2", "x = x + 1"),
        ("model.txt:2", "x = x + 1"),
        ("mo\0del.py:2", "x = x + 1"),
        ("a" * 5000 + ".py:2", "x = x + 1"),
    ],
)
def test_what_has_other_code_or_lies_elsewhere_is_not_shown(
    place: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside.py").write_text(TEXT)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in ("model.py", "model.txt"):
        Path(name).write_text(TEXT)
    Path("linked.py").symlink_to(tmp_path / "outside.py")
    Path("large.py").write_text(TEXT + "#" * MOST_BYTES)
    os.mkfifo("pipe.py")
    assert read_source(place.format(folder=tmp_path), line) is None
