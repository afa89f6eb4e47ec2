"""The walk of `tracekit profile`, with a model of one layer in place of a real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.capture.conftest import Block, make_settings  # noqa: E402

from tracekit import store  # noqa: E402
from tracekit.capture import provenance, recording, tagging, timing  # noqa: E402
from tracekit.cli.profile import profile_workload  # noqa: E402
from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.note import Facts, Noted  # noqa: E402
from tracekit.model.run import Run  # noqa: E402
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request  # noqa: E402
from tracekit.report.words.noted import noted_sentence  # noqa: E402
from tracekit.walks import profiling  # noqa: E402
from tracekit.walks.plan import Plan  # noqa: E402
from tracekit.walks.sides import load_side  # noqa: E402
from tracekit.workloads.registry import FLUX  # noqa: E402


def build(request: Request, _size: str, _device: str, _progress: Any) -> BuiltWorkload:
    block, x = Block().eval(), torch.randn(4, 8)
    return BuiltWorkload(FLUX, make_settings(), lambda: block(x), (CompileTarget("block", block),), (), ())


def plan(folder: Path, *, force: bool = False) -> Plan:
    request = Request(workload="flux", size="tiny", mode="default", batch_size=1, seed=0)
    return Plan(request, ("eager", "compiled"), folder, force, "tracekit profile flux --compiled")


@pytest.fixture(autouse=True)
def one_layer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(profiling, "load_builder", lambda _info: build)
    monkeypatch.setattr("tracekit.capture.device.pick_device", lambda: "cpu")
    monkeypatch.chdir(tmp_path)


def test_an_interrupt_while_recording_keeps_the_recordings_that_were_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = recording.record

    def interrupted(form: Any, kind: Any, steps: int, path: Path, progress: Any) -> Any:
        if kind == "light":
            return real(form, kind, steps, path, progress)
        path.write_text('{"half": ')
        raise KeyboardInterrupt

    monkeypatch.setattr(recording, "record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        profile_workload(plan(tmp_path / "run"))
    draft = tmp_path / "run.incomplete"
    kept = store.load(draft).forms[0]
    assert [each.kind for each in kept.recordings] == ["light"]
    assert store.recording_path(draft, kept, "light").is_file()
    left = {path.name for path in draft.iterdir()} - {store.OUTPUT}
    assert left == {"run.json", "eager-light.json.gz"}


def test_a_whole_run_holds_every_recording_and_nothing_hidden(tmp_path: Path) -> None:
    profile_workload(plan(tmp_path / "run"))
    run = store.load(tmp_path / "run")
    assert [[each.kind for each in form.recordings] for form in run.forms] == [["light", "rich"]] * 2
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith(".")]


def test_a_run_tells_what_was_compiled_when_and_that_no_timed_call_did(tmp_path: Path) -> None:
    profile_workload(plan(tmp_path / "run"))
    eager, compiled = store.load(tmp_path / "run").forms
    assert eager.compilation is None
    assert compiled.compilation is not None
    found = compiled.compilation.diagnostics
    assert found is not None
    assert [(frame.id, frame.phase, frame.call) for frame in found.frames] == [("0/0", "warm-up", 1)]
    assert [(call.phase, call.call, call.wall_us) for call in found.calls] == [("warm-up", 1, compiled.warmup_us[0])]
    assert (found.warmed_up_at, found.notes) == (None, ())


def batched(request: Request, _size: str, _device: str, _progress: Any) -> BuiltWorkload:
    """The layer again, which takes batches of any size."""
    block = Block().eval()

    def call_at(other: Request) -> Callable[[], object]:
        x = torch.randn(other.batch_size, 8)
        return lambda: block(x)

    settings = make_settings(batch_size=request.batch_size, dynamic=request.dynamic)
    targets = (CompileTarget("block", block),)
    return BuiltWorkload(FLUX, settings, call_at(request), targets, (), (), call_at=call_at)


def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, dynamic: bool | None = None) -> Run:
    monkeypatch.setattr(profiling, "load_builder", lambda _info: batched)
    asked = plan(tmp_path / "run")
    request = replace(asked.request, batch_size=4, dynamic=dynamic)
    profile_workload(replace(asked, request=request, warmup={"batch_size": 2}))
    return store.load(tmp_path / "run")


def test_warming_up_at_another_size_is_found_in_the_timed_call_it_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = audited(tmp_path, monkeypatch)
    facts = run.forms[1].compilation
    assert facts is not None and facts.diagnostics is not None
    assert facts.during_timing == 1
    (call,) = facts.diagnostics.timed_calls()
    assert (call.call, call.wall_us) == (1, run.forms[1].wall_us[0])
    (frame,) = (each for each in facts.diagnostics.frames if (each.phase, each.call) == (call.phase, call.call))
    assert [guard.facts for guard in frame.because] == [
        {"kind": "size", "name": "x", "index": "0", "then": "2", "now": "4"}
    ]
    assert facts.diagnostics.warmed_up_at == {"batch_size": 2}
    told = (tmp_path / "reports" / "run.md").read_text()
    assert "Call 1 compiled again" in told
    assert "timed call 1" in told


def test_code_for_any_size_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = audited(tmp_path, monkeypatch, dynamic=True)
    facts = run.forms[1].compilation
    assert facts is not None and facts.diagnostics is not None
    assert facts.during_timing == 0
    assert facts.diagnostics.recompiles == ()


class Broken(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.inner = Block()

    def forward(self, x: Any) -> Any:
        y = self.inner(x)
        return y * y.max().item()


def broken(_request: Request, _size: str, _device: str, _progress: Any) -> BuiltWorkload:
    module, x = Broken().eval(), torch.randn(4, 8)
    targets = (CompileTarget("broken", module),)
    return BuiltWorkload(FLUX, make_settings(fullgraph=False), lambda: module(x), targets, (), ())


def test_a_break_is_reported_with_its_line_and_what_the_recording_says_it_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiling, "load_builder", lambda _info: broken)
    profile_workload(plan(tmp_path / "run"))
    side = load_side(tmp_path / "run", form="compiled")
    assert side.diagnostics is not None
    (found,) = side.diagnostics.breaks
    assert found.where is not None and "test_profiling.py:" in found.where
    assert found.frames == ("0/0",)
    assert side.entering is not None and side.entering.regions is not None
    regions = {region.id: region for region in side.entering.regions.regions}
    assert set(regions) == {"0/0", "1/0"}
    assert found.per_step_us == pytest.approx(regions["0/0"].outside_us / side.entering.window.steps)
    assert found.where in (tmp_path / "reports" / "run.md").read_text().replace("\\", "")


def test_a_workload_that_cannot_be_called_at_other_sizes_says_so(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match="cannot be called at other sizes: leave --warmup out"):
        profile_workload(replace(plan(tmp_path / "run"), warmup={"batch_size": 2}))


def test_a_run_tells_where_the_work_of_both_forms_came_from(tmp_path: Path) -> None:
    profile_workload(plan(tmp_path / "run"))
    folder, run = tmp_path / "run", store.load(tmp_path / "run")
    eager, compiled = store.load_eager_ops(folder, run), store.load_compiled_sites(folder, run)
    assert eager is not None
    assert compiled is not None
    assert {op.module for op in eager.ops} == {"block", "block.inner"}
    assert [graph.root for graph in compiled.graphs] == ["block"]
    assert compiled.graphs[0].sites
    assert [(call.graph, call.module) for call in compiled.calls] == [(0, "block")]


def test_without_provenance_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(provenance, "collected", None)
    monkeypatch.setattr(tagging, "tag_eager", None)
    profile_workload(replace(plan(tmp_path / "run"), provenance=False))
    run = store.load(tmp_path / "run")
    assert [form.provenance for form in run.forms] == [None, None]
    assert not [note for note in run.notes if "provenance" in note]


def test_a_torch_without_provenance_is_noted_and_everything_else_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lacking = Noted("torch_lacks", {"torch": "9.9", "names": ("CompiledFxGraph.post_compile",)})
    monkeypatch.setattr(provenance, "missing_provenance", lambda: lacking)
    profile_workload(plan(tmp_path / "run"))
    run = store.load(tmp_path / "run")
    assert [form.provenance for form in run.forms] == ["eager-ops.json.gz", None]
    assert all(form.wall_us and len(form.recordings) == 2 for form in run.forms)
    assert lacking in run.noted
    assert noted_sentence(lacking) in run.notes


def test_asking_that_fails_is_noted_and_nothing_measured_is_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failing(*_arguments: object) -> None:
        raise RuntimeError("a private part of torch is gone")

    monkeypatch.setattr(tagging, "tag_eager", failing)
    profile_workload(plan(tmp_path / "run"))
    run = store.load(tmp_path / "run")
    assert run.status == "complete"
    assert [form.provenance for form in run.forms] == [None, "compiled-sites.json.gz"]
    facts: Facts = {"form": "eager", "error": "RuntimeError: a private part of torch is gone"}
    assert Noted("provenance_failed", facts) in run.noted


def test_an_interrupt_while_asking_keeps_every_recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(_form: object, _names: object, raw: Path, _progress: object) -> None:
        raw.write_text('{"half": ')
        raise KeyboardInterrupt

    monkeypatch.setattr(tagging, "tag_eager", interrupted)
    with pytest.raises(KeyboardInterrupt):
        profile_workload(plan(tmp_path / "run"))
    draft = tmp_path / "run.incomplete"
    assert [len(form.recordings) for form in store.load(draft).forms] == [2, 2]
    assert not [path for path in draft.iterdir() if path.name.startswith(".")]


def test_nothing_is_profiled_in_the_runs_own_process_before_its_calls_are_timed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CUPTI stays in a process that it has looked at, and slows every launch."""
    done: list[str] = []
    enter, time_forms = torch.profiler.profile.__enter__, timing.time_forms

    def entered(profiler: Any) -> Any:
        done.append("profiled")
        return enter(profiler)

    def timed(*arguments: Any, **options: Any) -> None:
        done.append("timed")
        time_forms(*arguments, **options)

    monkeypatch.setattr(torch.profiler.profile, "__enter__", entered)
    monkeypatch.setattr(timing, "time_forms", timed)
    monkeypatch.setattr("tracekit.capture.device.pick_device", lambda: "cuda")
    monkeypatch.setattr("tracekit.capture.device.free_memory_bytes", lambda _device: 2**40)
    monkeypatch.setattr(recording, "COMMAND", ["true"])
    profile_workload(plan(tmp_path / "run"))
    assert done[0] == "timed"
    assert "profiled" in done
