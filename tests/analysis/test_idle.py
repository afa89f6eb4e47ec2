from pathlib import Path

import pytest
from tests.traces import (
    Json,
    analyze,
    launched,
    make_call,
    make_event,
    make_kernel,
    make_op,
    make_overlapping_launches,
    make_span,
    make_trace,
)

from tracekit.analysis import timeline
from tracekit.errors import TracekitError
from tracekit.model.analysis import IdleSummary, Place


def idle_of(folder: Path, events: list[Json], **options: str) -> IdleSummary:
    found = analyze(make_trace(folder, events), **options).idle
    assert found is not None
    return found


def causes_of(idle: IdleSummary) -> dict[str, float]:
    return {each.cause: each.us for each in idle.causes}


#: A kernel at 0-10 and one at 100-110, launched by a call from 80 to 90: the host has the gap's first 80 us.
FIRST = make_kernel(0, 10, name="first", correlation=1)
LAUNCH = make_call(80, 90, correlation=2)
SECOND = make_kernel(100, 110, name="second", correlation=2)


def gap_with(*host: Json) -> list[Json]:
    return [make_call(-5, -1, correlation=1), FIRST, LAUNCH, SECOND, *host]


def test_before_the_launch_returned_it_is_the_host_after_it_the_latency_of_the_launch(tmp_path: Path) -> None:
    idle = idle_of(tmp_path, gap_with(make_op(5, 95)))
    assert causes_of(idle) == {"op_dispatch": 70, "launch_call": 10, "launch_latency": 10}


def test_what_was_queued_while_the_gpu_worked_waits_for_the_device(tmp_path: Path) -> None:
    events = [make_call(-5, -1, correlation=1), FIRST, make_call(3, 9, correlation=2), SECOND, make_op(-9, 120)]
    assert causes_of(idle_of(tmp_path, events)) == {"device": 90}


def test_what_begins_its_own_latency_after_its_launch_waits_for_that_though_it_had_returned(tmp_path: Path) -> None:
    assert causes_of(idle_of(tmp_path, make_overlapping_launches(400))) == {"launch_latency": pytest.approx(399 * 3.4)}


def test_what_was_launched_long_before_the_work_before_it_ended_waits_for_that(tmp_path: Path) -> None:
    at_once = make_overlapping_launches(4)
    behind = [make_call(40, 44, correlation=8), make_kernel(49, 90, correlation=8)]
    behind += [make_call(50, 54, correlation=9), make_kernel(91, 95, correlation=9)]
    causes = causes_of(idle_of(tmp_path, [*at_once, *behind, make_op(-9, 120)]))
    assert causes == pytest.approx({"op_dispatch": 12.8, "launch_call": 4, "launch_latency": 3 * 3.4 + 5, "device": 1})


def test_one_late_kernel_is_not_the_usual_latency_of_a_launch(tmp_path: Path) -> None:
    """Of a trace of queued work it is the only one that found the GPU with nothing to do."""
    events = [make_call(0, 4, correlation=1), make_kernel(404, 444, correlation=1)]
    for at in range(1, 10):
        events += [make_call(40 * at, 40 * at + 4, correlation=1 + at)]
        events += [make_kernel(404 + 42 * at, 444 + 42 * at, correlation=1 + at)]
    assert causes_of(idle_of(tmp_path, [*events, make_op(-9, 500)]))["device"] == 9 * 2


def test_what_waits_for_another_stream_is_behind_what_was_launched_before_it(tmp_path: Path) -> None:
    """Not behind what ended last, which was launched later, and not behind what its own stream did long before."""
    events = [*launched(-40, 3, 9), make_call(0, 4, correlation=1), make_kernel(6, 50, correlation=1)]
    events += [make_call(10, 14, correlation=2), make_kernel(56, 60, correlation=2, stream=8)]
    events += [make_call(20, 24, correlation=3), make_kernel(51, 54, correlation=3)]
    assert causes_of(idle_of(tmp_path, [*events, make_op(-50, 70)]))["device"] == 1 + 2


