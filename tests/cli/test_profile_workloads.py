"""`tracekit profile` of every workload, at tiny size on the CPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.runs import tracekit

from tracekit import store
from tracekit.cli.main import main
from tracekit.cli.profile import profile_workload
from tracekit.model.run import FormResult
from tracekit.model.workload import Request
from tracekit.tracefile.read import read_trace
from tracekit.walks.plan import Plan
from tracekit.workloads import registry

#: What is asked where kernels come from, too.
WITH_PROVENANCE = ("vit", "causal-lm", "mlp")
#: From an empty cache Inductor's C++ takes up to a minute for each of the others. They are compiled as far as
#: AOTAutograd, where every break is found by then, unless this is set in the environment.
EVERY_KERNEL = "TRACEKIT_TEST_EVERY_KERNEL"
WITH_INDUCTOR = (*WITH_PROVENANCE, "bert", "beit")


@pytest.fixture
def on_a_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a GPU even where there is one: what is tested here is the CPU's path."""
    pytest.importorskip("transformers")
    pytest.importorskip("diffusers")
    pytest.importorskip("scipy")
    monkeypatch.setattr("tracekit.capture.device.pick_device", lambda: "cpu")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


def without_inductor(monkeypatch: pytest.MonkeyPatch) -> None:
    from tracekit.capture import forms

    options = forms.compile_options
    if not os.environ.get(EVERY_KERNEL):
        monkeypatch.setattr(forms, "compile_options", lambda settings: {**options(settings), "backend": "aot_eager"})


@pytest.mark.slow
@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("name", [info.name for info in registry.all_workloads()])
def test_both_forms_of_every_workload_are_run_recorded_compared_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name not in WITH_INDUCTOR:
        without_inductor(monkeypatch)
    request = Request(name, size="tiny", iterations=2)
    asked = name in WITH_PROVENANCE
    folder = tmp_path / "traces" / f"{name}-compiled"
    profile_workload(Plan(request, ("eager", "compiled"), folder, False, f"profile {name}", provenance=asked))
    run = store.load(folder)
    assert run.status == "complete"
    assert (run.settings.workload, run.settings.size, run.settings.dtype) == (name, "tiny", "float32")
    assert [form.name for form in run.forms] == ["eager", "compiled"]
    assert all(len(form.wall_us) == 2 and min(form.wall_us) > 0 for form in run.forms)
    assert all(bool(form.provenance) is asked for form in run.forms)
    facts = run.forms[1].compilation
    assert facts is not None
    if registry.find(name).fullgraph:
        assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    else:
        assert facts.graphs > 1 and facts.graph_breaks > 0
    _are_finite_and_near(run.forms[1])
    for form in run.forms:
        for recording in form.recordings:
            assert read_trace(folder / recording.path).host.height > 0
    assert not [note for note in run.notes if "provenance" in note or "not compared" in note]
    assert (tmp_path / "reports" / f"{name}-compiled.html").is_file()


def _are_finite_and_near(compiled: FormResult) -> None:
    assert compiled.numerics is not None and compiled.numerics.against_eager is not None
    for output in compiled.numerics.against_eager.tensors:
        assert output.problem is None
        if output.max_abs is None or output.other_max is None:
            # Tokens, the first of which are the prompt.
            assert output.equal_share is not None and output.equal_share > 0.5
        else:
            assert not output.nonfinite
            assert output.max_abs <= 1e-3 * max(output.other_max, 1.0)


@pytest.mark.parametrize("name", ["vit", "causal-lm", "mlp"])
def test_options_a_workload_has_not_are_one_line_before_anything_is_loaded(tmp_path: Path, name: str) -> None:
    found = tracekit("profile", name, "--height", 224, "--steps", 2, folder=tmp_path)
    assert found.returncode == 1
    assert found.stderr == f"error: {name} has no --height and no --steps: leave them out\n"
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.slow
@pytest.mark.usefixtures("on_a_cpu")
def test_a_decoding_step_of_qwen_is_one_graph_and_told_as_a_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_inductor(monkeypatch)
    options = ("--compiled", "--phase", "decode", "--cache", "static", "--iterations", "3", "--no-provenance")
    found = CliRunner().invoke(main, ["profile", "qwen2.5-vl", *options, "--json", "-"])
    assert found.exit_code == 0, found.stderr
    run = store.load(tmp_path / "traces" / "qwen2.5-vl-compiled-decode-static")
    assert run.settings.generation is not None
    assert (run.settings.generation.phase, run.settings.generation.cache) == ("decode", "static")
    facts = run.forms[1].compilation
    assert facts is not None
    assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    assert "decode, static cache" in found.stderr
