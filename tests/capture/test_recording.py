"""Recording a form, and a loop, which it never ends, whatever the profiler or another recording does; named regions."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from tracekit.capture import recording, spans
from tracekit.capture.forms import compiled_form, eager_form
from tracekit.capture.recording import SEEN, UNSEEN, Recorder, checked_meanwhile, record
from tracekit.capture.warmup import warm_up
from tracekit.errors import TracekitError
from tracekit.model.note import Noted
from tracekit.model.progress import Silent
from tracekit.model.workload import BuiltWorkload


def test_each_step_is_marked_and_holds_its_operators(workload: BuiltWorkload, tmp_path: Path) -> None:
    marks = record(eager_form(workload), "rich", 2, tmp_path / "raw.json", Silent())
    events = json.loads((tmp_path / "raw.json").read_text())["traceEvents"]
    steps = [event for event in events if event.get("name", "").startswith("tracekit.step#")]
    assert [step["name"] for step in steps] == ["tracekit.step#0", "tracekit.step#1"]
    linears = [event for event in events if event.get("name") == "aten::linear"]
    for step in steps:
        inside = [e for e in linears if step["ts"] <= e["ts"] <= step["ts"] + step["dur"]]
        assert len(inside) == 1
    assert all("Input Dims" in linear["args"] for linear in linears)
    assert "python_function" not in {event.get("cat") for event in events}, "no recording holds Python stacks"
    assert len(marks) == 2
    assert all(begin < end for begin, end in marks)


def test_compiled_cpu_code_shows_its_fused_kernels(workload: BuiltWorkload, tmp_path: Path) -> None:
    form = compiled_form(workload)
    warm_up(form, Silent())
    record(form, "light", 1, tmp_path / "raw.json", Silent())
    names = {event.get("name", "") for event in json.loads((tmp_path / "raw.json").read_text())["traceEvents"]}
    assert any("cpp_fused" in name for name in names), sorted(names)


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
    assert not spans.is_recording(), "regions are nothing again, however the block ended"
    assert not torch.autograd.profiler._is_profiler_enabled


@pytest.fixture
def published() -> list[tuple[str, int]]:
    return []


def recorder(folder: Path, published: list[tuple[str, int]], steps: int | None = 1, skip: int = 0) -> Recorder:
    def warn(noted: Noted) -> None:
        warnings.warn(noted.code, stacklevel=1)

    raw = folder / f"{skip}.json"
    return Recorder(steps, skip, raw, lambda device, count: published.append((device, count)), warn)


def run(each: Recorder, steps: int) -> int:
    """So many steps of a loop; how many of them ran."""
    done = 0
    for _ in range(steps):
        with each.step():
            torch.ones(3).sin()
            done += 1
    return done


def test_what_was_recorded_is_published_once_with_its_steps(tmp_path: Path, published: Any) -> None:
    with recorder(tmp_path, published, steps=2, skip=1) as each:
        assert run(each, 5) == 5
    assert published == [("cpu", 2)]
    assert list(tmp_path.iterdir()) == [], "what the profiler wrote is gone once it was published"


def test_a_gpu_whose_kernels_cannot_be_seen_is_said_before_the_loop_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any
) -> None:
    monkeypatch.setattr(recording, "pick_device", lambda: "cuda")
    monkeypatch.setattr(recording, "kernels_are_visible", lambda: False)
    with pytest.raises(TracekitError, match="cannot see kernels"), recorder(tmp_path, published, skip=3):
        pytest.fail("the block is not to begin")


def test_a_profiler_that_does_not_start_in_the_midst_of_a_loop_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any
) -> None:
    def failing(**_options: object) -> None:
        raise RuntimeError("profiling is switched off here")

    monkeypatch.setattr(recording, "profile", failing)
    with pytest.warns(UserWarning, match="profiler_did_not_start"), recorder(tmp_path, published, skip=1) as each:
        assert run(each, 4) == 4
    assert published == []


def test_two_recordings_that_overlap_leave_each_other_alone(tmp_path: Path, published: Any) -> None:
    one = recorder(tmp_path, published, steps=3).__enter__()
    other = recorder(tmp_path, published, steps=1, skip=1).__enter__()
    with recorder(tmp_path, published, steps=1, skip=3) as later:
        for _ in range(4):
            with one.step(), other.step(), later.step():
                torch.ones(3).sin()
    with pytest.warns(UserWarning, match="recorded_by_another"):
        other.__exit__(None, None, None)
    one.__exit__(None, None, None)
    assert published.count(("cpu", 3)) == 1, "the first, whole"
    assert len(published) == 2 and ("cpu", 1) in published, "and the one after it"


def test_the_end_of_one_recorder_does_not_end_the_other_s_recording(tmp_path: Path, published: Any) -> None:
    with recorder(tmp_path, published, steps=2) as one:
        run(one, 1)
        with pytest.warns(UserWarning, match="loop_too_short"):
            recorder(tmp_path, published, skip=5).__exit__(None, None, None)
        assert spans.is_recording()
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
