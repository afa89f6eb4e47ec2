"""A cell's process, here in this one: what it answers, what it leaves, what it says of failures."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.stack_depths import count_crossings

import tracekit
from tracekit.errors import CompileError, DoesNotFitError, TheirCodeError, TracekitError
from tracekit.model.child import ChildJob
from tracekit.model.progress import Silent
from tracekit.model.timing import StoppingRule
from tracekit.model.workload import Request
from tracekit.sweep.cells import CellAnswer, CellJob, CellRun
from tracekit.walks import cell_process
from tracekit.walks.cell_process import ProgressFile, attempt, describe_failure
from tracekit.walks.plan import Plan
from tracekit.walks.processes import PART, WORD
from tracekit.walks.profiling import profile
from tracekit.walks.timing_process import work

torch = pytest.importorskip("torch")

OWN = """
import torch
from torch import nn
from neighbour import WIDTH

def build():
    return nn.Linear(WIDTH, WIDTH).eval(), (torch.randn(1, WIDTH),)

CALLS = []

def build_later():
    def call():
        CALLS.append(1)
        if len(CALLS) > 2:
            raise ValueError("too many")
    return call
"""


MLP = Request("mlp", size="tiny", iterations=3)


def make_job(asked: Request = MLP) -> CellJob:
    return CellJob(asked, ("eager",), None, None, 7)


@pytest.fixture
def words(tmp_path: Path) -> ProgressFile:
    return ProgressFile(tmp_path / WORD)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_model.py").write_text(OWN)
    (tmp_path / "neighbour.py").write_text("WIDTH = 8\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "neighbour", raising=False)
    return tmp_path


def fail_timing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("tracekit.capture.timing.time_forms", fail)


def test_the_answer_is_written_and_the_same_is_left_as_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tmp_path / "job.json"
    job.write_bytes(msgspec.json.encode(make_job()))
    monkeypatch.setattr("sys.argv", ["cell_child", str(job), str(tmp_path / "answer.json"), "1000.0"])
    runpy.run_path(cell_process.__file__, run_name="__main__")
    answer = msgspec.json.decode((tmp_path / "answer.json").read_bytes(), type=CellAnswer)
    assert answer.failure is None and answer.run is not None
    (form,) = answer.run.forms
    assert form.name == "eager" and form.times is not None and len(form.times.wall_us) == 3
    assert answer.run.rule.rounds == 3
    assert answer.run.sources == ()
    assert 1000.0 < answer.run.load_seconds < 1100.0, "it counts what was imported before the process was forked"
    assert msgspec.json.decode((tmp_path / PART).read_bytes(), type=CellRun) == answer.run
    assert (tmp_path / WORD).read_text().startswith("timing")


def test_what_was_found_out_before_a_failure_is_kept_each_time(
    words: ProgressFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_timing(monkeypatch, RuntimeError("the driver\nis gone"))
    kept: list[CellRun] = []
    answer = attempt(make_job(), words, kept.append)
    assert [[form.name for form in run.forms] for run in kept] == [[], ["eager"]]
    assert answer.run == kept[-1]
    assert answer.run.forms[0].times is None and answer.run.forms[0].warmup_us
    assert answer.failure is not None
    assert (answer.failure.kind, answer.failure.message) == ("failed", "RuntimeError: the driver")
    assert answer.failure.during == "measuring memory"
    assert answer.failure.last_lines[-2:] == ("RuntimeError: the driver", "is gone")


@pytest.mark.parametrize(
    ("asked", "mend"),
    [
        (Request("mlp", size="tiny", iterations=3), "pass a smaller --batch-size, or "),
        (Request("my_model.py:build", iterations=3), "use a smaller model or smaller inputs, or "),
    ],
    ids=lambda each: each.workload if isinstance(each, Request) else "",
)
def test_whoever_runs_out_of_memory_is_told_what_helps(
    own: Path, words: ProgressFile, monkeypatch: pytest.MonkeyPatch, asked: Request, mend: str
) -> None:
    fail_timing(monkeypatch, torch.OutOfMemoryError("Tried to allocate 20.00 GiB"))
    failure = attempt(make_job(asked), words).failure
    assert failure is not None
    assert failure.kind == "out_of_memory"
    assert mend in failure.message


def test_every_form_is_settled_before_any_is_timed(words: ProgressFile, monkeypatch: pytest.MonkeyPatch) -> None:
    from tracekit.walks.observers import FormObserver

    settled: list[str] = []
    monkeypatch.setattr(FormObserver, "settle", lambda _, forms: settled.extend(form.name for form in forms))
    fail_timing(monkeypatch, KeyError("timed"))
    failure = attempt(make_job(), words).failure
    assert settled == ["eager"]
    assert failure is not None and failure.message == "KeyError: 'timed'"


def test_an_own_model_says_what_it_was_made_of(own: Path, words: ProgressFile) -> None:
    answer = attempt(make_job(Request("my_model.py:build", iterations=3)), words)
    assert answer.run is not None and answer.run.sources is not None
    assert [each.name for each in answer.run.sources] == ["my_model.py", "neighbour.py"]


def test_what_an_own_model_raises_comes_with_its_traceback(own: Path, words: ProgressFile) -> None:
    failure = attempt(make_job(Request("my_model.py:build_later", iterations=3)), words).failure
    assert failure is not None
    assert failure.message.startswith("a call of what my_model.py:build_later() returned raised ValueError: too many, ")
    assert failure.during == "timing"
    assert failure.last_lines[0] == "Traceback (most recent call last):"
    assert any(line.startswith("    raise ValueError(") for line in failure.last_lines)
    assert "tracekit" not in "".join(failure.last_lines).replace(str(own), "")


def test_a_failure_of_the_compiler_keeps_its_line_its_hint_and_torch_text() -> None:
    error = CompileError("model does not compile as one graph", ("  if x.sum() > 0:", "  torch's hint: use cond"))
    error.__cause__ = RuntimeError("all that torch said")
    found = describe_failure(error, "compiling")
    assert found.last_lines[:2] == ("  if x.sum() > 0:", "  torch's hint: use cond")
    assert found.last_lines[-1] == "RuntimeError: all that torch said"


@pytest.mark.parametrize(
    ("error", "kind", "message", "lines"),
    [
        (TracekitError("one line\nof two", ("a table",)), "failed", "one line of two", ("a table",)),
        (TheirCodeError("theirs", "Traceback\nValueError: x"), "failed", "theirs", ("Traceback", "ValueError: x")),
        (DoesNotFitError("too large"), "out_of_memory", "too large", ()),
        (MemoryError(), "out_of_memory", "MemoryError", ("MemoryError",)),
        (KeyError("name"), "failed", "KeyError: 'name'", ("KeyError: 'name'",)),
    ],
)
def test_a_failure_is_one_line_and_what_else_it_says(
    error: Exception, kind: str, message: str, lines: tuple[str, ...]
) -> None:
    found = describe_failure(error, "building")
    assert (found.kind, found.message, found.last_lines, found.during) == (kind, message, lines, "building")


def test_words_are_the_phase_and_its_detail(words: ProgressFile) -> None:
    words.phase("compiling")
    words.detail("graph 3")
    assert words.path.read_text() == "compiling, graph 3"
    assert words.now == "compiling"


def test_a_traceback_does_not_say_where_packages_are_installed() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.nn.Linear(2, 2)(torch.ones(3))
    lines = describe_failure(caught.value, "timing").last_lines
    assert any(line.startswith('  File "torch/nn/modules/linear.py", line ') for line in lines)


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


def in_a_cell_of_a_sweep() -> None:
    assert attempt(CellJob(REQUEST, ("eager",), None, None, 0), ProgressFile(Path("word"))).failure is None


def handed_over_in_a_program() -> None:
    built = runpy.run_path("my_model.py")["build"]()
    tracekit.profile(built, compile=False, iterations=1, out="run")


WALKS = (in_the_runs_own_process, in_a_fresh_process_of_the_run, in_a_cell_of_a_sweep, handed_over_in_a_program)


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