def test_a_launch_that_returned_inside_the_gap_had_found_the_queue_empty(tmp_path: Path) -> None:
    events = [make_call(-5, -1, correlation=1), FIRST, make_call(3, 12, correlation=2), SECOND, make_op(-9, 120)]
    assert causes_of(idle_of(tmp_path, events)) == {"launch_call": 2, "launch_latency": 88}


def test_between_the_kernels_of_one_call_it_is_the_device_though_the_call_has_not_returned(tmp_path: Path) -> None:
    graph = make_call(-5, 40, name="cudaGraphLaunch", correlation=1)
    events = [graph, FIRST, make_kernel(20, 30, correlation=1), make_op(-9, 120)]
    assert causes_of(idle_of(tmp_path, events)) == {"device": 10}


@pytest.mark.parametrize(
    ("first", "wrapper_us", "python_us"),
    [("Pregraph bytecode", 18 + 2 + 10 + 20, 20), ("AOTDispatcher Runtime Wrapper Prologue", 2 + 20, 18 + 10 + 20)],
)
def test_a_compiled_region_is_generated_code_until_its_first_graph_and_the_users_after_that(
    tmp_path: Path, first: str, wrapper_us: float, python_us: float
) -> None:
    region = make_op(-2, 80, name="Torch-Compiled Region: 0/0")
    graphs = [make_span(start, start + 10, name="## Call CompiledFxGraph a ##") for start in (40, 60)]
    events = gap_with(region, make_op(28, 30, name=first), *graphs)
    host = {"compiled_wrapper": wrapper_us, "python": python_us}
    assert causes_of(idle_of(tmp_path, events)) == host | {"launch_call": 10, "launch_latency": 10}
    # With gradients the first graph runs inside of an autograd function.
    function = make_op(39, 51, name="CompiledFunction")
    before = "compiled_wrapper" if wrapper_us > python_us else "python"
    host |= {before: host[before] - 1, "python": python_us - 1 - (before == "python")}
    causes = causes_of(idle_of(tmp_path, [*events, function]))
    assert causes == host | {"op_dispatch": 2, "launch_call": 10, "launch_latency": 10}


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (make_call(20, 50, name="cudaStreamSynchronize"), "sync_wait"),
        (make_call(20, 50, name="hipDeviceSynchronize"), "sync_wait"),
        (make_call(20, 50, name="cudaMemcpy"), "sync_wait"),
        (make_call(20, 50, name="cudaMalloc"), "memory"),
        (make_call(20, 50, name="cudaFuncGetAttributes"), "op_dispatch"),
        (make_op(20, 50, name="TorchDynamo Cache Lookup"), "guards"),
        (make_op(20, 50, name="Torch-Compiled Region: 0/0"), "python"),
        (make_op(20, 50, name="Pregraph bytecode"), "compiled_wrapper"),
        (make_op(20, 50, name="AOTDispatcher Runtime Wrapper Prologue"), "compiled_wrapper"),
        (make_span(20, 50, name="## Call CompiledFxGraph abc ##"), "compiled_wrapper"),
        (make_op(20, 50, name="triton_poi_fused_add_0"), "compiled_wrapper"),
        (make_op(20, 50, name="aten::triton_like"), "op_dispatch"),
        (make_op(20, 50, name="_compile.compile_inner (dynamo_timed)"), "compile"),
        (make_event("python_function", 20, 50, name="Python GC"), "gc"),
        (make_event("python_function", 20, 50, name="<built-in function collect>"), "gc"),
        (make_event("python_function", 20, 50, name="model.py(3): forward"), "python"),
        (make_span(20, 50, name="my region"), "python"),
        ({**make_event("overhead", 20, 50, name="Activity Buffer Request"), "pid": -1, "tid": 0}, "profiler"),
    ],
)
def test_each_kind_of_host_event_has_its_cause(tmp_path: Path, event: Json, cause: str) -> None:
    with_op = [make_op(-4, -2)]  # operators are recorded, so silence means Python
    causes = causes_of(idle_of(tmp_path, gap_with(event, *with_op)))
    expected = {"python": 40.0, "launch_call": 10.0, "launch_latency": 10.0}
    expected[cause] = expected.get(cause, 0.0) + 30
    assert causes == expected


