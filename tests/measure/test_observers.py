"""What `tracekit profile` finds out around the timed calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

pytest.importorskip("torch")

from tests.cli.runs import make_run_folder
from tests.measure.conftest import make_workload

from tracekit import store
from tracekit.measure import gpu_state
from tracekit.measure.forms import Form
from tracekit.measure.observers import FormObserver
from tracekit.measure.run_so_far import with_notes
from tracekit.model.gpu import FormMemory, GpuSample, GpuState, MemoryUse
from tracekit.statements.noted import NeverCalled, NoAdvice

from .small_runs import BARE, profile


def test_memory_and_the_gpu_s_state_are_kept_in_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = FormMemory(1, MemoryUse(2, 3), None, 4, 0)

    @contextmanager
    def watched(_device: str) -> Iterator[Any]:
        yield [found]

    monkeypatch.setattr(gpu_state, "warm_up_watched", watched)
    monkeypatch.setattr(gpu_state, "measure_steady", lambda _form, kept: replace(kept, steady=MemoryUse(5, 6)))
    state = GpuState("nvml", (GpuSample("before", 0.0, 1980, None, None, None, None, None),))
    monkeypatch.setattr(gpu_state.GpuWatch, "state_of", lambda _watch, name: state if name == "compiled" else None)
    eager, compiled = profile(tmp_path / "run", BARE, kernels=False).forms
    assert eager.memory == compiled.memory == replace(found, steady=MemoryUse(5, 6))
    assert (eager.gpu_state, compiled.gpu_state) == (None, state)


def test_every_form_has_its_memory_at_hand_when_timing_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    monkeypatch.setattr(gpu_state, "measure_steady", lambda form, _kept: events.append(f"measure {form.name}"))
    eager = Form("eager", "cuda", lambda: events.append("call eager"))
    compiled = Form("compiled", "cuda", lambda: events.append("call compiled"))
    FormObserver(make_workload(None, (), device="cuda"), numerics=False).settle((eager, compiled))
    # The cache is emptied before each is measured, so the first one's is filled once more.
    assert events == ["measure eager", "measure compiled", "call eager"]


def test_a_run_keeps_a_note_as_facts(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path)
    run = replace(store.load(folder), notes=("of the workload",))
    noted = (NeverCalled(parts=("model.spare",), more=0), NoAdvice())
    store.save(with_notes(run, *noted), folder)
    found = store.load(folder)
    assert (found.notes, found.noted) == (("of the workload",), noted)
