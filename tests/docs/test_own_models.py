"""The examples of docs/own-models.md, run as they are printed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.cli.runs import tracekit

from tracekit import store

from .texts import DOCS, blocks

pytest.importorskip("torch")

PAGE = DOCS / "own-models.md"


@pytest.mark.slow
def test_the_ten_line_example_runs_as_printed(tmp_path: Path) -> None:
    code, command = blocks(PAGE, "python")[0], blocks(PAGE, "sh")[0]
    assert len(code.splitlines()) <= 10
    (tmp_path / "my_model.py").write_text(code)
    first, *words = shlex.split(command)
    assert first == "tracekit"
    at = words.index("--")
    found = tracekit(*words[:at], "--iterations", 3, *words[at:], folder=tmp_path, CUDA_VISIBLE_DEVICES="")
    assert found.returncode == 0, found.stderr
    run = store.load(tmp_path / "traces" / "my_model-build-compiled")
    assert run.settings.own is not None and run.settings.own.options == ("layers=4",)
    facts = run.forms[1].compilation
    assert facts is not None and facts.graphs == 1
    assert (tmp_path / "reports" / "my_model-build-compiled.html").is_file()


@pytest.mark.slow
def test_the_python_example_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(blocks(PAGE, "python")[0], names)
    model, (tokens,) = names["build"](width=32)  # type: ignore[operator]
    exec(blocks(PAGE, "python")[2], {"model": model, "tokens": tokens})
    assert (tmp_path / "reports" / "Sequential-compiled.html").is_file()
