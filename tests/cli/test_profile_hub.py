"""`tracekit profile` of models that are named by their configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.runs import tracekit
from tests.cli.test_profile_workloads import without_inductor

from tracekit import store
from tracekit.cli.main import main

pytest.importorskip("transformers")
pytest.importorskip("diffusers")

from tests.workloads.configurations import save_denoiser, save_transformers


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "options", "run_name"),
    [
        ("hf:./model", ("--seq-length", 8), "hf-model-compiled"),
        ("diffusers:model", ("--height", 64, "--width", 64), "diffusers-model-compiled"),
    ],
)
def test_both_forms_are_run_recorded_and_reported(
    workload: str, options: tuple[object, ...], run_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if workload.startswith("hf"):
        save_transformers("BertForMaskedLM", tmp_path / "model")
    else:
        save_denoiser("FluxTransformer2DModel", tmp_path / "model")
        without_inductor(monkeypatch)
    # Without a GPU even where there is one: what is tested here is the CPU's path.
    monkeypatch.setattr("tracekit.capture.device.pick_device", lambda: "cpu")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    asked = ("profile", workload, "--compiled", "--iterations", "3", *map(str, options))
    monkeypatch.setattr("sys.argv", ["tracekit", *asked])
    found = CliRunner().invoke(main, asked)
    assert found.exit_code == 0, found.output
    run = store.load(tmp_path / "traces" / run_name)
    assert run.status == "complete"
    assert (run.settings.workload, run.settings.dtype, run.settings.scope) == (workload, "float32", "model")
    assert all(len(form.recordings) == 2 for form in run.forms)
    facts = run.forms[1].compilation
    assert facts is not None
    assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    assert (tmp_path / "reports" / f"{run_name}.html").is_file()
    if workload.startswith("hf"):
        assert run.settings.seq_length == 8
        assert all(form.provenance for form in run.forms)
        told = (tmp_path / "reports" / f"{run_name}.md").read_text()
        assert " · 8 tokens · " in told and "--seq-length 8" in told


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (
            ("hf:owner/model",),
            (
                "the configuration of owner/model is not in the local Hugging Face cache and nothing is downloaded"
                " unasked: pass --download to fetch it (a few kB), or the folder that holds it instead of the name"
            ),
        ),
        (
            ("diffusers:owner/model", "--download"),
            "owner/model is not in the cache and HF_HUB_OFFLINE is set: unset it, or pass a folder",
        ),
    ],
)
def test_a_configuration_that_is_not_here_is_one_line(asked: tuple[str, ...], line: str, tmp_path: Path) -> None:
    empty = {"HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    found = tracekit("profile", *asked, folder=tmp_path, **empty)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1] == f"error: {line}"
    assert not (tmp_path / "traces").exists() or list((tmp_path / "traces").iterdir()) == []


def test_options_it_has_not_are_one_line_before_anything_is_loaded(tmp_path: Path) -> None:
    found = tracekit("profile", "hf:owner/model", "--steps", 2, folder=tmp_path)
    assert found.stderr == "error: hf:owner/model has no --steps: leave it out\n"
