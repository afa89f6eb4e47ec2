from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tracekit.capture.forms import compiled_form, eager_form
from tracekit.capture.process import output_kept, warnings_collected
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


CHATTER = """
import os, pathlib, subprocess, sys
from tracekit.capture.process import output_kept
with output_kept(pathlib.Path(sys.argv[1])):
    os.write(2, b"native chatter\\n")
    print("python chatter")
    subprocess.run(["echo", "a child's chatter"], check=True)
print("seen again")
"""


def test_what_others_print_goes_into_a_file_and_not_to_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    found = subprocess.run([sys.executable, "-c", CHATTER, str(log)], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("seen again\n", "")
    assert sorted(log.read_text().splitlines()) == ["a child's chatter", "native chatter", "python chatter"]


def test_a_file_of_no_chatter_is_not_kept(tmp_path: Path) -> None:
    with output_kept(tmp_path / "output.log"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_model_warns_of_in_every_call_costs_one_call_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = warnings.WarningMessage

    def noted(*arguments: Any, **options: Any) -> Any:
        made.append("warning")
        return real(*arguments, **options)

    monkeypatch.setattr(warnings, "WarningMessage", noted)
    with warnings_collected([]):
        for _ in range(100):
            warnings.warn("slow processor", stacklevel=1)
    assert len(made) == 1


def test_warnings_are_kept_once_by_their_first_line() -> None:
    found: list[str] = []
    with warnings_collected(found):
        for _ in range(2):
            warnings.warn("TF32 is off\nlong story", stacklevel=1)
        warnings.warn("old name", DeprecationWarning, stacklevel=1)
    assert found == ["TF32 is off"]
