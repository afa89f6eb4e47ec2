"""Fresh processes of a run: what they are asked, and what is kept of them."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.runs import make_run_folder
from tests.sides import STEADY, make_form, make_run, scaled

from tracekit import store
from tracekit.errors import TheirCodeError, TracekitError
from tracekit.measure import timing_process
from tracekit.measure.plan import TimingPlan
from tracekit.measure.timing_process import measure_in_processes, run_child, verify_advice, work
from tracekit.model.child import ChildForm, ChildJob, ChildResult
from tracekit.model.comparison import Finding
from tracekit.model.progress import Silent
from tracekit.model.run import CompileFacts, Run
from tracekit.model.timing import FormTiming, ProcessTimes, StoppingRule
from tracekit.model.workload import Request
from tracekit.statements.advice import RunAgain
from tracekit.statements.findings.waiting import LaunchBound
from tracekit.statements.noted import AdviceFailed, NoAdvice

from .test_processes import python

JOB = ChildJob(Request("mlp"), "tiny", "cpu", ("eager",), StoppingRule(3, 0.01, 30.0, 3), 1)
TIMES = {
    name: ProcessTimes(us, None, (), "asked number", 0.1)
    for name, us in (("eager", STEADY), ("compiled", scaled(0.25)))
}


def two_forms() -> Any:
    timing = FormTiming("asked number", None, None, 1.0)
    return make_run(forms=tuple(replace(make_form(name), timing=timing) for name in ("eager", "compiled")))


class Children:
    """Stands for `run_child`: remembers what was asked, and answers at once: compiled is four times as fast."""

    def __init__(self) -> None:
        self.asked: list[tuple[ChildJob, dict[str, str]]] = []
        self.during_timing = 0
        self.error: TracekitError | None = None

    def __call__(self, job: ChildJob, _draft: Path, _progress: Any, what: str, environment: Any = None) -> ChildResult:
        if self.error:
            raise self.error
        self.asked.append((job, dict(environment or {})))
        cache = Path((environment or {}).get("TORCHINDUCTOR_CACHE_DIR", "."))
        facts = CompileFacts(1, 0, 7.5, int(cache != Path() and cache.is_dir()), 0)
        cache.mkdir(exist_ok=True)
        times = {name: replace(TIMES[name], during_timing=self.during_timing) if job.rule else None for name in TIMES}
        forms = (ChildForm(name, (5.0,), facts if name == "compiled" else None, times[name]) for name in job.forms)
        return ChildResult(2.5, tuple(forms))


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
    assert [job.rule for job, _ in children.asked] == [None] * 3
    cold, warm = (environment for _, environment in children.asked[1:])
    assert cold == warm
    assert set(cold) == {"TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"}
    assert not Path(cold["TORCHINDUCTOR_CACHE_DIR"]).exists(), "the cache goes with the run"


def test_repeats_time_all_forms_by_the_same_rule_in_orders_of_their_own(children: Children, tmp_path: Path) -> None:
    run = last_of(TimingPlan(repeats=2), two_forms(), tmp_path)
    eager, compiled = run.forms
    assert eager.timing.processes == (TIMES["eager"],) * 2
    assert compiled.timing.processes == (replace(TIMES["compiled"], cache_hits=0),) * 2
    jobs = [job for job, _ in children.asked]
    assert [job.forms for job in jobs] == [("eager", "compiled")] * 2
    assert len({job.order_seed for job in jobs}) == 2
    assert {job.rule.rounds for job in jobs if job.rule} == {4}
    assert all(environment == {} for _, environment in children.asked), "repeats use the user's own cache"


def test_a_run_of_one_form_starts_that_form_alone(children: Children, tmp_path: Path) -> None:
    run = two_forms()
    last_of(TimingPlan(startup=True), replace(run, forms=run.forms[:1]), tmp_path)
    assert [job.forms for job, _ in children.asked] == [("eager",)]


#: A model prints, and then there is an error.
CHATTER = """
import sys, pathlib
from tracekit.errors import TracekitError
from tracekit.measure import timing_process
def work(job):
    print("chatter")
    raise TracekitError("no GPU memory")
