"""Fresh processes of a run: what they are asked, how they end, what is kept of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.sides import make_form, make_run, make_settings

from tracekit.errors import TheirCodeError, TracekitError
from tracekit.model.child import ChildForm, ChildJob, ChildResult
from tracekit.model.progress import Silent
from tracekit.model.run import CompileFacts
from tracekit.model.timing import FormTiming, ProcessTimes, StoppingRule
from tracekit.model.workload import Request
from tracekit.walks import processes
from tracekit.walks.processes import measure_in_processes, run_child, run_module
from tracekit.walks.timing_plan import TimingPlan, plan_timing, stopping_rule

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
    monkeypatch.setattr(processes, "run_child", fake)
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


def python(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Every child runs this script instead."""
    real = subprocess.Popen

    def started(_command: list[str], **more: Any) -> Any:
        return real([sys.executable, "-c", script], **more)

    monkeypatch.setattr(processes.subprocess, "Popen", started)


def test_a_process_that_fails_is_told_by_its_last_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python(monkeypatch, "print('chatter'); import sys; sys.exit('error: no GPU memory')")
    with pytest.raises(TracekitError, match=r"repeat 1 failed \(exit code 1\): .*no GPU memory"):
        run_child(JOB, tmp_path, Silent(), "repeat 1")
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_killed_is_said_to_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(TracekitError, match=r"killed by signal 9.*it printed nothing"):
        run_child(JOB, tmp_path, Silent(), "repeat 1")


def test_an_interrupt_ends_the_process_and_what_it_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    note = tmp_path / "grandchild"
    script = (
        "import subprocess, sys, pathlib, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(note)!r}).write_text(str(child.pid))\n"
        "time.sleep(60)"
    )
    python(monkeypatch, script)

    def interrupted(_seconds: float) -> None:
        if note.exists() and note.read_text():
            raise KeyboardInterrupt

    monkeypatch.setattr(processes.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_child(JOB, tmp_path, Silent(), "repeat 1")
    monkeypatch.undo()
    assert gone(int(note.read_text()))


#: Starts a process that hears no polite word, notes its number, and then does something else.
STUBBORN = """
import pathlib, signal, subprocess, sys, time
deaf = "import pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
deaf += " pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", deaf, {ready!r}])
while not pathlib.Path({ready!r}).exists():
    time.sleep(0.01)
pathlib.Path({note!r}).write_text(str(child.pid))
"""


@pytest.mark.parametrize("then", ["sys.exit('error: broken')", "import os; os.kill(os.getpid(), 9)", "sys.exit(0)"])
def test_what_a_process_started_ends_with_it_however_it_ends(
    then: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    python(monkeypatch, STUBBORN.format(ready=str(tmp_path / "ready"), note=str(note)) + then)
    run_module("any", b"{}", tmp_path, {})
    assert gone(int(note.read_text()))


def test_what_shrugs_off_a_polite_word_is_ended_with_its_leader(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    python(monkeypatch, STUBBORN.format(ready=str(tmp_path / "ready"), note=str(note)) + "time.sleep(60)")
    ended = run_module("any", b"{}", tmp_path, {}, limit_seconds=2.0)
    assert (ended.late, ended.code) == (True, -signal.SIGTERM)
    assert gone(int(note.read_text()))


def test_a_process_is_tied_to_this_one_and_leaves_what_it_had_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real, asked = subprocess.Popen, []
    script = (
        "import os, pathlib, sys\n"
        "pathlib.Path(sys.argv[1]).with_name('part.json').write_text('so far')\n"
        "os.kill(os.getpid(), 9)"
    )

    def started(command: list[str], **more: Any) -> Any:
        asked.append(command)
        return real([sys.executable, "-c", script, *command[-2:]], **more)

    monkeypatch.setattr(processes.subprocess, "Popen", started)
    ended = run_module("a.module", b"{}", tmp_path, {})
    assert (ended.code, ended.answer, ended.part) == (-signal.SIGKILL, None, b"so far")
    assert asked[0][2:6] == ["-m", "tracekit.walks.end_with_parent", str(os.getpid()), "a.module"]


def gone(pid: int) -> bool:
    """Whether the process ends within a few seconds; a zombie nobody waits for has ended."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_a_real_process_builds_warms_up_and_times(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    found = run_child(replace(JOB, forms=("eager", "compiled")), tmp_path, Silent(), "repeat 1")
    assert [form.name for form in found.forms] == ["eager", "compiled"]
    assert all(form.times and len(form.times.wall_us) == 3 for form in found.forms)
    assert found.forms[0].compilation is None
    assert found.forms[1].compilation is not None
    assert found.load_seconds > 0


def test_the_rule_takes_what_was_asked_and_fills_in_the_rest() -> None:
    settings = make_settings(iterations=20)
    rule = stopping_rule(TimingPlan(), Request("flux"), settings)
    assert (rule.rounds, rule.target, rule.budget_seconds, rule.least) == (None, 0.01, 30.0, 20)
    asked = stopping_rule(TimingPlan(0.5, 60.0), Request("flux"), replace(settings, device="cpu"))
    assert (asked.target, asked.budget_seconds) == (0.005, 60.0)
    assert stopping_rule(TimingPlan(), Request("flux"), replace(settings, device="cpu")).budget_seconds == 3.0
    assert stopping_rule(TimingPlan(), Request("flux", iterations=7), settings).rounds == 7


def test_a_number_of_calls_and_a_rule_to_find_it_are_refused_together() -> None:
    with pytest.raises(TracekitError, match="--iterations is a fixed number"):
        plan_timing(True, 1.0, None, 0, False)
    assert plan_timing(True, None, None, 2, True) == TimingPlan(None, None, 2, True)


def test_a_child_builds_what_a_configuration_names(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tests.workloads.configurations import save_transformers

    from tracekit.walks.child import work

    request = Request(f"hf:{save_transformers('BertForMaskedLM', tmp_path)}", seq_length=4)
    result = work(replace(JOB, request=request, size="small"))
    assert [form.name for form in result.forms] == ["eager"]
    assert result.forms[0].times is not None and len(result.forms[0].times.wall_us) == 3


def test_what_an_own_model_raises_in_a_child_is_told_as_theirs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tracekit.walks.child import work

    (tmp_path / "broken.py").write_text(
        "def build():\n    def call():\n        raise ValueError('no')\n    return call\n"
    )
    request = Request(f"{tmp_path / 'broken.py'}:build")
    with pytest.raises(TheirCodeError, match="returned raised ValueError: no, at ") as said:
        work(replace(JOB, request=request, size="own"))
    assert "tracekit" not in said.value.traceback.replace(str(tmp_path), "")
