"""What `tracekit profile` finds out around the timed calls, with a model of one layer in place of a real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.capture.conftest import Block, make_settings  # noqa: E402
from tests.cli.runs import make_run_folder  # noqa: E402

from tracekit import store  # noqa: E402
from tracekit.capture import output_check  # noqa: E402
from tracekit.cli.profile import profile_workload  # noqa: E402
from tracekit.comparison import compare  # noqa: E402
from tracekit.model.note import Noted  # noqa: E402
from tracekit.model.numerics import FormNumerics, OutputDifference, TensorDifference  # noqa: E402
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request  # noqa: E402
from tracekit.report.words.noted import noted_sentence  # noqa: E402
from tracekit.walks import profiling  # noqa: E402
from tracekit.walks.observers import FormObserver, numerics_in_words, with_notes  # noqa: E402
from tracekit.walks.plan import Plan  # noqa: E402
from tracekit.walks.reading import Reading  # noqa: E402
from tracekit.walks.sides import load_side  # noqa: E402
from tracekit.workloads.registry import FLUX  # noqa: E402


class Painter(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()

    def forward(self, x: Any) -> Any:
        return {"image": torch.sigmoid(self.block(x)).reshape(1, 3, 16, 16), "text": "a cat"}


def build(request: Request, _size: str, _device: str, _progress: Any) -> BuiltWorkload:
    torch.manual_seed(0)
    model, x = Painter().eval().requires_grad_(False), torch.randn(96, 8)
    return BuiltWorkload(
        FLUX, make_settings(), lambda: model(x), (CompileTarget("model", model),), (), (), (("model", model),)
    )


def plan(folder: Path, *, numerics: bool = True) -> Plan:
    request = Request(workload="flux", size="tiny")
    command = "tracekit profile flux --compiled"
    return Plan(request, ("eager", "compiled"), folder, False, command, provenance=False, numerics=numerics)


@pytest.fixture(autouse=True)
def one_layer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(profiling, "load_builder", lambda _info: build)
    monkeypatch.setattr("tracekit.capture.device.pick_device", lambda: "cpu")
    monkeypatch.chdir(tmp_path)


def test_a_run_says_how_accurate_compiled_code_is_and_shows_what_it_made(tmp_path: Path) -> None:
    profile_workload(plan(tmp_path / "run"))
    run = store.load(tmp_path / "run")
    eager, compiled = run.forms
    assert eager.numerics and compiled.numerics
    assert compiled.numerics.reference_dtype == "float64"
    assert [each.path for each in compiled.numerics.against_reference.tensors] == [".image"]  # type: ignore[union-attr]
    assert (eager.memory, eager.gpu_state) == (None, None)
    names = {"eager-output.png", "compiled-output.png", "compiled-difference.png"}
    assert names <= {path.name for path in (tmp_path / "run").iterdir()}
    a, b = (load_side(tmp_path / "run", form=name, reading=Reading(shapes=True)) for name in ("eager", "compiled"))
    comparison = compare(a, b, run.order)
    assert comparison.accuracy is not None
    assert comparison.accuracy.result in ("equal", "as_accurate")
    assert [picture.caption for picture in (*a.pictures, *b.pictures)][:2] == ["eager", "compiled"]
    assert "data:image/png;base64," in (tmp_path / "reports" / "run.html").read_text()


def test_a_compiler_that_computes_something_else_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = output_check._called

    def faulty(form: Any, seed: int) -> Any:
        kept = real(form, seed)
        if form.name == "compiled":
            kept.tensors[".image"][0, 1] *= 1.001
        return kept

    monkeypatch.setattr(output_check, "_called", faulty)
    profile_workload(plan(tmp_path / "run"))
    assert "computes something else than eager" in (tmp_path / "reports" / "run.md").read_text()


def test_without_numerics_no_call_more_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(output_check, "check_outputs", None)
    profile_workload(plan(tmp_path / "run", numerics=False))
    run = store.load(tmp_path / "run")
    assert [form.numerics for form in run.forms] == [None, None]
    assert not list((tmp_path / "run").glob("*.png"))


def test_a_comparison_that_fails_is_noted_and_nothing_measured_is_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failing(*_arguments: object) -> None:
        raise ValueError("an output of a new kind")

    monkeypatch.setattr(output_check, "check_outputs", failing)
    profile_workload(plan(tmp_path / "run"))
    run = store.load(tmp_path / "run")
    assert run.status == "complete"
    assert all(form.wall_us and form.numerics is None for form in run.forms)
    assert Noted("outputs_not_compared", {"error": "ValueError: an output of a new kind"}) in run.noted


def test_an_interrupt_while_outputs_are_compared_keeps_every_recording(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(output_check, "check_outputs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        profile_workload(plan(tmp_path / "run"))
    assert [len(form.recordings) for form in store.load(tmp_path / "run.incomplete").forms] == [2, 2]


def test_outputs_are_compared_after_everything_is_timed_and_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tracekit.capture import recording, timing

    events: list[str] = []
    for module, name in ((timing, "time_forms"), (recording, "record"), (output_check, "check_outputs")):
        real = getattr(module, name)

        def noted(*arguments: Any, real: Any = real, name: str = name) -> Any:
            events.append(name)
            return real(*arguments)

        monkeypatch.setattr(module, name, noted)
    profile_workload(plan(tmp_path / "run"))
    assert events == ["time_forms", *["record"] * 4, "check_outputs"]


def test_a_missing_picture_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    profile_workload(plan(tmp_path / "run"))
    (tmp_path / "run" / "eager-output.png").unlink()
    run = store.load(tmp_path / "run")
    with pytest.raises(Exception, match="record the run again"):
        store.load_pictures(tmp_path / "run", run.forms[0])


def test_memory_and_the_gpu_s_state_are_kept_in_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tracekit.capture import gpu_state
    from tracekit.model.gpu import FormMemory, GpuSample, GpuState, MemoryUse

    found = FormMemory(1, MemoryUse(2, 3), None, 4, 0)

    @contextmanager
    def watched(_device: str) -> Iterator[Any]:
        yield gpu_state.MemoryWatch(found)

    monkeypatch.setattr(gpu_state, "warm_up_watched", watched)
    monkeypatch.setattr(gpu_state, "measure_steady", lambda _form, kept: replace(kept, steady=MemoryUse(5, 6)))
    state = GpuState("nvml", (GpuSample("before", 0.0, 1980, None, None, None, None, None),))
    monkeypatch.setattr(gpu_state.GpuWatch, "state_of", lambda _watch, name: state if name == "compiled" else None)
    profile_workload(plan(tmp_path / "run", numerics=False))
    eager, compiled = store.load(tmp_path / "run").forms
    assert eager.memory == compiled.memory == replace(found, steady=MemoryUse(5, 6))
    assert (eager.gpu_state, compiled.gpu_state) == (None, state)


def test_every_form_has_its_memory_at_hand_when_timing_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    from tracekit.capture import gpu_state
    from tracekit.capture.forms import Form

    events: list[str] = []
    monkeypatch.setattr(gpu_state, "measure_steady", lambda form, _kept: events.append(f"measure {form.name}"))
    workload = build(Request("flux"), "", "", None)
    workload = replace(workload, settings=make_settings(device="cuda"))
    eager = Form("eager", "cuda", lambda: events.append("call eager"))
    compiled = Form("compiled", "cuda", lambda: events.append("call compiled"))
    FormObserver(workload, numerics=False).settle((eager, compiled))
    # The cache is emptied before each is measured, so the first one's is filled once more.
    assert events == ["measure eager", "measure compiled", "call eager"]


NOTED = Noted("never_called", {"parts": ("model.spare",), "more": 0})


def test_a_run_keeps_a_note_as_facts_and_in_words(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path)
    run = replace(store.load(folder), notes=("of the workload",))
    store.save(with_notes(run, NOTED, Noted("no_advice")), folder)
    found = store.load(folder)
    assert found.noted == (NOTED, Noted("no_advice"))
    assert found.notes == ("of the workload", noted_sentence(NOTED), noted_sentence(Noted("no_advice")))


def test_what_could_not_be_compared_is_kept_as_facts_and_in_words() -> None:
    missing, mismatch = Noted("modules_not_named"), Noted("in_one_output_only")
    tensors = (
        TensorDifference("[0]", "float32", (2,), 2, mismatch=mismatch),
        TensorDifference("[1]", "float32", (), 1),
    )
    told = FormNumerics(
        "float32", None, OutputDifference("eager", tensors), None, None, None, reference_missing=missing
    )
    found = numerics_in_words(told)
    assert (found.no_reference, found.reference_missing) == (noted_sentence(missing), missing)
    assert found.against_eager is not None
    assert [each.problem for each in found.against_eager.tensors] == [noted_sentence(mismatch), None]
