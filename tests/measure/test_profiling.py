"""The walk of `tracekit profile`, with small models in place of real ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tracekit import store  # noqa: E402
from tracekit.comparison.comparing import compare  # noqa: E402
from tracekit.errors import TracekitError  # noqa: E402
from tracekit.measure import forms, output_check, provenance, recording, recording_cost, tagging, timing  # noqa: E402
from tracekit.measure.plan import TimingPlan  # noqa: E402
from tracekit.measure.profiling import stages_of  # noqa: E402
from tracekit.measure.timing_process import work  # noqa: E402
from tracekit.model.child import ChildJob  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.provenance import CompiledSites, EagerOps  # noqa: E402
from tracekit.model.recording_cost import Cost, EventCosts, RecordingCost  # noqa: E402
from tracekit.model.run import CompileFacts, Run  # noqa: E402
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request  # noqa: E402
from tracekit.reading.sides import load_side  # noqa: E402
from tracekit.reading.traces import Reading  # noqa: E402
from tracekit.statements.guards import Size, check_of  # noqa: E402
from tracekit.statements.noted import NeverCalled, OutputsNotCompared, ProvenanceFailed, TorchLacks  # noqa: E402

from .small_runs import BARE, EAGER, PLAN, REQUEST, built, painter, profile, without_kernels  # noqa: E402


def facts_of(run: Run) -> CompileFacts:
    form = run.form("compiled")
    assert form is not None and form.compilation is not None
    return form.compilation


class Told(Silent):
    """What a run said it would go through, and went through."""

    def __init__(self) -> None:
        self.planned: list[str] = []
        self.begun: list[str] = []

    def stages(self, names: Sequence[str]) -> None:
        self.planned = [*names]

    def stage(self, name: str, **_known: Any) -> None:
        self.begun.append(name)


@pytest.fixture(scope="module")
def told() -> Told:
    return Told()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, told: Told) -> Path:
    """A run of which everything was asked."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    profile(folder, progress=told)
    return folder


@pytest.mark.usefixtures("whole")
def test_a_run_goes_through_the_stages_of_its_plan_in_their_order(told: Told) -> None:
    assert told.begun == told.planned and len(told.planned) == 9


def test_fresh_processes_are_stages_too() -> None:
    asked = TimingPlan(repeats=2, startup=True)
    stages = stages_of(replace(BARE, timing=asked, verify=True))
    starts = ("eager", "compiled_no_cache", "compiled_warm_cache")
    assert stages[7:] == (*starts, "process 1", "process 2", "advice")


def test_a_whole_run_holds_every_recording_and_nothing_hidden(whole: Path) -> None:
    run = store.load(whole)
    assert [[each.kind for each in form.recordings] for form in run.forms] == [["light", "rich"]] * 2
    assert not [path for path in whole.iterdir() if path.name.startswith(".")]


def test_a_run_tells_what_was_compiled_when_and_that_no_timed_call_did(whole: Path) -> None:
    eager, compiled = store.load(whole).forms
    assert eager.compilation is None
    assert compiled.compilation is not None
    found = compiled.compilation.diagnostics
    assert found is not None
    assert [(frame.id, frame.phase, frame.call) for frame in found.frames] == [("0/0", "warm-up", 1)]
    assert [(call.phase, call.call, call.wall_us) for call in found.calls] == [("warm-up", 1, compiled.warmup_us[0])]
    assert (found.warmed_up_at, found.noted) == (None, ())


def test_a_run_tells_where_the_work_of_both_forms_came_from(whole: Path) -> None:
    run = store.load(whole)
    eager, compiled = (store.load_provenance(whole, form) for form in run.forms)
    assert isinstance(eager, EagerOps) and isinstance(compiled, CompiledSites)
    assert {op.module for op in eager.ops} == {"model", "model.block", "model.block.inner"}
    assert [graph.root for graph in compiled.graphs] == ["model"]
    assert compiled.graphs[0].sites
    assert [(call.graph, call.module) for call in compiled.calls] == [(0, "model")]


