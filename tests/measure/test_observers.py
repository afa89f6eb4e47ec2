"""What `tracekit profile` finds out around the timed calls."""

from pathlib import Path

import pytest
from msgspec.structs import replace

pytest.importorskip("torch")

from tests.cli.runs import make_run_folder

from tracekit import store
from tracekit.measure.gpu_state import GpuWatch
from tracekit.measure.run_so_far import with_notes
from tracekit.model.gpu import FormMemory, GpuSample, GpuState, MemoryUse
from tracekit.statements.noted import NeverCalled, NoAdvice

from .small_runs import BARE, profile


def test_memory_and_the_gpu_s_state_are_kept_in_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    memory = FormMemory(1, MemoryUse(2, 3), MemoryUse(5, 6), 4, 0)
    state = GpuState("nvml", (GpuSample("before", 0.0, 1980, None, None, None, None, None),))
    seen = {"eager": None, "compiled": state}
    monkeypatch.setattr(GpuWatch, "seen", lambda _watch, name: {"memory": memory, "gpu_state": seen[name]})
    eager, compiled = profile(tmp_path / "run", BARE, kernels=False).forms
    assert eager.memory == compiled.memory == memory
    assert (eager.gpu_state, compiled.gpu_state) == (None, state)


def test_a_run_keeps_a_note_as_facts(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path)
    run = replace(store.load(folder), notes=("of the workload",))
    noted = (NeverCalled(parts=("model.spare",), more=0), NoAdvice())
    store.save(with_notes(run, *noted), folder)
    found = store.load(folder)
    assert (found.notes, found.noted) == (("of the workload",), noted)
