"""`tracekit profile` of each workload besides Flux, at tiny size on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.runs import tracekit

from tracekit import store


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vit", "causal-lm", "mlp"])
def test_both_forms_of_a_workload_are_run_recorded_and_reported(tmp_path: Path, name: str) -> None:
    pytest.importorskip("transformers")
    options = ("--compiled", "--size", "tiny", "--iterations", "5")
    # Without a GPU even where there is one: what is tested here is the CPU's path.
    found = tracekit("profile", name, *options, folder=tmp_path, CUDA_VISIBLE_DEVICES="")
    assert found.returncode == 0, found.stderr
    run = store.load(tmp_path / "traces" / f"{name}-compiled")
    assert run.status == "complete"
    assert (run.settings.workload, run.settings.dtype, run.settings.scope) == (name, "float32", "model")
    assert [form.name for form in run.forms] == ["eager", "compiled"]
    assert all(len(form.wall_us) == 5 and len(form.recordings) == 2 and form.provenance for form in run.forms)
    facts = run.forms[1].compilation
    assert facts is not None
    assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    assert not [note for note in run.notes if "provenance" in note]
    assert (tmp_path / "reports" / f"{name}-compiled.html").is_file()


@pytest.mark.parametrize("name", ["vit", "causal-lm", "mlp"])
def test_options_a_workload_has_not_are_one_line_before_anything_is_loaded(tmp_path: Path, name: str) -> None:
    found = tracekit("profile", name, "--height", 224, "--steps", 2, folder=tmp_path)
    assert found.returncode == 1
    assert found.stderr == f"error: {name} has no --height and no --steps: leave them out\n"
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.slow
def test_a_decoding_step_of_qwen_is_one_graph_and_told_as_a_phase(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    options = ("--compiled", "--phase", "decode", "--cache", "static", "--iterations", "5", "--json", "-")
    found = tracekit("profile", "qwen2.5-vl", *options, folder=tmp_path, CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1")
    assert found.returncode == 0, found.stderr
    run = store.load(tmp_path / "traces" / "qwen2.5-vl-compiled-decode-static")
    assert run.settings.generation is not None
    assert (run.settings.generation.phase, run.settings.generation.cache) == ("decode", "static")
    facts = run.forms[1].compilation
    assert facts is not None
    assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    assert "decode, static cache" in found.stderr
