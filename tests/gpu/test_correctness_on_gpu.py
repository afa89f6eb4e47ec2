"""Outputs, memory and the GPU's state of real runs at tiny size."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tracekit import store
from tracekit.cli.main import main
from tracekit.comparison import compare
from tracekit.model.comparison import Comparison
from tracekit.model.run import FormResult, Run
from tracekit.walks.sides import load_side


def profile(tmp_path: Path, workload: str, *options: str) -> tuple[Path, Run]:
    folder = tmp_path / "run"
    command = [
        "profile",
        workload,
        "--compiled",
        "--size",
        "tiny",
        "--iterations",
        "20",
        "--out",
        str(folder),
        *options,
    ]
    with contextlib.chdir(tmp_path):
        found = CliRunner().invoke(main, command, catch_exceptions=False)
        assert found.exit_code == 0, found.output
    return folder, store.load(folder)


def compared(folder: Path, run: Run) -> Comparison:
    return compare(load_side(folder, form="eager"), load_side(folder, form="compiled"), run.order)


@pytest.fixture(scope="module")
def flux(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    return profile(tmp_path_factory.mktemp("flux"), "flux")


@pytest.fixture(scope="module")
def graphed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    return profile(tmp_path_factory.mktemp("graphed"), "vit", "--mode", "reduce-overhead")


def forms(run: Run) -> tuple[FormResult, FormResult]:
    eager, compiled = run.forms
    return eager, compiled


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_compiled_code_is_as_accurate_as_eager_code(tmp_path: Path, dtype: str) -> None:
    for workload in ("mlp", "vit", "causal-lm"):
        place = tmp_path / workload
        place.mkdir()
        folder, run = profile(place, workload, "--dtype", dtype)
        accuracy = compared(folder, run).accuracy
        assert accuracy is not None, run.notes
        assert accuracy.result in ("equal", "as_accurate"), accuracy
        assert accuracy.basis != "tolerance", [form.numerics.no_reference for form in run.forms if form.numerics]


def test_a_pipeline_runs_in_the_higher_precision_from_the_same_noise(flux: tuple[Path, Run]) -> None:
    folder, run = flux
    eager, compiled = forms(run)
    assert eager.numerics is not None, run.notes
    assert eager.numerics.no_reference is None
    assert eager.numerics.reference_dtype == "float32"
    assert eager.numerics.against_reference is not None
    # Other noise would be another image: a cosine near that of strangers.
    assert (eager.numerics.against_reference.tensors[0].cosine or 0) > 0.99
    assert compared(folder, run).accuracy is not None
    assert compiled.numerics is not None
    assert {picture.kind for picture in compiled.numerics.pictures} == {"output", "difference"}


def test_memory_is_told_for_warm_up_and_steady_calls(flux: tuple[Path, Run]) -> None:
    for form in flux[1].forms:
        memory = form.memory
        assert memory is not None
        assert memory.steady is not None
        assert 0 < memory.before_bytes < memory.steady.allocated_bytes <= memory.warmup.allocated_bytes
        for use in (memory.warmup, memory.steady):
            assert use.allocated_bytes <= use.reserved_bytes
        assert (memory.graph_pool_bytes, memory.others_pool_bytes) == (0, 0)
        assert form.peak_memory_bytes == pytest.approx(memory.steady.allocated_bytes, rel=0.05)


def test_graph_pools_belong_to_the_form_that_has_graphs(graphed: tuple[Path, Run]) -> None:
    eager, compiled = forms(graphed[1])
    assert eager.memory is not None and compiled.memory is not None
    assert eager.memory.graph_pool_bytes == 0
    assert (compiled.memory.graph_pool_bytes or 0) > 0
    assert compiled.memory.steady is not None
    assert compiled.memory.steady.reserved_bytes >= (compiled.memory.graph_pool_bytes or 0)


def test_the_gpu_is_looked_at_before_between_and_after(flux: tuple[Path, Run]) -> None:
    pytest.importorskip("pynvml")
    for form in flux[1].forms:
        state = form.gpu_state
        assert state is not None
        assert state.source == "nvml"
        assert [state.samples[0].moment, state.samples[-1].moment] == ["before", "after"]
        assert state.during()
        assert state.sm_clock_mhz is not None
        assert 100 < state.sm_clock_mhz < 5000
        for sample in state.samples:
            assert sample.power_w is None or 10 < sample.power_w < 2000
            assert sample.temperature_c is None or 10 < sample.temperature_c < 120


def test_no_warning_is_made_of_our_own_process(flux: tuple[Path, Run]) -> None:
    pynvml: Any = pytest.importorskip("pynvml")
    import torch

    from tracekit.nvml import find_gpu

    found = find_gpu(torch.cuda.get_device_properties(0))
    assert found is not None
    sample = found.sample("before", 0.0)
    pynvml.nvmlInit()
    # NVML counts every GPU of the host, torch those of CUDA_VISIBLE_DEVICES.
    gpu = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
    listed = [each.pid for each in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)]
    if listed == [os.getpid()]:
        assert sample.other_processes == 0
    if len(listed) <= 1 and os.getpid() not in listed:
        assert sample.other_processes is None


def test_graphs_replay_after_the_reference_as_before(graphed: tuple[Path, Run]) -> None:
    import torch

    from tracekit.capture.forms import compiled_form
    from tracekit.capture.outputs import keep_output
    from tracekit.capture.reference import call_reference
    from tracekit.capture.warmup import warm_up
    from tracekit.model.progress import Silent
    from tracekit.model.workload import Request
    from tracekit.workloads.transformers_forward import build

    workload = build(Request("vit", mode="reduce-overhead"), "tiny", "cuda", Silent())
    form = compiled_form(workload)
    warm_up(form, Silent())

    def called() -> Any:
        with form.ready():
            return keep_output(form.call()).tensors[""]

    before = called()
    assert not isinstance(call_reference(workload, torch.float32, 0), str)
    assert torch.equal(called(), before)
