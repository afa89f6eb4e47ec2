"""Whole analyses: of the real traces, whose figures were worked out independently, and of small ones made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.traces import DATA, analyze, make_call, make_copy, make_kernel, make_op, make_span, make_trace

from tracekit.errors import TracekitError
from tracekit.tracefile import read_trace

#: kernels, launches, graph launches, busy us, span us. Busy and span were computed from the files' decimal text with
#: Python's `decimal`, so they are exact. Added up as doubles, whose ends are rounded by up to 0.5 ns, busy would be
#: 127288.97 for flux_eager and 97692.51 for flux_default.
WORKED = {
    "flux_eager": (6026, 6026, 0, 127288.991, 208653.197),
    "flux_default": (2390, 2390, 0, 97692.496, 105065.325),
    "flux_reduce-overhead": (2390, 362, 2, 97829.310, 103459.713),
    "vit_eager": (306, 306, 0, 1411.063, 9890.014),
    "vit_default": (400, 400, 0, 1633.066, 9286.659),
    "vit_reduce-overhead": (402, 4, 2, 1661.568, 2578.112),
}


@pytest.mark.parametrize("name", WORKED)
def test_the_worked_figures_come_out_exactly(name: str) -> None:
    kernels, launches, graph_launches, busy_us, span_us = WORKED[name]
    found = analyze(read_trace(DATA / f"{name}.json.gz"))
    assert found.window.kind == "whole"
    assert found.kernels.count == kernels
    assert (found.launches.count, found.launches.graph_launches) == (launches, graph_launches)
    assert found.launches.unlinked_kernels == 0
    assert found.gpu.busy_us == pytest.approx(busy_us, abs=1e-6)
    assert found.gpu.span_us == pytest.approx(span_us, abs=1e-6)


@pytest.mark.parametrize("name", WORKED)
@pytest.mark.parametrize("window", ["whole", r"tracekit\.iteration#\d+"])
def test_the_sums_close_on_real_traces(name: str, window: str) -> None:
    found = analyze(read_trace(DATA / f"{name}.json.gz"), window=window)
    assert found.gpu.busy_us + found.gpu.idle_us == pytest.approx(found.gpu.span_us, abs=1e-6)
    assert sum(each.us for each in found.idle.causes) == pytest.approx(found.gpu.idle_us, abs=1e-6)
    assert sum(each.total_us for each in found.kernels.by_family) == pytest.approx(found.kernels.total_us, abs=1e-6)
    assert sum(each.total_us for each in found.kernels.by_name) == pytest.approx(found.kernels.total_us, abs=1e-6)
    assert sum(each.count for each in found.kernels.by_name) == found.kernels.count


def test_spans_named_by_a_pattern_become_steps() -> None:
    found = analyze(read_trace(DATA / "vit_eager.json.gz"), window=r"tracekit\.iteration#\d+")
    assert (found.window.kind, found.window.steps) == ("span", 2)
    assert [step.kernels for step in found.steps] == [153, 153]
    assert sum(step.wall_us for step in found.steps) == pytest.approx(found.gpu.span_us)
    assert sum(step.busy_us or 0 for step in found.steps) == pytest.approx(found.gpu.busy_us)


def test_a_graph_launch_starts_many_kernels(tmp_path: Path) -> None:
    events = [
        make_call(0, 5, name="cudaGraphLaunch", correlation=1),
        *(make_kernel(10 + i, 10.5 + i, correlation=1) for i in range(4)),
        make_call(6, 7, name="cuLaunchKernelEx", correlation=2, category="cuda_driver"),
        make_kernel(20, 21, correlation=2),
    ]
    launches = analyze(make_trace(tmp_path, events)).launches
    assert launches is not None
    assert (launches.count, launches.graph_launches, launches.kernels_in_graphs) == (2, 1, 4)


def test_only_calls_that_started_a_kernel_are_launches(tmp_path: Path) -> None:
    events = [
        make_call(0, 1, name="cudaStreamIsCapturing", correlation=1),
        make_call(1, 2, name="cudaMemcpyAsync", correlation=2),
        make_copy(3, 4, correlation=2),
        make_call(4, 5, name="some_future_launch_api", correlation=3),
        make_kernel(6, 7, correlation=3),
        make_kernel(8, 9, correlation=999),
    ]
    launches = analyze(make_trace(tmp_path, events)).launches
    assert launches is not None
    assert (launches.count, launches.unlinked_kernels) == (1, 1)


def test_kernels_under_a_microsecond_keep_their_length(tmp_path: Path) -> None:
    found = analyze(make_trace(tmp_path, [make_kernel(i, i + 0.333) for i in range(3)]))
    assert found.kernels.total_us == pytest.approx(0.999)
    assert found.kernels.short_count == 3


def test_activity_belongs_to_the_step_that_launched_it(tmp_path: Path) -> None:
    events = [
        make_call(0, 1, correlation=1),
        make_kernel(2, 3, correlation=1),
        make_span(10, 20, name="tracekit.step#4"),
        make_call(11, 12, correlation=2),
        # It runs after its step's span ended on the host, and still belongs to it.
        make_kernel(25, 30, correlation=2),
        make_span(40, 50, name="tracekit.step#5"),
        make_call(41, 42, correlation=3),
        make_kernel(43, 44, correlation=3),
    ]
    found = analyze(make_trace(tmp_path, events))
    assert (found.window.kind, found.window.steps) == ("steps", 2)
    assert [(s.index, s.wall_us, s.busy_us, s.kernels) for s in found.steps] == [(4, 20, 5, 1), (5, 10, 1, 1)]
    assert found.kernels.count == 2
    assert found.window.span_us == 30


def test_our_steps_come_before_the_profiler_s(tmp_path: Path) -> None:
    events = [
        make_span(0, 100, name="ProfilerStep#7"),
        make_span(10, 20, name="tracekit.step#0"),
        make_call(11, 12, correlation=1),
        make_kernel(13, 14, correlation=1),
    ]
    assert analyze(make_trace(tmp_path, events)).window.span_us == 10
    foreign = [event for event in events if event["name"] != "tracekit.step#0"]
    assert analyze(make_trace(tmp_path, foreign)).window.span_us == 100


def test_a_span_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    trace = make_trace(tmp_path, [make_kernel(0, 1), make_span(0, 1, name="training step")])
    with pytest.raises(TracekitError, match=r"no span .* 'decode', .*: it has training step"):
        analyze(trace, window="decode")
    with pytest.raises(TracekitError, match=r"--window '\.\*training\.\*' matches training step"):
        analyze(trace, window="training")
    with pytest.raises(TracekitError, match="marks no steps"):
        analyze(trace, window="steps")
    with pytest.raises(TracekitError, match="neither a span's name nor a regular expression"):
        analyze(trace, window="(")


def test_a_trace_without_gpu_activity_says_why_that_may_be(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match="pass --cpu"):
        analyze(make_trace(tmp_path, [make_op(0, 1)]))
    with pytest.raises(TracekitError, match="CUPTI permission"):
        analyze(make_trace(tmp_path, [make_op(0, 1), make_call(0, 1)]))


def test_a_cpu_recording_has_operators_and_no_gpu_figures(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_op(10, 50, name="aten::linear"),
        make_op(20, 50, name="aten::addmm"),
        make_op(60, 80, name="graph_0_cpp_fused_add_mul_1"),
        make_op(85, 90, name="graph_3_cpp_fused_add_mul_1"),
        make_op(200, 300, name="aten::after_the_step"),
    ]
    found = analyze(make_trace(tmp_path, events, tracekit={"device": "cpu"}))
    assert (found.gpu, found.kernels, found.launches, found.idle, found.copies) == (None, None, None, None, None)
    assert {op.name: (op.count, op.self_us) for op in found.cpu.top} == {
        "aten::addmm": (1, 30),
        "cpp_fused_add_mul_1": (2, 25),
        "aten::linear": (1, 10),
    }
    assert (found.cpu.fused_count, found.cpu.fused_us, found.cpu.span_us) == (2, 25, 100)
    assert [(step.wall_us, step.busy_us, step.kernels) for step in found.steps] == [(100, None, None)]


@pytest.mark.parametrize(
    ("ran", "about", "fused"),
    [
        (["Torch-Compiled Region: 0/0"], {}, None),
        (["Torch-Compiled Region: 0/0"], {"form": "compiled"}, 0),
        (["Torch-Compiled Region: 0/0", "graph_0_cpp_fused_add_0"], {}, 1),
        ([], {}, 0),
    ],
)
def test_compiled_code_whose_kernels_record_nothing_is_not_taken_for_none(
    tmp_path: Path, ran: list[str], about: dict[str, str], fused: int | None
) -> None:
    events = [make_op(10, 50, name="aten::linear"), *(make_op(60, 80, name=name) for name in ran)]
    cpu = analyze(make_trace(tmp_path, events, tracekit={"device": "cpu", **about})).cpu
    assert cpu is not None
    assert cpu.fused_count == fused
    assert (cpu.fused_us is None) == (fused is None)


def test_memory_is_none_unless_it_was_recorded(tmp_path: Path) -> None:
    assert analyze(make_trace(tmp_path, [make_kernel(0, 1)])).memory is None
    allocation = {"ph": "i", "name": "[memory]", "ts": 0, "args": {"Device Type": 1, "Total Allocated": 4096}}
    on_the_host = {"ph": "i", "name": "[memory]", "ts": 0, "args": {"Device Type": 0, "Total Allocated": 9999}}
    memory = analyze(make_trace(tmp_path, [make_kernel(0, 1), allocation, on_the_host])).memory
    assert memory is not None
    assert (memory.peak_allocated_bytes, memory.allocation_count) == (4096, 1)
