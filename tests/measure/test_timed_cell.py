"""A cell measured in this process, and that calls are made below one large frame wherever they are timed."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.stack_depths import count_crossings

import tracekit
from tracekit.measure.plan import Plan
from tracekit.measure.profiling import profile
from tracekit.measure.timed_cell import ProgressFile, measure_cell
from tracekit.measure.timing_process import work
from tracekit.model.cell import CellJob
from tracekit.model.child import ChildJob
from tracekit.model.progress import Silent
from tracekit.model.timing import StoppingRule
from tracekit.model.workload import Request

pytest.importorskip("torch")

#: Notes of each call how often Python's stack came to the end of a chunk.
MODEL = """
import torch
from pathlib import Path
from tests.stack_depths import count_crossings

def build():
    def call():
        with Path("crossings").open("a") as told:
            told.write(f"{count_crossings()}\\n")
        return torch.ones(1)
    return call
"""


REQUEST = Request("my_model.py:build", iterations=1)


def in_the_runs_own_process() -> None:
    profile(Plan(REQUEST, ("eager",), Path("run"), False, "tracekit profile my_model.py:build"), Silent(), print)


def in_a_fresh_process_of_the_run() -> None:
    work(ChildJob(REQUEST, "full", "cpu", ("eager",), StoppingRule(1, 0.01, 1.0, 1), 0))


def in_a_cell() -> None:
    measure_cell(CellJob(REQUEST, ("eager",), None, None, 0), ProgressFile(Path("word")), lambda _: None)


def handed_over_in_a_program() -> None:
    built = runpy.run_path("my_model.py")["build"]()
    tracekit.profile(built, compile=False, iterations=1, out="run")


WALKS = (in_the_runs_own_process, in_a_fresh_process_of_the_run, in_a_cell, handed_over_in_a_program)


@pytest.mark.parametrize("walk", WALKS)
def test_calls_have_room(walk: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not count_crossings():
        pytest.skip("this Python keeps the chunk")
    (tmp_path / "my_model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    walk()
    told = [int(line) for line in (tmp_path / "crossings").read_text().splitlines()]
    # The first call of all may be a look whether the model can be called, which nobody times.
    assert len(told) > 3 and not any(told[1:])


def test_words_are_the_phase_and_its_detail(tmp_path: Path) -> None:
    words = ProgressFile(tmp_path / "word")
    words.phase("compiling")
    words.detail("graph 3")
    assert words.path.read_text() == "compiling, graph 3"
    assert words.now == "compiling"