timing_process.work = work
timing_process.main(*map(pathlib.Path, sys.argv[-2:]))
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (CHATTER, "no GPU memory"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL, not by .*it printed nothing"),
        # What it printed is no cause.
        ("import os; print('step', 9, flush=True); os._exit(7)", "exit code 7; it printed last: step 9"),
    ],
)
def test_a_process_that_fails_is_told_by_its_last_lines(
    script: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python(monkeypatch, script)
    with pytest.raises(TracekitError, match=f"repeat 1 failed: {said}"):
        run_child(JOB, tmp_path, Silent(), "repeat 1")
    assert list(tmp_path.iterdir()) == []


def test_a_child_builds_what_a_configuration_names(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tests.workloads.configurations import save

    request = Request(save("BertForMaskedLM", tmp_path), seq_length=4)
    result = work(replace(JOB, request=request, size="small"))
    assert [form.name for form in result.forms] == ["eager"]
    assert result.forms[0].times is not None and len(result.forms[0].times.wall_us) == 3


@pytest.mark.parametrize("raised", ["ValueError('no')", "SystemExit(0)"])
def test_what_an_own_model_raises_in_a_child_is_told_as_theirs(raised: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "broken.py").write_text(f"def build():\n    def call():\n        raise {raised}\n    return call\n")
    request = Request(f"{tmp_path / 'broken.py'}:build")
    with pytest.raises(TheirCodeError, match=r"returned raised (ValueError: no|SystemExit: 0), at ") as said:
        work(replace(JOB, request=request, size="own"))
    assert "tracekit" not in said.value.traceback.replace(str(tmp_path), "")


TRY = RunAgain("try")
WAITS = LaunchBound(wall_us=1000.0, idle_us=500.0, host_share=0.95, launching_share=0.9)
GRAPHS = Finding(WAITS, 100.0, TRY, changes={"mode": "reduce-overhead"})


def verified(folder: Path, monkeypatch: pytest.MonkeyPatch, finding: Finding | None) -> Run:
    monkeypatch.setattr("tracekit.comparison.judging.alternatives.top_advice", lambda _comparison: finding)
    return verify_advice(TimingPlan(), Request("flux", iterations=10), store.load(folder), folder, Silent())


@pytest.mark.parametrize(
    ("changes", "environment"),
    [
        ({"mode": "reduce-overhead"}, {}),
        ({"dynamic": True}, {}),
        ({}, {"TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS": "1"}),
    ],
)
def test_what_is_advised_is_asked_for(
    changes: dict[str, Any],
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    children: Children,
) -> None:
    # A flag is written as a word there.
    words = {name: str(value) for name, value in changes.items()}
    finding = Finding(WAITS, 100.0, TRY, changes=words, environment=environment)
    run = verified(make_run_folder(tmp_path), monkeypatch, finding)
    ((job, given),) = children.asked
    assert (job.request, given) == (replace(Request("flux", iterations=10), **changes), environment)
    assert run.verified is not None and run.verified.code == "launch_bound"


def test_the_advised_mode_is_timed_beside_eager_in_a_fresh_process_and_read_again_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: Children
) -> None:
    folder = make_run_folder(tmp_path)
    children.during_timing = 2
    run = verified(folder, monkeypatch, GRAPHS)
    ((job, _),) = children.asked
    assert (job.forms, job.size) == (("eager", "compiled"), "full")
    assert job.rule is not None and job.rule.rounds == 10
    assert run.verified is not None
    assert run.verified.speedup == pytest.approx(4.0)
    assert run.verified.predicted_us == pytest.approx(500.125 - 100)
    assert (run.verified.compile_seconds, run.verified.during_timing) == (7.5, 4)
    store.save(run, folder)
    assert store.load(folder).verified == run.verified


def test_without_advice_nothing_is_started_and_the_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: Children
) -> None:
    run = verified(make_run_folder(tmp_path), monkeypatch, None)
    assert children.asked == []
    assert (run.verified, run.noted) == (None, (NoAdvice(),))


def test_advice_that_cannot_be_followed_is_noted_and_costs_the_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: Children
) -> None:
    children.error = TracekitError("following the advice: mode reduce-overhead failed (exit code 1): no GPU memory")
    folder = make_run_folder(tmp_path)
    run = verified(folder, monkeypatch, GRAPHS)
    assert run.verified is None
    assert run.forms == store.load(folder).forms
    assert run.noted == (AdviceFailed(error=str(children.error)),)
