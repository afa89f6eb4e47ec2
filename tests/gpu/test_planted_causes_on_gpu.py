"""Causes planted in small torch programs on a real GPU, recorded with torch.profiler and read back.

What was planted is measured beside it: sleeps and calls by the host's clock, GPU work by device events, counts by what
the program did. Bounds are 2 % plus what the program around the planted cause may take, which each test states. They
hold while nobody else is at work, so each test has a few tries. The figures that were found are printed.
"""

# ruff: noqa: T201

import contextlib
import gc
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.gpu.conftest import in_one_of_a_few_tries

from tracekit.analysis import analyze
from tracekit.analysis.listing import list_activities
from tracekit.tracefile.read import read_trace

torch: Any = pytest.importorskip("torch")

STEPS = 4

#: What a few launches, their Python and the profiler take around a planted cause, per step.
AROUND_US = 400.0


class Recorded:
    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.analysis: Any = analyze(trace)
        self.idle = self.analysis.idle
        (self.queue,) = self.analysis.queue

    def us(self, cause: str) -> float:
        """Idle time of a cause, in all steps."""
        return next((each.us for each in self.idle.causes if each.cause == cause), 0.0)

    def drained(self, *calls: str) -> int:
        return sum(sync.drained for sync in self.idle.syncs if sync.call in calls)


def record(folder: Path, step: Callable[[int], object], *, warm: int = 2, **options: Any) -> Recorded:
    """STEPS calls of `step`, each synchronised, under the profiler; `warm` calls before, one of them recorded too,
    because the profiler's first is slow. `step` gets its number, negative while warming up."""
    from torch.profiler import ProfilerActivity, profile, record_function

    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    for number in range(-warm, 0):
        step(number)
        torch.cuda.synchronize()
    with profile(activities=activities, **options):
        step(-1)
        torch.cuda.synchronize()
    # A collection of the test runner's own objects would be one more cause.
    gc.collect()
    gc.disable()
    try:
        with profile(activities=activities, **options) as profiler:
            torch.cuda.synchronize()
            for number in range(STEPS):
                with record_function(f"tracekit.step#{number}"):
                    step(number)
                    torch.cuda.synchronize()
    finally:
        gc.enable()
    profiler.export_chrome_trace(str(folder / "trace.json"))
    found = Recorded(read_trace(folder / "trace.json"))
    print({each.cause: round(each.us, 1) for each in found.idle.causes}, found.idle.syncs, found.idle.largest[0])
    check_sums(found)
    return found


def check_sums(found: Recorded) -> None:
    """Whatever was planted: the causes divide idle time exactly, per device and step, and so does the queue model."""
    gpu, window = found.analysis.gpu, found.analysis.window
    assert (window.kind, window.steps) == ("steps", STEPS)
    assert sum(each.us for each in found.idle.causes) == pytest.approx(gpu.idle_us)
    for parts, wholes in ((found.idle.by_device, found.analysis.devices), (found.idle.by_step, found.analysis.steps)):
        assert [sum(each.causes.values()) for each in parts] == pytest.approx([each.idle_us for each in wholes])
    assert found.queue.starved_us + found.queue.delayed_us == pytest.approx(gpu.idle_us)
    assert found.queue.hand_to_mouth_us + found.queue.backed_up_us == pytest.approx(gpu.busy_us)


def device_us(work: Callable[[], object]) -> float:
    """What the work takes on the GPU, by device events."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3


def drain() -> None:
    """Until the GPU has nothing left to do, by asking. No call waits, for the place of a gap that begins under one is
    that call's: on a GPU that others use too, a kernel often ends only then."""
    event = torch.cuda.Event()
    event.record()
    while not event.query():
        pass


def host_us(work: Callable[[], object]) -> float:
    begin = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - begin) / 1e3


@pytest.fixture(scope="module")
def cycles() -> float:
    """How many cycles of `torch.cuda._sleep` are a microsecond here and now, when the GPU does nothing else."""
    torch.cuda._sleep(1_000_000)
    return max(20_000_000 / device_us(lambda: torch.cuda._sleep(20_000_000)) for _ in range(5))


