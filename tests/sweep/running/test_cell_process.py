"""A cell's process, here in this one: what it answers, what it leaves, what it says of failures."""

import runpy
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tracekit.errors import CompileError, DoesNotFitError, TheirCodeError, TracekitError
from tracekit.measure.processes import PART, WORD
from tracekit.measure.timed_cell import ProgressFile
from tracekit.model.cell import CellJob, CellRun
from tracekit.model.workload import Request
from tracekit.sweep.cells import CellAnswer
from tracekit.sweep.running import cell_process
from tracekit.sweep.running.cell_process import attempt, describe_failure

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

    monkeypatch.setattr("tracekit.measure.timing.time_forms", fail)


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
    from tracekit.measure.gpu_state import GpuWatch

    settled: list[str] = []
    monkeypatch.setattr(GpuWatch, "settle", lambda _, forms: settled.extend(form.name for form in forms))
    fail_timing(monkeypatch, KeyError("timed"))
    failure = attempt(make_job(), words).failure
    assert settled == ["eager"]
    assert failure is not None and failure.message == "KeyError: 'timed'"


def test_an_own_model_says_what_it_was_made_of(own: Path, words: ProgressFile) -> None:
    answer = attempt(make_job(Request("my_model.py:build", iterations=3)), words)
    assert answer.run is not None
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


def test_a_traceback_does_not_say_where_packages_are_installed() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.nn.Linear(2, 2)(torch.ones(3))
    lines = describe_failure(caught.value, "timing").last_lines
    assert any(line.startswith('  File "torch/nn/modules/linear.py", line ') for line in lines)
