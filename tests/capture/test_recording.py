from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tracekit.capture.forms import compiled_form, eager_form
from tracekit.capture.quiet import profiler_noise_left_out, warnings_collected
from tracekit.capture.recording import record
from tracekit.capture.warmup import warm_up
from tracekit.model.progress import Silent
from tracekit.model.workload import BuiltWorkload


def test_each_step_is_marked_and_holds_its_operators(workload: BuiltWorkload, tmp_path: Path) -> None:
    raw = record(eager_form(workload), "rich", 2, tmp_path / "raw.json", Silent())
    events = json.loads(raw.path.read_text())["traceEvents"]
    steps = [event for event in events if event.get("name", "").startswith("tracekit.step#")]
    assert [step["name"] for step in steps] == ["tracekit.step#0", "tracekit.step#1"]
    linears = [event for event in events if event.get("name") == "aten::linear"]
    for step in steps:
        inside = [e for e in linears if step["ts"] <= e["ts"] <= step["ts"] + step["dur"]]
        assert len(inside) == 1
    assert all("Input Dims" in linear["args"] for linear in linears)
    assert len(raw.marks) == 2
    assert all(begin < end for begin, end in raw.marks)


def test_compiled_cpu_code_shows_its_fused_kernels(workload: BuiltWorkload, tmp_path: Path) -> None:
    form = compiled_form(workload)
    warm_up(form, Silent())
    raw = record(form, "light", 1, tmp_path / "raw.json", Silent())
    names = {event.get("name", "") for event in json.loads(raw.path.read_text())["traceEvents"]}
    assert any("cpp_fused" in name for name in names), sorted(names)


def test_no_recording_holds_python_stacks(workload: BuiltWorkload, tmp_path: Path) -> None:
    raw = record(eager_form(workload), "rich", 1, tmp_path / "raw.json", Silent())
    categories = {event.get("cat") for event in json.loads(raw.path.read_text())["traceEvents"]}
    assert "python_function" not in categories


def test_only_the_profiler_s_own_lines_are_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    with profiler_noise_left_out():
        os.write(2, b"USDT:2026 profiler_start\nERROR: something real\n")
    assert capfd.readouterr().err == "ERROR: something real\n"


def test_warnings_are_kept_once_by_their_first_line() -> None:
    import warnings

    found: list[str] = []
    with warnings_collected(found):
        for _ in range(2):
            warnings.warn("TF32 is off\nlong story", stacklevel=1)
        warnings.warn("old name", DeprecationWarning, stacklevel=1)
    assert found == ["TF32 is off"]
