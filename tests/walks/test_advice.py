"""A run follows its own advice: what is tried, and what is kept of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runs import make_run_folder
from tests.sides import STEADY, scaled

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.model.advice import Action
from tracekit.model.child import ChildForm, ChildJob, ChildResult
from tracekit.model.comparison import Finding
from tracekit.model.note import Noted
from tracekit.model.progress import Silent
from tracekit.model.run import CompileFacts, Run
from tracekit.model.timing import ProcessTimes
from tracekit.model.workload import Request
from tracekit.walks import advice
from tracekit.walks.advice import verify_advice
from tracekit.walks.plan import TimingPlan

TRY = Action("run_again", "try")
GRAPHS = Finding("launch_bound", "warning", {}, 100.0, TRY, changes={"mode": "reduce-overhead"})
ANY_SIZES = Finding("compiled_again", "warning", {}, 100.0, TRY, changes={"dynamic": "True"})


class Child:
    """Stands for `run_child`: the compiled form takes a quarter of the eager one's time."""

    def __init__(self) -> None:
        self.asked: list[ChildJob] = []
        self.environment: dict[str, str] = {}

    def __call__(
        self, job: ChildJob, _draft: Path, _progress: Any, what: str, environment: dict[str, str]
    ) -> ChildResult:
        self.asked.append(job)
        self.environment = environment
        times = [ProcessTimes(us, None, (), "asked number", 0.1) for us in (STEADY, scaled(0.25))]
        facts = CompileFacts(1, 0, 7.5, 0, 0)
        eager, compiled = ChildForm("eager", (), None, times[0]), ChildForm("compiled", (), facts, times[1])
        return ChildResult(2.5, (eager, compiled))


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Child:
    fake = Child()
    monkeypatch.setattr(advice, "run_child", fake)
    return fake


def verified(folder: Path, monkeypatch: pytest.MonkeyPatch, finding: Finding | None) -> Run:
    monkeypatch.setattr(advice, "top_advice", lambda _comparison: finding)
    return verify_advice(TimingPlan(), Request("flux", iterations=10), store.load(folder), folder, Silent())


def test_advice_that_sets_a_variable_is_tried_with_it_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: Child
) -> None:
    variables = {"TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS": "1"}
    breaks = Finding("broken_graphs", "warning", {}, 100.0, TRY, environment=variables)
    run = verified(make_run_folder(tmp_path), monkeypatch, breaks)
    assert child.environment == variables
    assert child.asked[0].request.mode == "default"
    assert run.verified is not None and run.verified.code == "broken_graphs"


def test_the_advised_mode_is_timed_beside_eager_in_a_fresh_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: Child
) -> None:
    run = verified(make_run_folder(tmp_path), monkeypatch, GRAPHS)
    (job,) = child.asked
    assert (job.request.mode, job.forms, job.size) == ("reduce-overhead", ("eager", "compiled"), "full")
    assert job.rule is not None and job.rule.rounds == 10
    assert run.verified is not None
    assert run.verified.speedup == pytest.approx(4.0)
    assert run.verified.predicted_us == pytest.approx(500.125 - 100)
    assert run.verified.compile_seconds == 7.5


def test_a_flag_is_asked_for_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: Child) -> None:
    verified(make_run_folder(tmp_path), monkeypatch, ANY_SIZES)
    assert child.asked[0].request.dynamic is True


def test_without_advice_nothing_is_started_and_the_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: Child
) -> None:
    run = verified(make_run_folder(tmp_path), monkeypatch, None)
    assert child.asked == []
    assert run.verified is None
    assert run.noted == (Noted("no_advice"),)


def test_what_was_tried_is_read_again_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: Child
) -> None:
    folder = make_run_folder(tmp_path)
    run = verified(folder, monkeypatch, GRAPHS)
    store.save(run, folder)
    assert store.load(folder).verified == run.verified


def test_advice_that_cannot_be_followed_is_noted_and_costs_the_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_arguments: object) -> ChildResult:
        raise TracekitError("following the advice: mode reduce-overhead failed (exit code 1): no GPU memory")

    monkeypatch.setattr(advice, "run_child", failing)
    folder = make_run_folder(tmp_path)
    run = verified(folder, monkeypatch, GRAPHS)
    assert run.verified is None
    assert run.forms == store.load(folder).forms
    assert run.noted[-1].code == "advice_failed"
    assert str(run.noted[-1].facts["error"]).endswith("no GPU memory")


def test_what_was_compiled_while_the_advice_was_timed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiling(*arguments: Any) -> ChildResult:
        found = Child()(*arguments)
        forms = tuple(replace(form, times=replace(form.times, during_timing=2)) for form in found.forms if form.times)
        return replace(found, forms=forms)

    monkeypatch.setattr(advice, "run_child", compiling)
    run = verified(make_run_folder(tmp_path), monkeypatch, GRAPHS)
    assert run.verified is not None
    assert run.verified.during_timing == 4
