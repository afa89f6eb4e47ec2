"""`tracekit profile my_model.py:build` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.cli.runs import tracekit

from tracekit import store

MODEL = """
import torch
from torch import nn

print("hello from my model")


def build(width: int = 16, fail: bool = False, batch_size: int = 1):
    if fail:
        raise ValueError("told to fail")
    return nn.Linear(width, width).eval(), (torch.randn(batch_size, width),)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "my_model.py").write_text(MODEL)
    return tmp_path


def test_what_a_file_raises_is_shown_as_theirs_with_exit_code_1(place: Path) -> None:
    found = tracekit("profile", "my_model.py:build", "--", "fail=true", folder=place)
    assert found.returncode == 1
    lines = [line for line in found.stderr.splitlines() if not line.startswith(("loading", "building"))]
    assert lines[0] == "Traceback (most recent call last):"
    assert "my_model.py" in lines[1]
    assert "tracekit" not in "".join(lines[:-1]).replace(str(place), "")
    assert lines[-1] == "error: my_model.py:build() raised ValueError: told to fail, at my_model.py:10 in build"
    assert not (place / "traces").exists() or not list((place / "traces").iterdir())


LATER = """
import torch

CALLS = []


def build(last: int = 6):
    layer = torch.nn.Linear(4, 4)

    def call():
        CALLS.append(1)
        if len(CALLS) > last:
            raise ValueError("one call too many")
        return layer(torch.ones(4))

    return call
"""


@pytest.mark.parametrize("last", [1, 6, 20])
def test_what_any_later_call_raises_is_shown_as_theirs_too(last: int, tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text(LATER)
    found = tracekit("profile", "later.py:build", "--iterations", "3", "--", f"last={last}", folder=tmp_path)
    assert found.returncode == 1
    progress, _, shown = found.stderr.partition("Traceback (most recent call last):")
    assert {1: "eager warm-up", 6: "timing", 20: "recording eager"}[last] in progress
    lines = shown.splitlines()
    assert "later.py" in lines[1] and "tracekit" not in "".join(lines[:-1]).replace(str(tmp_path), "")
    assert lines[-1].startswith("error: a call of what later.py:build() returned raised ValueError: one call too many")


def test_a_file_that_is_not_there_is_one_line_before_anything_is_loaded(tmp_path: Path) -> None:
    found = tracekit("profile", "nowhere.py:build", folder=tmp_path)
    assert found.returncode == 1
    assert found.stderr.startswith("error: there is no file nowhere.py here")
    assert len(found.stderr.splitlines()) == 1


def test_an_own_model_can_be_described_like_any_other(place: Path) -> None:
    found = tracekit("workloads", "my_model.py:build", folder=place)
    assert found.returncode == 0
    assert "as build() makes it" in found.stdout


@pytest.mark.slow
def test_an_own_model_is_profiled_reported_and_built_again_in_fresh_processes(place: Path) -> None:
    options = ("--compiled", "--iterations", 3, "--repeat-process", 1, "--json", "-", "--batch-size", 2)
    found = tracekit(
        "profile", "my_model.py:build", *options, "--", "--width", 8, folder=place, CUDA_VISIBLE_DEVICES=""
    )
    assert found.returncode == 0, found.stderr
    comparison = json.loads(found.stdout)
    assert comparison["a"]["settings"]["own"] == {
        "options": ["width=8"],
        "takes": ["batch_size"],
        "in_program": False,
    }
    folder = place / "traces" / "my_model-build-compiled"
    run = store.load(folder)
    assert run.command.endswith("--batch-size 2 -- --width 8")
    assert all(form.timing is not None and len(form.timing.processes) == 1 for form in run.forms)
    assert "hello from my model" in (folder / store.OUTPUT).read_text()
    report = (place / "reports" / "my_model-build-compiled.md").read_text()
    assert "width=8" in report and "random weights" not in report
    for command in ("analyze", "compare", "export"):
        more = ("--csv", "kernels.csv") if command == "export" else ()
        again = tracekit(command, folder, *more, folder=place)
        assert again.returncode == 0, again.stderr