def test_what_begins_just_before_a_collection_ends_has_its_own_cause(tmp_path: Path) -> None:
    """Collections are timed by another clock than operators."""
    lookup = make_op(30, 70, name="TorchDynamo Cache Lookup")
    causes = causes_of(idle_of(tmp_path, gap_with(make_span(20, 31, name="Python GC"), lookup)))
    assert (causes["gc"], causes["guards"]) == (10.0, 40.0)


def test_a_gap_ended_by_a_kernel_without_launch_is_unattributed(tmp_path: Path) -> None:
    assert causes_of(idle_of(tmp_path, [make_kernel(0, 10), make_kernel(30, 40), make_op(0, 50)])) == {
        "unattributed": 20
    }


def test_where_no_operators_were_recorded_silence_is_not_called_python(tmp_path: Path) -> None:
    assert causes_of(idle_of(tmp_path, gap_with(make_span(20, 50)), window="whole")) == {
        "unattributed": 70,
        "launch_call": 10,
        "launch_latency": 10,
    }
    assert causes_of(idle_of(tmp_path, gap_with())) == {"unattributed": 70, "launch_call": 10, "launch_latency": 10}


def test_head_and_tail_of_a_step_are_idle_too(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_op(0, 20),
        make_call(10, 20, correlation=1),
        make_kernel(30, 60, correlation=1),
        make_call(50, 90, name="cudaDeviceSynchronize"),
    ]
    idle = idle_of(tmp_path, events)
    assert idle.gap_count == 2
    assert causes_of(idle) == {
        "op_dispatch": 10,
        "launch_call": 10,
        "launch_latency": 10,
        "sync_wait": 30,
        "python": 10,
    }
    assert [(gap.start_us, gap.duration_us, gap.after, gap.before) for gap in idle.largest] == [
        (60, 40, "gemm", None),
        (0, 30, None, "gemm"),
    ]


def test_a_sync_is_charged_only_with_the_gap_that_began_under_it(tmp_path: Path) -> None:
    events = gap_with(
        make_op(4, 15, name="aten::item"),
        make_call(5, 12, name="cudaStreamSynchronize"),
        # The GPU is dry already: nothing began under this one.
        make_call(40, 45, name="cudaDeviceSynchronize"),
    )
    syncs = {sync.call: sync for sync in idle_of(tmp_path, events).syncs}
    drained = syncs["cudaStreamSynchronize"]
    assert (drained.count, drained.idle_after_us, drained.place) == (1, 90, Place("aten::item", None, None))
    assert syncs["cudaDeviceSynchronize"].idle_after_us == 0


def test_a_sync_that_waits_for_work_launched_before_it_exposes_no_gap(tmp_path: Path) -> None:
    calls = [make_call(0, 1, correlation=1), make_call(2, 3, correlation=2)]
    kernels = [make_kernel(5, 10, correlation=1), make_kernel(14, 20, correlation=2)]
    waiting = make_call(6, 22, name="cudaDeviceSynchronize")
    (sync,) = idle_of(tmp_path, [*calls, *kernels, waiting]).syncs
    assert (sync.count, sync.idle_after_us, sync.drained) == (1, 0, 0)


@pytest.mark.parametrize(
    ("kind", "syncs"), [("DtoH (Device -> Pageable)", {"cudaMemcpyAsync": 20}), ("DtoH (Device -> Pinned)", {})]
)
def test_a_copy_with_pageable_memory_holds_the_host_until_it_noticed(
    tmp_path: Path, kind: str, syncs: dict[str, float]
) -> None:
    copy = {**make_kernel(12, 15, name=f"Memcpy {kind}", correlation=3), "cat": "gpu_memcpy"}
    held = make_call(5, 35, name="cudaMemcpyAsync", correlation=3)
    idle = idle_of(tmp_path, gap_with(held, copy, make_op(-4, 40)))
    assert causes_of(idle).get("sync_wait", 0) == sum(syncs.values())
    assert [(each.call, each.count) for each in idle.syncs] == [(call, 1) for call in syncs]


