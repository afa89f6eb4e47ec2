"""A cause is planted in a program of known times: it must be given the planted time, within 2 %, and no other cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.program import BETWEEN_STEPS_US, LATENCY_US, LAUNCH_US, Program
from tests.traces import analyze, make_trace

from tracekit.model.analysis import Analysis, IdleSummary, Place

STEPS = 5


def analyzed(folder: Path, program: Program) -> Analysis:
    found = analyze(make_trace(folder, program.events))
    # The causes divide idle time exactly: all of it, each device's and each step's.
    assert sum(each.us for each in found.idle.causes) == pytest.approx(found.gpu.idle_us)
    for device, use in zip(found.idle.by_device, found.devices, strict=True):
        assert sum(device.causes.values()) == pytest.approx(use.idle_us)
    for step, measured in zip(found.idle.by_step, found.steps, strict=True):
        assert (step.index, sum(step.causes.values())) == (measured.index, pytest.approx(measured.idle_us))
    return found


def idle_of(folder: Path, program: Program) -> IdleSummary:
    idle = analyzed(folder, program).idle
    assert idle is not None
    return idle


def us_of(idle: IdleSummary, cause: str) -> float:
    return next((each.us for each in idle.causes if each.cause == cause), 0.0)


def work(program: Program, kernels: int = 10, gpu_us: float = 50.0) -> None:
    """A host that keeps ahead of the GPU."""
    for _ in range(kernels):
        with program.op(before_us=3, after_us=2):
            program.launch(gpu_us)


def steady(program: Program, number: int) -> None:
    with program.step(number):
        work(program)
        program.synchronize()


def test_without_a_planted_cause_next_to_nothing_is_idle(tmp_path: Path) -> None:
    program = Program()
    for number in range(STEPS):
        steady(program, number)
    idle = idle_of(tmp_path, program)
    # Each step begins with an operator, its launch and the latency; after that the GPU never waits.
    assert {each.cause: each.us for each in idle.causes} == {
        "op_dispatch": STEPS * 3,
        "launch_call": STEPS * LAUNCH_US,
        "device": STEPS * LATENCY_US,
    }


def test_a_synchronisation_in_every_step(tmp_path: Path) -> None:
    program, noticing_us = Program(), 30.0
    for number in range(STEPS):
        with program.step(number):
            work(program)
            with program.op("aten::item"):
                program.synchronize(after_us=noticing_us)
            work(program)
            program.synchronize()
    idle = idle_of(tmp_path, program)
    assert us_of(idle, "sync_wait") == pytest.approx(STEPS * noticing_us, rel=0.02)
    (sync,) = idle.syncs
    # The one at the end of a step lets nothing wait: no work is left.
    assert (sync.call, sync.count, sync.drained) == ("cudaStreamSynchronize", 2 * STEPS, STEPS)
    assert sync.idle_after_us == pytest.approx(STEPS * (noticing_us + 3 + LAUNCH_US + LATENCY_US), rel=0.02)
    gap = idle.largest[0]
    assert (gap.sync, gap.launched_by) == ("cudaStreamSynchronize", "cudaLaunchKernel")
    assert gap.where == Place("aten::item", None, None)


@pytest.mark.parametrize("cause", ["python", "memory", "gc"])
def test_a_sleep_an_allocation_or_a_collection_in_every_step(tmp_path: Path, cause: str) -> None:
    program, lost_us = Program(), 5_000.0
    for number in range(STEPS):
        with program.step(number):
            if cause == "memory":
                program.call(lost_us, "cudaMalloc")
            elif cause == "gc":
                with program.python("Python GC"):
                    program.idle(lost_us / 2)
                    # Finalizers that it runs are part of it.
                    with program.python("cache.py(3): __del__"):
                        program.idle(lost_us / 2)
            else:
                program.idle(lost_us)
            work(program)
            program.synchronize()
    idle = idle_of(tmp_path, program)
    assert us_of(idle, cause) == pytest.approx(STEPS * lost_us, rel=0.02)
    assert [each.causes[cause] for each in idle.by_step] == pytest.approx([lost_us] * STEPS)
    if cause == "python":
        assert (idle.largest[0].host[0].name, idle.largest[0].host[0].us) == (None, lost_us)


def test_a_sleep_below_recorded_python_names_its_function(tmp_path: Path) -> None:
    program = Program()
    with program.step(0):
        work(program)
        with program.python("model.py(12): forward"), program.python("nn.Module: Head_0"):
            with program.python("torch/nn/modules/module.py(1775): _call_impl"), program.python("<built-in sleep>"):
                program.idle(5_000)
            work(program)
        program.synchronize()
    idle = idle_of(tmp_path, program)
    gap = idle.largest[0]
    # The GPU was still at work when the sleep began.
    assert us_of(idle, "python") == pytest.approx(gap.causes["python"])
    assert gap.host[0].name == "<built-in sleep>"
    assert gap.where == Place("aten::add", "Head_0", "model.py(12): forward")
    assert gap.where.words == "aten::add in Head_0, model.py(12): forward"


def test_three_hundred_tiny_kernels(tmp_path: Path) -> None:
    program, dispatch_us, gpu_us = Program(), 5.0, 1.5
    for number in range(STEPS):
        with program.step(number):
            work(program, kernels=300, gpu_us=gpu_us)
            program.synchronize()
    found = analyzed(tmp_path, program)
    # Per kernel 9 us on the host. The kernel runs in the first 3.5 us after its launch: 2 of the operator's end and
    # 1.5 of the next one's beginning.
    launches = STEPS * 300
    assert us_of(found.idle, "launch_call") == pytest.approx(launches * LAUNCH_US, rel=0.02)
    assert us_of(found.idle, "op_dispatch") == pytest.approx(launches * (dispatch_us - LATENCY_US - gpu_us), rel=0.02)
    assert us_of(found.idle, "device") == pytest.approx(launches * LATENCY_US, rel=0.02)
    assert found.queue[0].starved_items == launches
    assert found.queue[0].delays.p50_us == LATENCY_US


def test_a_recompilation_in_the_window(tmp_path: Path) -> None:
    program, compiled_us = Program(), 80_000.0
    for number in range(STEPS):
        with program.step(number):
            if number == 2:
                with program.op("_compile.compile_inner (dynamo_timed)"):
                    program.idle(compiled_us / 2)
                    # What compiling does on the way is compiling, too.
                    with program.op("aten::empty", before_us=compiled_us / 4, after_us=compiled_us / 4):
                        pass
            work(program)
            program.synchronize()
    found = analyzed(tmp_path, program)
    assert us_of(found.idle, "compile") == pytest.approx(compiled_us, rel=0.02)
    assert [each.causes.get("compile", 0.0) for each in found.idle.by_step] == [0, 0, compiled_us, 0, 0]
    assert "compile_in_window" in {each.code for each in found.health}


def test_a_graph_break_with_item(tmp_path: Path) -> None:
    program, noticing_us, guard_us = Program(), 25.0, 40.0
    for number in range(STEPS):
        with program.step(number):
            with program.op("Torch-Compiled Region: 0/0"):
                work(program)
            with program.op("aten::item"), program.op("aten::_local_scalar_dense"):
                program.launch(1, call="cudaMemcpyAsync", name="Memcpy DtoH (Device -> Pinned)")
                program.synchronize(after_us=noticing_us)
            with program.op("TorchDynamo Cache Lookup"):
                program.idle(guard_us)
            with program.op("Torch-Compiled Region: 1/0"):
                work(program)
            program.synchronize()
    idle = idle_of(tmp_path, program)
    assert us_of(idle, "sync_wait") == pytest.approx(STEPS * noticing_us, rel=0.02)
    assert us_of(idle, "guards") == pytest.approx(STEPS * guard_us, rel=0.02)
    (sync,) = idle.syncs
    assert (sync.drained, sync.place) == (STEPS, Place("aten::_local_scalar_dense", None, None))
    assert idle.largest[0].sync == "cudaStreamSynchronize"


@pytest.mark.parametrize("kind", ["DtoH (Device -> Pageable)", "HtoD (Pageable -> Device)"])
def test_copies_with_pageable_memory_that_hold_the_host(tmp_path: Path, kind: str) -> None:
    program, held_us = Program(), 60.0
    for number in range(STEPS):
        with program.step(number):
            work(program)
            with program.op("aten::copy_"):
                program.copy(300, kind=kind, held_after_us=held_us)
            work(program)
            program.synchronize()
    idle = idle_of(tmp_path, program)
    assert us_of(idle, "sync_wait") == pytest.approx(STEPS * held_us, rel=0.02)
    copies = next(sync for sync in idle.syncs if sync.call == "cudaMemcpyAsync")
    assert (copies.count, copies.drained, copies.place) == (STEPS, STEPS, Place("aten::copy_", None, None))


def test_a_copy_from_pinned_memory_holds_nobody(tmp_path: Path) -> None:
    program = Program()
    with program.step(0):
        program.copy(10, kind="DtoH (Device -> Pinned)", held_after_us=20)
        work(program)
        program.synchronize()
    idle = idle_of(tmp_path, program)
    assert us_of(idle, "sync_wait") == 0
    assert [sync.call for sync in idle.syncs] == ["cudaStreamSynchronize"]


def test_gaps_inside_a_cuda_graph(tmp_path: Path) -> None:
    program, between_us = Program(), 1.25
    for number in range(STEPS):
        with program.step(number), program.op("Torch-Compiled Region: 0/0"):
            program.replay([10.0] * 100, between_us=between_us)
            program.synchronize()
    found = analyzed(tmp_path, program)
    assert us_of(found.idle, "device") == pytest.approx(STEPS * (99 * between_us + LATENCY_US), rel=0.02)
    assert us_of(found.idle, "launch_call") == pytest.approx(STEPS * LAUNCH_US)


def test_gaps_inside_a_cuda_graph_are_the_device_s_before_its_launch_returned_too(tmp_path: Path) -> None:
    program = Program()
    with program.step(0):
        begun = program.now
        program.replay([10.0] * 10, between_us=2)
        # The call goes on while the first kernels run already.
        call = next(event for event in program.events if event["name"] == "cudaGraphLaunch")
        call["dur"] = 60.0
        program.now = begun + 60
        program.synchronize()
    idle = idle_of(tmp_path, program)
    assert us_of(idle, "device") == pytest.approx(9 * 2)
    assert us_of(idle, "launch_call") == pytest.approx(LAUNCH_US + LATENCY_US)


def test_backward_on_another_thread(tmp_path: Path) -> None:
    program, lost_us, backward_us = Program(), 150.0, 90.0
    for number in range(STEPS):
        with program.step(number):
            work(program)
            # The main thread waits for the loss, then works on it without a kernel; the other thread records nothing.
            with program.op("aten::item"):
                program.synchronize(after_us=20)
            with program.op("aten::mul", before_us=lost_us):
                pass
            with program.on_thread(2):
                with program.op("autograd::engine::evaluate_function: MmBackward0", before_us=backward_us):
                    program.launch(50)
                work(program)
                program.synchronize()
    idle = idle_of(tmp_path, program)
    assert us_of(idle, "sync_wait") == pytest.approx(STEPS * 20, rel=0.02)
    assert us_of(idle, "op_dispatch") == pytest.approx(STEPS * (3 + lost_us + backward_us), rel=0.02)
    assert us_of(idle, "python") == 0
    assert next(sync.drained for sync in idle.syncs if sync.place == Place("aten::item", None, None)) == STEPS
    assert {work.name for work in idle.largest[0].host} >= {
        "aten::mul",
        "autograd::engine::evaluate_function: MmBackward0",
        "cudaStreamSynchronize",
    }


def test_a_gap_that_lasts_over_two_steps_is_divided_at_their_border(tmp_path: Path) -> None:
    program = Program()
    with program.step(0):
        work(program)
        program.synchronize()
        program.idle(100)
    program.now -= BETWEEN_STEPS_US
    with program.step(1):
        program.idle(40)
        work(program)
        program.synchronize()
    idle = idle_of(tmp_path, program)
    # The first step's beginning, and one over the border.
    assert idle.gap_count == 2
    assert [each.causes["python"] for each in idle.by_step] == [100, 40]
    # What the first step's call exposed is the second one's beginning.
    assert [(sync.count, sync.drained) for sync in idle.syncs] == [(2, 1)]
