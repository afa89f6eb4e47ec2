"""Parts of a small model compiled by name, through the whole walk on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.capture.conftest import make_settings  # noqa: E402
from torch import nn  # noqa: E402

from tracekit import store  # noqa: E402
from tracekit.capture import forms, warmup  # noqa: E402
from tracekit.capture.compilation import room_for  # noqa: E402
from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.child import ChildJob  # noqa: E402
from tracekit.model.note import Noted  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.run import FormResult, Run  # noqa: E402
from tracekit.model.timing import StoppingRule  # noqa: E402
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request  # noqa: E402
from tracekit.walks import profiling  # noqa: E402
from tracekit.walks.plan import Plan, place_of_run  # noqa: E402
from tracekit.walks.reading import Reading  # noqa: E402
from tracekit.walks.sides import load_side  # noqa: E402
from tracekit.walks.timing_process import run_child  # noqa: E402
from tracekit.workloads.registry import find  # noqa: E402

WIDTH = 8


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, inside: int = WIDTH) -> None:
        super().__init__()
        self.widen, self.narrow = nn.Linear(WIDTH, inside), nn.Linear(inside, WIDTH)

    def forward(self, x: Any) -> Any:
        return x + self.narrow(nn.functional.gelu(self.widen(x)))


class Broken(Block):
    def forward(self, x: Any) -> Any:
        x = super().forward(x)
        torch._dynamo.graph_break()
        return x * 2


class Model(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.broken = Broken()
        self.spare = Block()

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.broken(x)


def build(request: Request, _size: str, _device: str, _progress: Any) -> BuiltWorkload:
    torch.manual_seed(0)
    model, x = Model().eval().requires_grad_(False), torch.randn(4, WIDTH)
    settings = make_settings(workload="mlp", scope="model", fullgraph=request.fullgraph is not False)
    target = CompileTarget("model", model)
    return BuiltWorkload(find("mlp"), settings, lambda: model(x), (target,), (), (), modules=(("model", model),))


@pytest.fixture(autouse=True)
def small_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(profiling, "load_builder", lambda _info: build)
    monkeypatch.setattr("tracekit.capture.device.pick_device", lambda: "cpu")
    monkeypatch.chdir(tmp_path)


def profile(folder: Path, scope: str, **asked: Any) -> Run:
    request = Request("mlp", size="tiny", scope=scope, iterations=2, **asked)
    plan = Plan(request, ("eager", "compiled"), folder, False, "tracekit profile mlp --compiled")
    return store.load(profiling.profile(plan, Silent(), lambda _part: None))


def compiled(run: Run) -> FormResult:
    form = run.form("compiled")
    assert form is not None and form.compilation is not None
    return form


def graph_calls_per_step(folder: Path) -> float:
    side = load_side(folder, form="compiled", reading=Reading(shapes=True, cached=False))
    assert side.entering is not None and side.entering.regions is not None
    return side.entering.regions.graphs / side.entering.window.steps


def test_blocks_that_are_alike_are_compiled_once_and_entered_each(tmp_path: Path) -> None:
    run = profile(tmp_path / "run", "blocks.*")
    facts = compiled(run).compilation
    assert facts is not None
    assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    assert graph_calls_per_step(tmp_path / "run") == 3
    assert run.settings.scope == "blocks.*"


def test_regional_is_the_same_without_naming_them(tmp_path: Path) -> None:
    run = profile(tmp_path / "run", "regional")
    facts = compiled(run).compilation
    assert facts is not None and facts.graphs == 1
    assert [(part.name, part.compiled, part.compiled_parts) for part in run.components] == [
        ("model.blocks", True, ("model.blocks.*",)),
        ("model.broken", False, ()),
        ("model.spare", False, ()),
    ]
    assert run.repeated_parts == ("model.blocks.*",)


def test_kernels_of_a_named_part_come_with_its_modules(tmp_path: Path) -> None:
    run = profile(tmp_path / "run", "blocks.1")
    sites = store.load_compiled_sites(tmp_path / "run", run)
    assert sites is not None
    assert [graph.root for graph in sites.graphs] == ["model.blocks.1"]
    assert not [note for note in run.notes if "provenance" in note]


def test_what_a_partly_compiled_model_returns_is_held_against_eager(tmp_path: Path) -> None:
    numerics = compiled(profile(tmp_path / "run", "blocks.0,blocks.2")).numerics
    assert numerics is not None and numerics.against_eager is not None
    (output,) = numerics.against_eager.tensors
    assert output.max_abs is not None and output.max_abs < 1e-5


def test_a_break_outside_of_the_scope_is_none(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match="--no-fullgraph"):
        profile(tmp_path / "whole", "model")
    run = profile(tmp_path / "run", "broken", fullgraph=False)
    facts = compiled(run).compilation
    assert facts is not None and facts.diagnostics is not None
    assert (facts.graphs, facts.graph_breaks) == (2, 1)
    assert facts.diagnostics.breaks[0].where
    assert graph_calls_per_step(tmp_path / "run") == 2


def test_a_part_that_no_call_comes_to_is_noted_and_not_told_as_compiled(tmp_path: Path) -> None:
    run = profile(tmp_path / "run", "blocks.0,spare")
    assert Noted("never_called", {"parts": ("model.spare",), "more": 0}) in run.noted
    assert [(part.name, part.compiled, part.compiled_parameters) for part in run.components] == [
        ("model.blocks", True, 144),
        ("model.broken", False, 0),
        ("model.spare", False, 0),
    ]


def test_a_scope_that_no_call_comes_to_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match=r"no call comes to model\.spare"):
        profile(tmp_path / "run", "spare")


def test_a_wrong_name_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match="nothing called 'attention'"):
        profile(tmp_path / "run", "attention")
    assert list(tmp_path.iterdir()) == []


def test_more_blocks_of_one_class_than_dynamo_compiles_are_all_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    options = forms.compile_options
    # What is counted are Dynamo's graphs: the C++ of each would take seconds.
    monkeypatch.setattr(forms, "compile_options", lambda settings: {**options(settings), "backend": "aot_eager"})
    blocks = nn.Sequential(*(Block(inside) for inside in range(1, 13)))
    targets = tuple(CompileTarget(f"blocks.{n}", block) for n, block in enumerate(blocks))
    x = torch.randn(2, WIDTH)
    workload = replace(build(Request("mlp"), "tiny", "cpu", None), targets=targets, call=lambda: blocks(x))
    with torch.no_grad():
        warm = warmup.warm_up(forms.compiled_form(workload), Silent())
    assert warm.compilation is not None
    assert warm.compilation.graphs == 12


def test_no_room_is_made_for_blocks_that_are_alike() -> None:
    before = torch._dynamo.config.recompile_limit
    with room_for(tuple(CompileTarget(str(n), Block()) for n in range(20)))():
        assert torch._dynamo.config.recompile_limit == before
    with room_for(tuple(CompileTarget(str(n), Block(n)) for n in range(1, 21)))():
        assert torch._dynamo.config.recompile_limit == 40
    assert torch._dynamo.config.recompile_limit == before


def test_a_folder_is_named_by_the_scope_without_what_shells_and_systems_take_for_themselves() -> None:
    def name(scope: str) -> str:
        return place_of_run(Plan(Request("mlp", scope=scope), ("eager", "compiled"), None, False, "")).name

    assert name("layers.*,head/x") == "mlp-compiled-layers.each+head_x"
    assert len(name("layer." * 100)) < 100


@pytest.mark.slow
def test_a_fresh_process_compiles_the_same_part(tmp_path: Path) -> None:
    rule = StoppingRule(3, 0.01, 30.0, 3)
    job = ChildJob(Request("mlp", scope="model.0,model.1.widen"), "tiny", "cpu", ("eager", "compiled"), rule, 1)
    found = run_child(job, tmp_path, Silent(), "scoped")
    eager, compiled = found.forms
    assert all(form.times and len(form.times.wall_us) == 3 for form in found.forms)
    assert eager.compilation is None
    assert compiled.compilation is not None and compiled.compilation.graphs == 2
    assert found.load_seconds > 0
