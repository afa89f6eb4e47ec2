"""Fresh processes of a run: what they are asked, and what is kept of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.sides import make_form, make_run

from tracekit.errors import TheirCodeError, TracekitError
from tracekit.model.child import ChildForm, ChildJob, ChildResult
from tracekit.model.progress import Silent
from tracekit.model.run import CompileFacts
from tracekit.model.timing import FormTiming, ProcessTimes, StoppingRule
from tracekit.model.workload import Request
from tracekit.walks import timing_process
from tracekit.walks.plan import TimingPlan
from tracekit.walks.timing_process import measure_in_processes, run_child, work

from .test_processes import python

JOB = ChildJob(Request("mlp"), "tiny", "cpu", ("eager",), StoppingRule(3, 0.01, 30.0, 3), 1)
TIMES = ProcessTimes((1.0, 2.0), None, (), "asked number", 0.1)


def two_forms() -> Any:
    timing = FormTiming("asked number", None, None, 1.0)
    return make_run(forms=tuple(replace(make_form(name), timing=timing) for name in ("eager", "compiled")))


class Children:
    """Stands for `run_child`: remembers what was asked, and answers at once."""

    def __init__(self) -> None:
        self.asked: list[tuple[ChildJob, str, dict[str, str]]] = []

    def __call__(self, job: ChildJob, _draft: Path, _progress: Any, what: str, environment: Any = None) -> ChildResult:
        self.asked.append((job, what, dict(environment or {})))
        caches = [path for name, path in (environment or {}).items() if name == "TORCHINDUCTOR_CACHE_DIR"]
        hits = 0
        for path in caches:
            hits = int(Path(path).is_dir())
            Path(path).mkdir(exist_ok=True)
        facts = CompileFacts(1, 0, 1.0, hits, 0)
        return ChildResult(
            2.5,
            tuple(
                ChildForm(name, (5.0, 1.0), facts if name == "compiled" else None, TIMES if job.rule else None)
                for name in job.forms
            ),
        )


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    fake = Children()
    monkeypatch.setattr(timing_process, "run_child", fake)
    return fake


def last_of(plan: TimingPlan, run: Any, tmp_path: Path) -> Any:
    return list(measure_in_processes(plan, Request("flux", iterations=4), run, tmp_path, Silent()))[-1]


def test_starts_are_eager_then_no_cache_then_what_that_left_in_it(children: Children, tmp_path: Path) -> None:
    run = last_of(TimingPlan(startup=True), two_forms(), tmp_path)
    eager, compiled = run.forms
    assert [each.kind for each in eager.startups] == ["eager"]
    assert [(each.kind, each.cache_hits) for each in compiled.startups] == [
        ("compiled_no_cache", 0),
        ("compiled_warm_cache", 1),
    ]
    assert [job.rule for job, _, _ in children.asked] == [None] * 3
    cold, warm = (environment for _, _, environment in children.asked[1:])
    assert cold == warm
    assert set(cold) == {"TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"}
    assert not Path(cold["TORCHINDUCTOR_CACHE_DIR"]).exists(), "the cache goes with the run"


def test_repeats_time_all_forms_by_the_same_rule_in_orders_of_their_own(children: Children, tmp_path: Path) -> None:
    run = last_of(TimingPlan(repeats=2), two_forms(), tmp_path)
    eager, compiled = run.forms
    assert eager.timing.processes == (TIMES, TIMES)
    assert compiled.timing.processes == (replace(TIMES, cache_hits=0),) * 2
    jobs = [job for job, _, _ in children.asked]
    assert [job.forms for job in jobs] == [("eager", "compiled")] * 2
    assert len({job.order_seed for job in jobs}) == 2
    assert {job.rule.rounds for job in jobs if job.rule} == {4}
    assert all(environment == {} for _, _, environment in children.asked), "repeats use the user's own cache"


def test_a_run_of_one_form_starts_that_form_alone(children: Children, tmp_path: Path) -> None:
    run = two_forms()
    last_of(TimingPlan(startup=True), replace(run, forms=run.forms[:1]), tmp_path)
    assert [job.forms for job, _, _ in children.asked] == [("eager",)]


def test_a_process_that_fails_is_told_by_its_last_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python(monkeypatch, "print('chatter'); import sys; sys.exit('error: no GPU memory')")
    with pytest.raises(TracekitError, match=r"repeat 1 failed \(exit code 1\): .*no GPU memory"):
        run_child(JOB, tmp_path, Silent(), "repeat 1")
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_killed_is_said_to_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(TracekitError, match=r"killed by signal 9.*it printed nothing"):
        run_child(JOB, tmp_path, Silent(), "repeat 1")


def test_a_child_builds_what_a_configuration_names(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tests.workloads.configurations import save_transformers

    request = Request(f"hf:{save_transformers('BertForMaskedLM', tmp_path)}", seq_length=4)
    result = work(replace(JOB, request=request, size="small"))
    assert [form.name for form in result.forms] == ["eager"]
    assert result.forms[0].times is not None and len(result.forms[0].times.wall_us) == 3


def test_what_an_own_model_raises_in_a_child_is_told_as_theirs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "broken.py").write_text(
        "def build():\n    def call():\n        raise ValueError('no')\n    return call\n"
    )
    request = Request(f"{tmp_path / 'broken.py'}:build")
    with pytest.raises(TheirCodeError, match="returned raised ValueError: no, at ") as said:
        work(replace(JOB, request=request, size="own"))
    assert "tracekit" not in said.value.traceback.replace(str(tmp_path), "")
