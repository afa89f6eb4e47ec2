"""Recording a form, and a loop, which it never ends, whatever the profiler or another recording does; named regions."""

import gc
import gzip
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tracekit.errors import TracekitError
from tracekit.measure import host, recording, spans
from tracekit.measure.compilation import watch_compilation
from tracekit.measure.forms import compiled_form, eager_form, warm_up
from tracekit.measure.host import collections_noted
from tracekit.measure.ranks import ALONE
from tracekit.measure.recording import SEEN, UNSEEN, Recorder, checked_meanwhile, export, record
from tracekit.model.host_marks import HostMarks
from tracekit.model.progress import Silent
from tracekit.model.run import RecordingKind
from tracekit.model.workload import BuiltWorkload, CompileTarget
from tracekit.tracefile.publish import publish

from .conftest import make_workload


def test_each_step_is_marked_and_holds_its_operators(workload: BuiltWorkload, tmp_path: Path) -> None:
    steps_ns = record(eager_form(workload), "rich", 2, tmp_path / "raw.json", Silent()).steps
    events = json.loads((tmp_path / "raw.json").read_text())["traceEvents"]
    steps = [event for event in events if event.get("name", "").startswith("tracekit.step#")]
    assert [step["name"] for step in steps] == ["tracekit.step#0", "tracekit.step#1"]
    linears = [event for event in events if event.get("name") == "aten::linear"]
    for step in steps:
        inside = [e for e in linears if step["ts"] <= e["ts"] <= step["ts"] + step["dur"]]
        assert len(inside) == 1
    assert all("Input Dims" in linear["args"] for linear in linears)
    # The first mark of a process takes milliseconds: a call that is not published has it.
    assert "tracekit.unpublished" in {event.get("name") for event in events}
    assert "python_function" not in {event.get("cat") for event in events}, "no recording holds Python stacks"
    assert len(steps_ns) == 2
    assert all(begin < end for begin, end in steps_ns)


def test_compiled_cpu_code_shows_its_fused_kernels(workload: BuiltWorkload, tmp_path: Path) -> None:
    form = compiled_form(workload)
    warm_up(form, Silent())
    record(form, "light", 1, tmp_path / "raw.json", Silent())
    names = {event.get("name", "") for event in json.loads((tmp_path / "raw.json").read_text())["traceEvents"]}
    assert any("cpp_fused" in name for name in names), sorted(names)