@pytest.fixture
def small() -> Any:
    return torch.ones(16, device="cuda")


@in_one_of_a_few_tries
def test_known_gpu_work_is_busy_time(tmp_path: Path, cycles: float) -> None:
    planted: list[float] = []

    def four_kernels() -> None:
        for _ in range(4):
            torch.cuda._sleep(int(2_000 * cycles))

    def step(number: int) -> None:
        planted.append(device_us(four_kernels))

    found = record(tmp_path, step)
    del planted[:-STEPS]
    assert found.analysis.gpu.busy_us == pytest.approx(sum(planted), rel=0.02)
    # Three of four kernels are launched while one runs.
    assert found.queue.starved_items == STEPS
    assert found.queue.backed_up_us == pytest.approx(0.75 * sum(planted), rel=0.05)


@in_one_of_a_few_tries
def test_a_sleep_is_python(tmp_path: Path, small: Any) -> None:
    slept: list[float] = []

    def step(number: int) -> None:
        small.add_(1)
        drain()
        slept.append(host_us(lambda: time.sleep(0.005)))
        small.add_(1)

    found = record(tmp_path, step)
    del slept[:-STEPS]
    assert found.us("python") >= 0.98 * sum(slept)
    assert found.us("python") <= 1.02 * sum(slept) + STEPS * AROUND_US
    assert all(each.causes["python"] >= 0.98 * us for each, us in zip(found.idle.by_step, slept, strict=True))
    gap = found.idle.largest[0]
    assert (gap.host[0].name, gap.launched_by, gap.sync) == (None, "cudaLaunchKernel", None)
    assert gap.where.operator == "aten::add_"


@in_one_of_a_few_tries
def test_a_sleep_under_recorded_stacks_names_its_function(tmp_path: Path, small: Any) -> None:
    def rest_a_little() -> None:
        time.sleep(0.005)
        small.add_(1)

    def step(number: int) -> None:
        small.add_(1)
        drain()
        rest_a_little()

    found = record(tmp_path, step, with_stack=True)
    assert found.us("python") >= 0.98 * STEPS * 5_000
    gap = found.idle.largest[0]
    assert "rest_a_little" in gap.where.line
    assert "sleep" in (gap.host[0].name or "")


@in_one_of_a_few_tries
def test_synchronisations_are_counted_and_each_exposes_its_gap(tmp_path: Path, cycles: float, small: Any) -> None:
    each_step = 5

    def step(number: int) -> None:
        for _ in range(each_step):
            # Longer than a host that others load too takes from here to the wait.
            torch.cuda._sleep(int(2000 * cycles))
            small[0].item()
        small.add_(1)

    found = record(tmp_path, step)
    assert found.drained("cudaStreamSynchronize", "cudaMemcpyAsync") == each_step * STEPS
    waits = next(sync for sync in found.idle.syncs if sync.call == "cudaStreamSynchronize")
    assert waits.count == each_step * STEPS
    assert waits.place.operator == "aten::_local_scalar_dense"
    # The synchronisation that ends a step leaves no work behind it: it is no fault.
    assert found.drained("cudaDeviceSynchronize") == 0


@in_one_of_a_few_tries
def test_a_synchronisation_with_work_launched_behind_it_is_no_cause(tmp_path: Path, cycles: float) -> None:
    def step(number: int) -> None:
        for _ in range(20):
            torch.cuda._sleep(int(300 * cycles))

    found = record(tmp_path, step)
    assert found.drained("cudaDeviceSynchronize", "cudaStreamSynchronize") == 0


@in_one_of_a_few_tries
def test_three_hundred_tiny_kernels_are_launch_and_dispatch(tmp_path: Path, small: Any) -> None:
    def step(number: int) -> None:
        for _ in range(300):
            small.add_(1)

    found = record(tmp_path, step)
    assert (found.analysis.kernels.count, found.analysis.launches.count) == (300 * STEPS, 300 * STEPS)
    host = found.us("launch_call") + found.us("op_dispatch") + found.us("python")
    begun = host + found.us("launch_latency") + found.us("device")
    assert begun + found.us("profiler") >= 0.98 * found.analysis.gpu.idle_us - STEPS * AROUND_US
    assert found.us("launch_call") + found.us("op_dispatch") > 0.5 * found.analysis.gpu.idle_us
    # A kernel of this size takes less than its launch: the GPU is done before the next one comes.
    assert found.queue.starved_items >= 0.8 * 300 * STEPS
    assert 0.2 < found.queue.delays.p50_us < 20
    # So it has the latency of the launch to itself, and waits in no queue.
    assert found.us("launch_latency") > found.us("device")