def test_a_gap_that_lasts_over_two_steps_is_divided_at_their_border(tmp_path: Path) -> None:
    spans = [make_span(0, 100), make_span(100, 200, name="tracekit.step#1"), make_op(0, 10)]
    idle = idle_of(tmp_path, [*spans, *launched(0, 8, 1), *launched(150, 48, 2)])
    assert idle.gap_count == 2
    assert [each.causes["python"] for each in idle.by_step] == [90, 50]


def test_the_thread_that_launched_before_explains_what_the_launching_one_does_not_record(tmp_path: Path) -> None:
    events = [
        make_call(-5, -1, correlation=1),
        FIRST,
        make_op(5, 60, name="aten::nll_loss"),
        make_op(70, 95, name="AddBackward0", thread=2),
        make_call(80, 90, correlation=2, thread=2),
        SECOND,
    ]
    idle = idle_of(tmp_path, events)
    assert causes_of(idle) == {"op_dispatch": 50 + 10, "launch_call": 10, "python": 10, "launch_latency": 10}
    assert [(work.name, work.us) for work in idle.largest[0].host] == [
        ("aten::nll_loss", 50),
        ("AddBackward0", 10),
        ("cudaLaunchKernel", 10),
        (None, 10),
    ]


def test_each_large_gap_names_its_launch_and_where_that_was_made(tmp_path: Path) -> None:
    python = [
        make_event("python_function", 4, 96, name="train.py(30): step"),
        make_event("python_function", 5, 95, name="nn.Module: Linear_2"),
        make_event("python_function", 6, 94, name="torch/nn/modules/linear.py(134): forward"),
        make_op(70, 92, name="aten::addmm"),
    ]
    (gap,) = idle_of(tmp_path, gap_with(*python)).largest
    assert gap.launched_by == "cudaLaunchKernel"
    assert gap.where == Place("aten::addmm", "Linear_2", "train.py(30): step")
    assert gap.where.words == "aten::addmm in Linear_2, train.py(30): step"
    assert sum(work.us for work in gap.host) == 80


def test_the_place_of_a_gap_under_a_wait_is_the_waits_alone(tmp_path: Path) -> None:
    """Or the launch's operator would be taken for that of the wait."""
    launch = make_op(70, 92, name="aten::addmm")
    (gap,) = idle_of(tmp_path, gap_with(make_call(4, 12, name="cudaDeviceSynchronize"), launch)).largest
    assert (gap.launched_by, gap.sync, gap.where) == ("cudaLaunchKernel", "cudaDeviceSynchronize", None)


def test_a_sync_on_a_thread_that_explains_no_gap_is_counted(tmp_path: Path) -> None:
    elsewhere = make_call(40, 45, name="cudaStreamSynchronize", thread=2)
    op = make_op(39, 46, name="aten::item", thread=2)
    (sync,) = idle_of(tmp_path, gap_with(op, elsewhere)).syncs
    assert (sync.call, sync.count, sync.idle_after_us) == ("cudaStreamSynchronize", 1, 0)
    assert sync.place == Place("aten::item", None, None)


def test_times_of_years_on_many_threads_are_refused_in_one_line(tmp_path: Path) -> None:
    """The line on which the threads stand has an end."""
    quarter_us = 9e12
    events = [
        each
        for thread in range(600)
        for each in (*launched(10 * thread, 4, thread + 1, thread=thread), make_op(0, quarter_us, thread=thread))
    ]
    with pytest.raises(TracekitError, match="104 days on 600 threads"):
        analyze(make_trace(tmp_path, events))


def test_of_the_profilers_overhead_the_longest_is_laid_over_many_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "MOST_OVERHEAD", 2)
    overhead = [make_event("overhead", at, at + us, name="Buffer Request", thread=0) for at, us in ((20, 5), (40, 9))]
    threads = [each for at in (0, 60, 90) for each in launched(at, 4, at + 1, thread=at + 1)]
    two_threads = [each for each in threads if each["ts"] < 80]
    causes = {each.cause: each.us for each in analyze(make_trace(tmp_path, [*two_threads, *overhead])).idle.causes}
    assert causes["profiler"] == 9