class Named(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        with spans.region("inner"):
            return self.inner(x).relu()


@pytest.mark.usefixtures("dynamo_alone")
def test_regions_of_a_workload_are_spans_of_its_recordings_and_compiled_code_is_not_compiled_again(
    tmp_path: Path,
) -> None:
    module, x = Named(), torch.randn(4, 8)

    def call() -> object:
        with spans.region("forward"):
            return module(x)

    workload = make_workload(call, (CompileTarget("net", module),))
    eager, compiled = eager_form(workload), compiled_form(workload)
    warm_up(compiled, Silent())
    found = {}
    for form in (eager, compiled):
        with watch_compilation() as watch:
            record(form, "rich", 1, tmp_path / "raw.json", Silent())
        assert watch.compilations == 0
        names = [event.get("name") for event in json.loads((tmp_path / "raw.json").read_text())["traceEvents"]]
        found[form.name] = {name: name in names for name in ("forward", "inner")}
    assert found == {"eager": {"forward": True, "inner": True}, "compiled": {"forward": True, "inner": False}}
    assert spans.region("one") is spans.region("two"), "nothing is recorded any more"


def test_a_step_says_how_long_its_thread_slept() -> None:
    step = recording._step(eager_form(make_workload(partial(time.sleep, 0.03), ())), "a step", ALONE)
    assert step[2] >= 29e3


def test_what_the_thread_worked_is_not_off_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    # Clocks of the test's own: another process may take the thread off the CPU at any time.
    passed = {"time_ns": 0, "thread_time_ns": 0}

    def call() -> None:
        passed["time_ns"] += 5_000_000
        passed["thread_time_ns"] += 2_000_000

    clocks = {name: partial(passed.__getitem__, name) for name in passed}
    monkeypatch.setattr(recording, "time", SimpleNamespace(**clocks))
    assert recording._step(eager_form(make_workload(call, ())), "a step", ALONE)[2] == 3000.0


def test_a_thread_clock_that_stands_still_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert host.has_thread_clock()
    monkeypatch.setattr(host, "thread_time_ns", lambda: 10_000_000)
    assert not host.has_thread_clock()


@pytest.mark.parametrize("kind", ["light", "rich"])
def test_a_garbage_collection_is_in_the_recording_where_it_happened(kind: RecordingKind, tmp_path: Path) -> None:
    times: list[tuple[int, int]] = []

    def call() -> None:
        began = time.time_ns()
        gc.collect()
        times.append((began, time.time_ns()))
        torch.ones(3).sin()

    marks = record(eager_form(make_workload(call)), kind, 2, tmp_path / "raw.json", Silent())
    assert not [callback for callback in gc.callbacks if callback.__module__.startswith("tracekit")]
    publish(tmp_path / "raw.json", tmp_path / "out.json.gz", metadata={}, marks=marks)
    document = json.loads(gzip.decompress((tmp_path / "out.json.gz").read_bytes()))
    events = document["traceEvents"]
    collections, steps, sines = (
        [event for event in events if str(event.get("name")).startswith(name)]
        for name in ("Python GC", "tracekit.step#", "aten::sin")
    )
    assert len(collections) == len(steps) == 2, "none of the call that is thrown away"
    for (began, ended), collection, step, sine in zip(times[-2:], collections, steps, sines, strict=True):
        starts_ns, lasts_ns = collection["ts"] * 1e3 + document["baseTimeNanoseconds"], collection["dur"] * 1e3
        assert began <= starts_ns + 1000 and starts_ns + lasts_ns <= ended + 1000
        assert lasts_ns > 0.9 * (ended - began) - 1e6
        # By the profiler's own clock too.
        assert step["ts"] - 1000 < collection["ts"] < collection["ts"] + collection["dur"] < sine["ts"] + 1000
        assert (collection["pid"], collection["tid"]) == (step["pid"], step["tid"])


def test_the_first_launch_of_a_session_lies_before_its_first_step_and_what_is_published_begins_behind_it(
    recorder: Any, marks: list[HostMarks], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def begin(device: str) -> int:
        assert torch.autograd.profiler._is_profiler_enabled
        made.append(device)
        return 42

    def call() -> None:
        made.append("call")

    monkeypatch.setattr(recording, "begin_session", begin)
    found = record(eager_form(make_workload(call)), "light", 2, tmp_path / "raw.json", Silent())
    assert made == ["cpu", "call", "call", "call"], "the first call of a session is slow, too"
    assert 42 < found.begin_ns <= found.steps[0][0]
    made.clear()
    with recorder(skip=1) as each:
        for _ in range(3):
            with each.step():
                call()
    assert (made, marks[0].begin_ns) == (["call", "cpu", "call", "call"], 42)


def test_no_collection_is_noted_where_none_happens_and_nothing_listens_after_an_error(tmp_path: Path) -> None:
    listening: list[int] = []
    before = list(gc.callbacks)

    def call() -> None:
        listening.append(len(gc.callbacks) - len(before))
        if len(listening) == 4:
            raise ZeroDivisionError

    form = eager_form(make_workload(call))
    assert record(form, "light", 1, tmp_path / "raw.json", Silent()).collections == ()
    with pytest.raises(ZeroDivisionError):
        record(form, "light", 1, tmp_path / "raw.json", Silent())
    assert listening == [0, 1, 0, 1] and gc.callbacks == before


def test_a_recorder_notes_the_collections_of_all_threads_while_it_records(
    recorder: Any, marks: list[HostMarks]
) -> None:
    with recorder(steps=1, skip=1) as each:
        for _ in range(3):
            with each.step():
                gc.collect()
                thread = threading.Thread(target=gc.collect)
                thread.start()
                thread.join()
    own, other = marks[0].collections
    assert own.ident == threading.get_ident() != other.ident
    assert marks[0].begin_ns < own.begin_ns < own.end_ns <= other.begin_ns < other.end_ns


def test_a_fork_that_outlives_the_recording_keeps_no_list_of_its_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    with collections_noted() as noted:
        gc.collect()
        monkeypatch.setattr(os, "getpid", lambda: -1)
        gc.collect()
    assert len(noted) == 1


def answering(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(recording, "COMMAND", [sys.executable, "-c", code])


def test_kernels_that_no_profiler_sees_end_the_run_when_the_block_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, f"raise SystemExit({UNSEEN})")
    built = []
    with pytest.raises(TracekitError, match="tracekit doctor"), checked_meanwhile("cuda"):
        built.append("model")
    assert built == ["model"]


@pytest.mark.parametrize("code", [f"raise SystemExit({SEEN})", "raise RuntimeError('this GPU is taken')"])
def test_kernels_that_are_seen_and_a_process_without_an_answer_let_the_run_go_on(
    monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    answering(monkeypatch, code)
    with checked_meanwhile("cuda"):
        pass
    monkeypatch.setattr(recording, "COMMAND", ["/nowhere"])
    with checked_meanwhile("cpu"):
        pass


def test_a_process_that_hangs_is_ended_and_what_fails_meanwhile_is_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "import time; time.sleep(600)")
    with pytest.raises(MemoryError), checked_meanwhile("cuda"):
        raise MemoryError
    monkeypatch.setattr(recording, "PATIENCE_SECONDS", 0.1)
    with checked_meanwhile("cuda"):
        pass


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(recording, "pick_device", lambda: "cpu")
    yield
    assert spans.region("one") is spans.region("two"), "regions are nothing again, however the block ended"
    assert not torch.autograd.profiler._is_profiler_enabled


@pytest.fixture
def published() -> list[tuple[str, int]]:
    return []


@pytest.fixture
def marks() -> list[HostMarks]:
    return []


@pytest.fixture
def recorder(tmp_path: Path, published: list[tuple[str, int]], marks: list[HostMarks]) -> Any:
    def make(steps: int = 1, skip: int = 0) -> Recorder:
        def publish(device: str, count: int, of_host: HostMarks) -> None:
            published.append((device, count))
            marks.append(of_host)

        return Recorder(steps, skip, tmp_path / f"{skip}.json", publish, lambda noted: warnings.warn(noted.code))  # noqa: B028

    return make


def run(each: Recorder, steps: int) -> int:
    """So many steps of a loop; how many of them ran."""
    done = 0
    for _ in range(steps):
        with each.step():
            torch.ones(3).sin()
            done += 1
    return done


def test_what_was_recorded_is_published_once_with_its_steps(tmp_path: Path, recorder: Any, published: Any) -> None:
    with recorder(steps=2, skip=1) as each:
        assert run(each, 5) == 5
    assert published == [("cpu", 2)]
    assert [path.name for path in tmp_path.iterdir()] == ["1.json"], "and nothing beside it"


def test_steps_of_another_thread_are_none_of_the_recording(recorder: Any, published: Any) -> None:
    with recorder(steps=2) as each:
        run(each, 1)
        thread = threading.Thread(target=run, args=(each, 5))
        thread.start()
        thread.join()
        assert spans.region("one") is not spans.region("two"), "it goes on"
        run(each, 1)
    assert published == [("cpu", 2)]


def test_a_profiler_that_writes_nothing_says_why(tmp_path: Path) -> None:
    class Silent:
        def export_chrome_trace(self, path: str) -> None:
            Path(f"{path}.tmp").write_text("half")

    with pytest.raises(OSError, match="no whole trace"):
        export(Silent(), tmp_path / "trace.json")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        export(Silent(), tmp_path / "gone" / "trace.json")  # type: ignore[arg-type]
    assert not (tmp_path / "trace.json.tmp").exists()


def test_a_gpu_whose_kernels_cannot_be_seen_is_said_before_the_loop_begins(
    monkeypatch: pytest.MonkeyPatch, recorder: Any
) -> None:
    monkeypatch.setattr(recording, "pick_device", lambda: "cuda")
    monkeypatch.setattr(recording, "kernels_are_visible", lambda: False)
    with pytest.raises(TracekitError, match="tracekit doctor"), recorder(skip=3):
        pytest.fail("the block is not to begin")


def test_a_profiler_that_does_not_start_in_the_midst_of_a_loop_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, recorder: Any, published: Any
) -> None:
    def failing(**_options: object) -> None:
        raise RuntimeError("profiling is switched off here")

    monkeypatch.setattr(recording, "profile", failing)
    with pytest.warns(UserWarning, match="profiler_did_not_start"), recorder(skip=1) as each:
        assert run(each, 4) == 4
    assert published == []


def test_two_recordings_that_overlap_leave_each_other_alone(recorder: Any, published: Any) -> None:
    one = recorder(steps=3).__enter__()
    other = recorder(steps=1, skip=1).__enter__()

    def steps(number: int) -> None:
        for _ in range(number):
            with one.step(), other.step(), later.step():
                torch.ones(3).sin()

    with recorder(steps=1, skip=3) as later:
        with pytest.warns(UserWarning, match="recorded_by_another") as warned:
            steps(2)
        assert len(warned) == 1, "as soon as it is known"
        steps(2)
    other.__exit__(None, None, None)
    one.__exit__(None, None, None)
    assert published.count(("cpu", 3)) == 1, "the first, whole"
    assert len(published) == 2 and ("cpu", 1) in published, "and the one after it"


def test_the_end_of_one_recorder_does_not_end_the_other_s_recording(recorder: Any, published: Any) -> None:
    with recorder(steps=2) as one:
        run(one, 1)
        with pytest.warns(UserWarning, match="loop_too_short"):
            recorder(skip=5).__exit__(None, None, None)
        assert spans.region("one") is not spans.region("two")
        run(one, 1)
    assert published == [("cpu", 2)]


def test_a_region_ends_as_it_began_though_the_recording_ended_inside() -> None:
    told: list[str] = []

    @contextmanager
    def span(name: str) -> Iterator[None]:
        told.append(f"begin {name}")
        yield
        told.append(f"end {name}")

    spans.open_spans(span)
    with spans.region("forward"), spans.region("attention"):
        spans.open_spans(None)
    with spans.region("after") as outer, spans.region("after") as inner:
        assert outer is inner is None
    assert told == ["begin forward", "begin attention", "end attention", "end forward"]
