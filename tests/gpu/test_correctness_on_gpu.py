"""Outputs, memory and the GPU's state of real runs at tiny size."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.gpu.conftest import TINY, profile, profile_in_a_process

from tracekit.comparison.comparing import compare
from tracekit.reading.sides import load_side

Ran = tuple[Path, Any]


def accuracy(folder: Path, run: Any) -> Any:
    return compare(load_side(folder, form="eager"), load_side(folder, form="compiled"), run.order).accuracy


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_compiled_code_is_as_accurate_as_eager_code(tmp_path: Path, dtype: str) -> None:
    for workload in ("mlp", "vit", "causal-lm"):
        place = tmp_path / workload
        place.mkdir()
        folder, run = profile(place, workload, *TINY, "--iterations", "20", "--dtype", dtype)
        found = accuracy(folder, run)
        assert found is not None, run.noted
        assert found.result in ("equal", "as_accurate"), found
        assert found.basis != "tolerance", [form.numerics.reference_missing for form in run.forms if form.numerics]


def test_a_pipeline_runs_in_the_higher_precision_from_the_same_noise(flux: Ran) -> None:
    eager, compiled = (form.numerics for form in flux[1].forms)
    assert eager is not None, flux[1].noted
    assert (eager.reference_missing, eager.reference_dtype) == (None, "float32")
    # Other noise would be another image: a cosine near that of strangers.
    assert eager.against_reference.tensors[0].cosine > 0.99
    assert accuracy(*flux) is not None
    assert {picture.kind for picture in compiled.pictures} == {"output", "difference"}


def test_memory_is_told_for_warm_up_and_steady_calls(flux: Ran) -> None:
    for form in flux[1].forms:
        memory = form.memory
        assert 0 < memory.before_bytes < memory.steady.allocated_bytes <= memory.warmup.allocated_bytes
        for use in (memory.warmup, memory.steady):
            assert use.allocated_bytes <= use.reserved_bytes
        assert (memory.graph_pool_bytes, memory.others_pool_bytes) == (0, 0)
        assert form.peak_memory_bytes == pytest.approx(memory.steady.allocated_bytes, rel=0.05)


def test_graph_pools_belong_to_the_form_that_has_graphs(tmp_path: Path) -> None:
    # In its own process no graph of another test gives its memory back meanwhile.
    _, run = profile_in_a_process(tmp_path, "vit", *TINY, "--iterations", "20", "--mode", "reduce-overhead")
    eager, compiled = (form.memory for form in run.forms)
    assert eager.graph_pool_bytes == 0
    assert 0 < compiled.graph_pool_bytes <= compiled.steady.reserved_bytes


def test_the_gpu_is_looked_at_before_between_and_after(flux: Ran) -> None:
    pytest.importorskip("pynvml")
    for form in flux[1].forms:
        state = form.gpu_state
        assert state.source == "nvml"
        assert [state.samples[0].moment, state.samples[-1].moment] == ["before", "after"]
        assert state.during()
        assert 100 < state.sm_clock_mhz < 5000
        for sample in state.samples:
            assert sample.power_w is None or 10 < sample.power_w < 2000
            assert sample.temperature_c is None or 10 < sample.temperature_c < 120


def test_no_warning_is_made_of_our_own_process() -> None:
    pynvml: Any = pytest.importorskip("pynvml")
    import torch

    from tracekit.nvml import find_gpu

    on_gpu = torch.zeros(1, device="cuda")
    found = find_gpu(torch.cuda.get_device_properties(on_gpu.device))
    assert found is not None
    pynvml.nvmlInit()
    # NVML counts every GPU of the host, torch those of CUDA_VISIBLE_DEVICES.
    gpu = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(on_gpu.device).uuid}")

    def pids() -> list[int]:
        return sorted(each.pid for each in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu))

    listed, sample = pids(), found.sample("before", 0.0)
    if pids() != listed:
        pytest.skip("another process came or went just then")
    if listed == [os.getpid()]:
        assert sample.other_processes == 0
    if len(listed) <= 1 and os.getpid() not in listed:
        assert sample.other_processes is None


def test_graphs_replay_after_the_reference_as_before() -> None:
    import torch

    from tracekit.measure.forms import compiled_form, warm_up
    from tracekit.measure.outputs import keep_output
    from tracekit.measure.reference import call_reference
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