@in_one_of_a_few_tries
def test_two_streams_side_by_side_are_busy_once(tmp_path: Path, cycles: float) -> None:
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    alone_us = 4_000.0

    def step(number: int) -> None:
        for stream in streams:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(int(alone_us * cycles))

    found = record(tmp_path, step)
    each = found.analysis.kernels.total_us / (2 * STEPS)
    assert each > 0.5 * alone_us
    # The second begins one launch later.
    assert 0.999 * each * STEPS <= found.analysis.gpu.busy_us <= 1.02 * each * STEPS + STEPS * AROUND_US
    assert found.analysis.devices[0].streams == 2


@in_one_of_a_few_tries
def test_a_recompilation_in_the_window_is_compile(tmp_path: Path, small: Any) -> None:
    import torch._dynamo
    import torch._inductor.config

    spent: list[float] = []

    def scaled(x: Any) -> Any:
        return torch.nn.functional.gelu(x * 2.0 + 1.0)

    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=True):
        compiled = torch.compile(scaled, dynamic=False)

        def step(number: int) -> None:
            size = 4096 + 64 * number if number == 2 else 1024
            data = torch.ones(size, device="cuda")
            torch.cuda.synchronize()
            us = host_us(lambda: compiled(data))
            if number == 2:
                spent.append(us)

        found = record(tmp_path, step)
    torch._dynamo.reset()
    # Of the call all but entering Dynamo, the guards and the launch itself is inside the compiler's own events; while
    # it tries out configurations the GPU is busy.
    trying_us = found.analysis.steps[2].busy_us
    assert 0.95 * spent[0] - trying_us <= found.us("compile") <= 1.02 * spent[0]
    assert [each.causes.get("compile", 0.0) > 0 for each in found.idle.by_step] == [False, False, True, False]
    assert "compile_in_window" in {each.code for each in found.analysis.health}


@in_one_of_a_few_tries
def test_a_graph_break_with_item_names_the_call_that_waits(tmp_path: Path, cycles: float) -> None:
    import torch._dynamo

    def broken(x: Any) -> Any:
        y = x * 2.0 + 1.0
        torch._dynamo.graph_break()
        factor = y[0].item()
        torch._dynamo.graph_break()
        return x * factor + 2.0

    torch._dynamo.reset()
    compiled = torch.compile(broken)
    data = torch.ones(4096, device="cuda")

    def step(number: int) -> None:
        # Longer than a host that others load too takes from here to the wait.
        torch.cuda._sleep(int(5000 * cycles))
        compiled(data)

    found = record(tmp_path, step, warm=5)
    torch._dynamo.reset()
    assert found.us("compile") == 0
    assert found.drained("cudaStreamSynchronize", "cudaMemcpyAsync") == STEPS
    waits = next(sync for sync in found.idle.syncs if sync.call == "cudaStreamSynchronize")
    assert waits.count == STEPS
    assert waits.place.operator == "aten::_local_scalar_dense"
    assert found.us("guards") > 0


@in_one_of_a_few_tries
def test_garbage_collection_is_gc(tmp_path: Path, small: Any) -> None:
    from torch._C._profiler import _ExperimentalConfig

    collected: list[float] = []
    _junk = [[number] for number in range(400_000)]

    def step(number: int) -> None:
        small.add_(1)
        torch.cuda.synchronize()
        collected.append(host_us(gc.collect))
        small.add_(1)

    recording = {}
    # Not every torch can record it.
    with contextlib.suppress(TypeError):
        recording["experimental_config"] = _ExperimentalConfig(record_python_gc_info=True)
    found = record(tmp_path, step, with_stack=True, **recording)
    assert found.us("gc") == pytest.approx(sum(collected[-STEPS:]), rel=0.02, abs=STEPS * 100)