def test_a_run_says_how_accurate_compiled_code_is_and_shows_what_it_made(whole: Path) -> None:
    run = store.load(whole)
    eager, compiled = run.forms
    assert eager.numerics and compiled.numerics
    assert compiled.numerics.reference_dtype == "float64"
    assert [each.path for each in compiled.numerics.against_reference.tensors] == [".image"]  # type: ignore[union-attr]
    assert (eager.memory, eager.gpu_state) == (None, None)
    names = {"eager-output.png", "compiled-output.png", "compiled-difference.png"}
    assert names <= {path.name for path in whole.iterdir()}
    a, b = (load_side(whole, form=name, reading=Reading(shapes=True)) for name in ("eager", "compiled"))
    comparison = compare(a, b, run.order)
    assert comparison.accuracy is not None
    assert comparison.accuracy.result in ("equal", "as_accurate")
    assert [picture.caption for picture in (*a.pictures, *b.pictures)][:2] == ["eager", "compiled"]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("recording.record", ["light"]),
        ("tagging.tag_eager", ["light", "rich"]),
        ("output_check.check_outputs", ["light", "rich"]),
    ],
)
def test_an_interrupt_keeps_the_recordings_that_were_made_and_nothing_half_written(
    where: str, kept: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = recording.record

    def interrupted(*arguments: Any) -> Any:
        if "light" in arguments:
            return record(*arguments)
        for path in arguments:
            if isinstance(path, Path):
                path.write_text('{"half": ')
        raise KeyboardInterrupt

    monkeypatch.setattr(f"tracekit.measure.{where}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        profile(tmp_path / "run", EAGER)
    draft = tmp_path / "run.incomplete"
    (form,) = store.load(draft).forms
    assert [each.kind for each in form.recordings] == kept
    assert sorted(path.name for path in draft.glob("*-*.json.gz") if "ops" not in path.name) == [
        store.recording_path(draft, form, kind).name  # type: ignore[arg-type]
        for kind in kept
    ]
    assert not [path for path in draft.iterdir() if path.name.startswith(".")]


def test_what_is_not_wanted_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(provenance, "collected", None)
    monkeypatch.setattr(tagging, "tag_eager", None)
    monkeypatch.setattr(output_check, "check_outputs", None)
    run = profile(tmp_path / "run", BARE, kernels=False)
    assert [(form.provenance, form.numerics) for form in run.forms] == [(None, None)] * 2
    assert not run.noted and not list((tmp_path / "run").glob("*.png"))


def test_a_torch_without_provenance_is_noted_and_everything_else_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lacking = TorchLacks(torch="9.9", names=("CompiledFxGraph.post_compile",))
    monkeypatch.setattr(provenance, "missing_provenance", lambda: lacking)
    run = profile(tmp_path / "run", kernels=False)
    assert [form.provenance for form in run.forms] == ["eager-ops.json.gz", None]
    assert all(form.wall_us and len(form.recordings) == 2 for form in run.forms)
    assert lacking in run.noted


def test_asking_that_fails_is_noted_and_nothing_measured_is_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failing(*_arguments: object) -> None:
        raise RuntimeError("a part of torch is gone")

    monkeypatch.setattr(tagging, "tag_eager", failing)
    monkeypatch.setattr(output_check, "check_outputs", failing)
    run = profile(tmp_path / "run", EAGER)
    (form,) = run.forms
    assert (run.status, form.provenance, form.numerics) == ("complete", None, None)
    assert form.wall_us and len(form.recordings) == 2
    why = "RuntimeError: a part of torch is gone"
    assert run.noted == (
        ProvenanceFailed(form="eager", error=why),
        OutputsNotCompared(error=why),
    )


def test_nothing_is_profiled_in_the_runs_own_process_before_its_calls_are_timed_and_outputs_come_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CUPTI stays in a process that it has looked at, and slows every launch."""
    done: list[str] = []

    def note(place: Any, name: str) -> None:
        real = getattr(place, name)

        def noted(*arguments: Any, **options: Any) -> Any:
            done.append(name)
            return real(*arguments, **options)

        monkeypatch.setattr(place, name, noted)

    note(timing, "time_forms")
    note(recording, "record")
    note(recording_cost, "measure_recording_cost")
    note(output_check, "check_outputs")
    note(torch.profiler.profile, "__enter__")
    monkeypatch.setattr("tracekit.measure.device.free_memory_bytes", lambda _device: 2**40)
    monkeypatch.setattr(recording, "COMMAND", ["true"])
    profile(tmp_path / "run", replace(BARE, numerics=True), kernels=False, device="cuda")
    assert "__enter__" in done and done[:2] == ["time_forms", "measure_recording_cost"]
    assert [each for each in done if each != "__enter__"][2:] == ["record"] * 4 + ["check_outputs"]


def test_a_run_keeps_what_recording_adds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cost = Cost(5.0, 4.0, 6.5)
    costs = EventCosts(cost, cost, cost, cost, cost, graph_node=cost)
    measured = RecordingCost(costs, replace(costs, graph_launch=cost))
    monkeypatch.setattr(recording_cost, "measure_recording_cost", lambda *_, **__: measured)
    assert profile(tmp_path / "run", replace(BARE, forms=("eager",))).recording_cost == measured


@pytest.mark.parametrize("dynamic", [None, True])
def test_warming_up_at_another_size_is_found_in_the_timed_call_it_cost_unless_code_is_for_any_size(
    dynamic: bool | None, tmp_path: Path
) -> None:
    request = replace(REQUEST, batch_size=4, dynamic=dynamic)

    def build(asked: Request, *_: Any) -> BuiltWorkload:
        return built(nn.Linear(8, 8), lambda other: torch.randn(other.batch_size, 8), asked)

    plan = replace(BARE, request=request, warmup={"batch_size": 2})
    run = profile(tmp_path / "run", plan, build, kernels=False)
    facts = facts_of(run)
    assert facts.diagnostics is not None
    assert facts.diagnostics.warmed_up_at == {"batch_size": 2}
    if dynamic:
        assert (facts.during_timing, facts.diagnostics.recompiles) == (0, ())
        return
    assert facts.during_timing == 1
    (call,) = facts.diagnostics.timed_calls()
    assert (call.call, call.wall_us) == (1, run.forms[1].wall_us[0])
    (frame,) = (each for each in facts.diagnostics.frames if (each.phase, each.call) == (call.phase, call.call))
    (guard,) = frame.because
    check = check_of(guard)
    assert isinstance(check, Size) and (check.index, check.then, check.now) == ("0", "2", "4")


def test_a_workload_that_cannot_be_called_at_other_sizes_says_so(tmp_path: Path) -> None:
    def build(*asked: Any) -> BuiltWorkload:
        return replace(painter(*asked), call_at=None)

    with pytest.raises(TracekitError, match="leave --warmup out"):
        profile(tmp_path / "run", replace(EAGER, warmup={"batch_size": 2}), build)


WIDTH = 8


class Part(nn.Module):  # type: ignore[misc]
    def __init__(self, inside: int = WIDTH) -> None:
        super().__init__()
        self.widen, self.narrow = nn.Linear(WIDTH, inside), nn.Linear(inside, WIDTH)

    def forward(self, x: Any) -> Any:
        return x + self.narrow(nn.functional.gelu(self.widen(x)))


class Broken(Part):
    def forward(self, x: Any) -> Any:
        x = super().forward(x)
        torch._dynamo.graph_break()
        return x * 2


class Model(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Part() for _ in range(3))
        self.broken = Broken()
        self.spare = Part()

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.broken(x)


def in_parts(request: Request, *_: Any) -> BuiltWorkload:
    torch.manual_seed(0)
    return built(Model(), lambda _asked: torch.randn(4, WIDTH), request)


def scoped(folder: Path, scope: str, *, plan: Any = BARE, kernels: bool = False, **asked: Any) -> Run:
    request = replace(REQUEST, scope=scope, **asked)
    return profile(folder, replace(plan, request=request), in_parts, kernels=kernels)


def test_blocks_that_are_alike_are_compiled_once_and_entered_each(tmp_path: Path) -> None:
    run = scoped(tmp_path / "run", "regional")
    facts = facts_of(run)
    assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    side = load_side(tmp_path / "run", form="compiled")
    assert side.entering is not None and side.entering.regions is not None
    (region,) = side.entering.regions.regions
    assert region.count / side.entering.window.steps == 3
    assert run.settings.scope == "regional"
    assert [(part.name, part.compiled, part.compiled_parts) for part in run.components] == [
        ("model.blocks", True, ("model.blocks.*",)),
        ("model.broken", False, ()),
        ("model.spare", False, ()),
    ]
    assert run.repeated_parts == ("model.blocks.*",)


def test_of_named_parts_one_has_its_kernels_and_one_that_no_call_comes_to_is_not_told_as_compiled(
    tmp_path: Path,
) -> None:
    run = scoped(tmp_path / "run", "blocks.1,spare", plan=PLAN, kernels=True)
    assert NeverCalled(parts=("model.spare",), more=0) in run.noted
    assert [(part.name, part.compiled, part.compiled_parameters) for part in run.components] == [
        ("model.blocks", True, 144),
        ("model.broken", False, 0),
        ("model.spare", False, 0),
    ]
    sites = store.load_provenance(tmp_path / "run", run.forms[1])
    assert isinstance(sites, CompiledSites)
    assert [graph.root for graph in sites.graphs] == ["model.blocks.1"]
    assert "provenance_incomplete" not in [each.code for each in run.noted]
    numerics = run.forms[1].numerics
    assert numerics is not None and numerics.against_eager is not None
    (output,) = numerics.against_eager.tensors
    assert output.max_abs is not None and output.max_abs < 1e-5


def test_a_break_is_told_with_its_line_and_what_the_recording_says_it_costs(tmp_path: Path) -> None:
    run = scoped(tmp_path / "run", "broken", fullgraph=False)
    assert (facts_of(run).graphs, facts_of(run).graph_breaks) == (2, 1)
    side = load_side(tmp_path / "run", form="compiled")
    assert side.diagnostics is not None
    (found,) = side.diagnostics.breaks
    assert found.where is not None and "test_profiling.py:" in found.where
    assert found.frames == ("0/0",)
    assert side.entering is not None and side.entering.regions is not None
    regions = {region.id: region for region in side.entering.regions.regions}
    assert set(regions) == {"0/0", "1/0"}
    assert found.per_step_us == pytest.approx(regions["0/0"].outside_us / side.entering.window.steps)


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ("model", "--no-fullgraph"),
        ("spare", r"model\.spare"),
        ("attention", "'attention'"),
    ],
)
def test_a_scope_that_cannot_be_compiled_is_an_error_and_leaves_no_run(
    scope: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(TracekitError, match=message):
        scoped(tmp_path / "run", scope)
    assert not (tmp_path / "run").exists()
    assert scope != "attention" or list(tmp_path.iterdir()) == []


def test_more_blocks_of_one_class_than_dynamo_compiles_are_all_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kernels(monkeypatch)
    blocks = nn.Sequential(*(Part(inside) for inside in range(1, 13)))
    targets = tuple(CompileTarget(f"blocks.{n}", block) for n, block in enumerate(blocks))
    workload = replace(built(blocks, lambda _asked: torch.randn(2, WIDTH), REQUEST), targets=targets)
    warm = forms.warm_up(forms.compiled_form(workload), Silent())
    assert warm.compilation is not None
    assert warm.compilation.graphs == 12


def test_a_fresh_process_compiles_the_same_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kernels(monkeypatch)
    job = ChildJob(Request("mlp", scope="model.0,model.1.widen"), "tiny", "cpu", ("compiled",), None, 1)
    found = work(job)
    (compiled,) = found.forms
    assert compiled.compilation is not None and compiled.compilation.graphs == 2
    assert found.load_seconds > 0
