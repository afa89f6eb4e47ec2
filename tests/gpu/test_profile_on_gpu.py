"""`tracekit profile flux` on a real GPU, at tiny and small size."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tracekit import store
from tracekit.analysis import analyze
from tracekit.cli.main import main
from tracekit.model.analysis import Analysis
from tracekit.model.run import Run
from tracekit.tracefile import read_trace


def profile(tmp_path: Path, *options: str) -> tuple[Path, Run]:
    folder = tmp_path / "run"
    with contextlib.chdir(tmp_path):
        found = CliRunner().invoke(
            main, ["profile", "flux", "--iterations", "5", "--out", str(folder), *options], catch_exceptions=False
        )
        assert found.exit_code == 0, found.output
    return folder, store.load(folder)


def analysis_of(folder: Path, run: Run, name: Any, kind: Any) -> Analysis:
    form = run.form(name)
    assert form is not None
    return analyze(read_trace(store.recording_path(folder, form, kind)))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    return profile(tmp_path_factory.mktemp("tiny"), "--compiled", "--size", "tiny")


@pytest.fixture(scope="module")
def graphed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    return profile(tmp_path_factory.mktemp("graphed"), "--compiled", "--size", "tiny", "--mode", "reduce-overhead")


def test_light_and_rich_recordings_hold_the_same_kernels_per_step(tiny: tuple[Path, Run]) -> None:
    folder, run = tiny
    for name in ("eager", "compiled"):
        light, rich = analysis_of(folder, run, name, "light"), analysis_of(folder, run, name, "rich")
        assert light.window.steps == 2
        assert {step.kernels for step in light.steps} == {step.kernels for step in rich.steps}
        assert light.steps[0].kernels > 100


def test_compiling_the_transformer_makes_fewer_kernels_some_of_them_triton(tiny: tuple[Path, Run]) -> None:
    folder, run = tiny
    eager, compiled = (analysis_of(folder, run, name, "light").kernels for name in ("eager", "compiled"))
    assert eager is not None
    assert compiled is not None
    assert eager.triton_count == 0
    assert compiled.triton_count > 0
    assert compiled.count < eager.count


def test_every_kernel_of_a_recording_is_joined_to_its_launch(tiny: tuple[Path, Run]) -> None:
    folder, run = tiny
    for name in ("eager", "compiled"):
        for kind in ("light", "rich"):
            launches = analysis_of(folder, run, name, kind).launches
            assert launches is not None
            assert launches.unlinked_kernels == 0


def test_device_times_agree_with_wall_times(tiny: tuple[Path, Run]) -> None:
    _folder, run = tiny
    for form in run.forms:
        assert form.device_us is not None
        for wall_us, device_us in zip(form.wall_us, form.device_us, strict=True):
            assert 0.5 * wall_us < device_us <= wall_us + 50


def test_a_step_s_busy_time_lies_within_its_wall_time(tiny: tuple[Path, Run]) -> None:
    folder, run = tiny
    for name in ("eager", "compiled"):
        for step in analysis_of(folder, run, name, "light").steps:
            assert 0 < step.busy_us < step.wall_us
            assert step.busy_us + step.idle_us == pytest.approx(step.wall_us)


def test_cuda_graphs_start_many_kernels_with_one_launch(graphed: tuple[Path, Run]) -> None:
    folder, run = graphed
    launches = analysis_of(folder, run, "compiled", "light").launches
    assert launches is not None
    assert launches.graph_launches > 0
    assert launches.kernels_in_graphs > 10 * launches.graph_launches


def test_the_run_names_the_gpu_and_its_driver(tiny: tuple[Path, Run]) -> None:
    environment = tiny[1].environment
    assert environment.gpu
    assert environment.driver
    assert environment.cuda


def test_compiled_code_was_not_compiled_again_while_timed(tiny: tuple[Path, Run], graphed: tuple[Path, Run]) -> None:
    for _folder, run in (tiny, graphed):
        form = run.form("compiled")
        assert form is not None
        assert form.compilation is not None
        assert form.compilation.during_timing == 0
        assert form.compilation.graphs >= 1


@pytest.mark.parametrize("scope", ["vae", "text-encoders", "all", "regional"])
def test_every_scope_compiles(tmp_path: Path, scope: str) -> None:
    folder, run = profile(tmp_path, "--compiled", "--no-baseline", "--size", "tiny", "--scope", scope)
    kernels = analysis_of(folder, run, "compiled", "light").kernels
    assert kernels is not None
    assert kernels.triton_count > 0


def test_traces_hold_no_paths_of_the_machine(tiny: tuple[Path, Run]) -> None:
    import gzip

    for trace in tiny[0].glob("*.json.gz"):
        text = gzip.decompress(trace.read_bytes()).decode()
        assert "/tmp/" not in text, trace.name
        assert str(Path.home()) + "/" not in text, trace.name


def test_a_size_that_does_not_fit_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**30, 2**37))
    found = CliRunner().invoke(main, ["profile", "flux", "--size", "full", "--out", str(tmp_path / "run")])
    assert found.exit_code == 1
    assert "needs about 38 GiB" in found.output
    assert "Traceback" not in found.output
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) == "[]"