@in_one_of_a_few_tries
def test_pageable_copies_hold_the_host(tmp_path: Path, small: Any) -> None:
    each_step, large = 3, torch.ones(16 * 2**20, device="cuda")
    held: list[float] = []

    def step(number: int) -> None:
        for _ in range(each_step):
            held.append(host_us(large.cpu))
            small.add_(1)

    found = record(tmp_path, step)
    del held[: -each_step * STEPS]
    copies = [each for each in found.analysis.copies.by_name if "DtoH" in each.name]
    assert sum(each.count for each in copies) == each_step * STEPS
    assert any("Pageable" in each.name for each in copies)
    # Each lets the GPU run dry, whether the copy's own call is still waiting then or the synchronisation behind it.
    assert found.drained("cudaMemcpyAsync", "cudaStreamSynchronize") == each_step * STEPS
    # While the host was held, the GPU copied or was idle for what the host did: nothing of it is lost.
    copying = sum(each.total_us for each in copies)
    host = sum(found.us(cause) for cause in ("sync_wait", "launch_call", "op_dispatch", "memory", "python"))
    assert copying <= sum(held)
    assert copying + host >= 0.98 * sum(held)


@in_one_of_a_few_tries
def test_pauses_inside_a_cuda_graph_are_the_device_s(tmp_path: Path, small: Any) -> None:
    kernels = 200
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            small.add_(1)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(kernels):
            small.add_(1)

    found = record(tmp_path, lambda number: graph.replay())
    assert found.analysis.launches.graph_launches == STEPS
    assert found.analysis.launches.kernels_in_graphs == kernels * STEPS
    # From one kernel of a step to the next, summed up from the list of activities.
    ordered = list_activities(found.trace).filter(pl.col("kind") == "kernel").sort("step", "start_us")
    ends = (pl.col("start_us") + pl.col("duration_us")).shift(1).over("step")
    inside = float(ordered.select((pl.col("start_us") - ends).clip(0).sum()).item())
    assert found.us("device") == pytest.approx(inside, abs=STEPS)
    # From the launch's return to the first kernel.
    assert found.us("launch_latency") <= STEPS * 60
    assert found.queue.kernels_in_graphs == kernels * STEPS
    assert found.queue.items == STEPS
    delayed = found.us("device") + found.us("launch_latency")
    assert found.queue.delayed_us == pytest.approx(delayed, rel=0.02, abs=STEPS * 5)


@in_one_of_a_few_tries
def test_backward_on_another_thread(tmp_path: Path, cycles: float) -> None:
    layers = [torch.nn.Linear(512, 512) for _ in range(8)]
    model = torch.nn.Sequential(*layers).cuda()
    data = torch.ones(64, 512, device="cuda")
    host_data = torch.ones(1536, 1536)
    multiplied: list[float] = []
    slept: list[float] = []
    threads: set[int] = set()
    model[0].weight.register_hook(lambda _: threads.add(threading.get_ident()))

    def step(number: int) -> None:
        loss = model(data).sum()
        torch.cuda._sleep(int(2000 * cycles))
        loss.item()
        # Between the wait and backward, which another thread launches: work of the host's that is recorded ...
        multiplied.append(host_us(lambda: torch.mm(host_data, host_data)))
        # ... and some that is not.
        slept.append(host_us(lambda: time.sleep(0.003)))
        loss.backward()

    found = record(tmp_path, step)
    assert threading.get_ident() not in threads
    launching = found.trace.calls.filter(pl.col("name").str.contains("Launch"))["thread"].n_unique()
    assert launching == 2
    assert found.us("python") >= 0.98 * sum(slept[-STEPS:])
    assert found.us("op_dispatch") >= 0.95 * sum(multiplied[-STEPS:])
    assert found.drained("cudaStreamSynchronize", "cudaMemcpyAsync") == STEPS
    syncs = {each.sync for each in found.idle.largest if each.duration_us > 3_000}
    assert syncs - {None} and syncs <= {"cudaStreamSynchronize", "cudaMemcpyAsync", None}
