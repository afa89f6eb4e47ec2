from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.traces import Json, make_call, make_event, make_kernel, make_op, make_span, make_trace

from tracekit.analysis import analyze
from tracekit.model.analysis import Analysis, IdleSummary, Place


def idle_of(folder: Path, events: list[Json], **options: str) -> IdleSummary:
    found = analyze(make_trace(folder, events), **options).idle  # type: ignore[arg-type]
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


def test_before_the_launch_returned_it_is_the_host_after_it_the_device(tmp_path: Path) -> None:
    idle = idle_of(tmp_path, gap_with(make_op(5, 95)))
    assert causes_of(idle) == {"op_dispatch": 70, "launch_call": 10, "device": 10}


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (make_call(20, 50, name="cudaStreamSynchronize"), "sync_wait"),
        (make_call(20, 50, name="hipDeviceSynchronize"), "sync_wait"),
        (make_call(20, 50, name="cudaMemcpy"), "sync_wait"),
        (make_call(20, 50, name="cudaMalloc"), "memory"),
        (make_call(20, 50, name="cudaFuncGetAttributes"), "op_dispatch"),
        (make_op(20, 50, name="TorchDynamo Cache Lookup"), "guards"),
        (make_op(20, 50, name="Torch-Compiled Region: 0/0"), "guards"),
        (make_span(20, 50, name="## Call CompiledFxGraph abc ##"), "op_dispatch"),
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
    expected = {"python": 40.0, "launch_call": 10.0, "device": 10.0}
    expected[cause] = expected.get(cause, 0.0) + 30
    assert causes == expected


def test_the_innermost_event_counts(tmp_path: Path) -> None:
    nested = [make_op(10, 80), make_op(20, 60, name="aten::inner"), make_call(30, 40, name="cudaStreamSynchronize")]
    assert causes_of(idle_of(tmp_path, gap_with(*nested))) == {
        "sync_wait": 10,
        "launch_call": 10,
        "op_dispatch": 60,
        "device": 10,
    }


def test_whatever_happens_inside_compiling_is_compiling(tmp_path: Path) -> None:
    compiling = [make_op(20, 70, name="entire_frame_compile (dynamo_timed)"), make_op(30, 60, name="aten::mm")]
    assert causes_of(idle_of(tmp_path, gap_with(*compiling)))["compile"] == 50


def test_a_launch_made_before_the_gap_began_leaves_the_device_alone_to_blame(tmp_path: Path) -> None:
    events = [make_call(0, 1, correlation=1), make_call(2, 3, correlation=2)]
    kernels = [make_kernel(5, 10, correlation=1), make_kernel(12, 20, correlation=2)]
    assert causes_of(idle_of(tmp_path, [*events, *kernels, make_op(0, 30)])) == {"device": 2}


def test_a_gap_ended_by_a_kernel_without_launch_is_unattributed(tmp_path: Path) -> None:
    assert causes_of(idle_of(tmp_path, [make_kernel(0, 10), make_kernel(30, 40), make_op(0, 50)])) == {
        "unattributed": 20
    }


def test_where_no_operators_were_recorded_silence_is_not_called_python(tmp_path: Path) -> None:
    assert causes_of(idle_of(tmp_path, gap_with(make_span(20, 50)), window="whole")) == {
        "unattributed": 70,
        "launch_call": 10,
        "device": 10,
    }
    assert causes_of(idle_of(tmp_path, gap_with())) == {"unattributed": 70, "launch_call": 10, "device": 10}


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
    assert causes_of(idle) == {"op_dispatch": 10, "launch_call": 10, "device": 10, "sync_wait": 30, "python": 10}
    assert [(gap.start_us, gap.duration_us, gap.after, gap.before) for gap in idle.largest] == [
        (60, 40, "gemm", None),
        (0, 30, None, "gemm"),
    ]


def test_another_thread_s_work_does_not_explain_a_gap(tmp_path: Path) -> None:
    busy_elsewhere = make_call(10, 80, name="cudaDeviceSynchronize", thread=2)
    causes = causes_of(idle_of(tmp_path, gap_with(busy_elsewhere, make_op(5, 95))))
    assert "sync_wait" not in causes


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
    assert causes_of(idle) == {"op_dispatch": 50 + 10, "launch_call": 10, "python": 10, "device": 10}
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
    assert sum(work.us for work in gap.host) == 80


def test_a_sync_on_a_thread_that_explains_no_gap_is_counted(tmp_path: Path) -> None:
    elsewhere = make_call(40, 45, name="cudaStreamSynchronize", thread=2)
    op = make_op(39, 46, name="aten::item", thread=2)
    (sync,) = idle_of(tmp_path, gap_with(op, elsewhere)).syncs
    assert (sync.call, sync.count, sync.idle_after_us) == ("cudaStreamSynchronize", 1, 0)
    assert sync.place == Place("aten::item", None, None)


def test_a_sync_is_counted_where_the_gpu_never_idles(tmp_path: Path) -> None:
    idle = idle_of(
        tmp_path,
        [
            make_call(0, 1, correlation=1),
            make_kernel(2, 20, correlation=1),
            make_call(5, 9, name="cudaDeviceSynchronize"),
        ],
    )
    assert (idle.gap_count, [(sync.call, sync.count) for sync in idle.syncs]) == (0, [("cudaDeviceSynchronize", 1)])


moments = st.integers(0, 400)


@st.composite
def random_trace(draw: st.DrawFn) -> list[Json]:
    """Kernels on two streams with and without launches, host events that may overlap in any way, perhaps steps."""
    events: list[Json] = []
    for correlation in range(1, draw(st.integers(2, 8))):
        begin, length = draw(moments), draw(st.integers(0, 60))
        stream = draw(st.sampled_from([7, 8]))
        events.append(make_kernel(begin / 4, (begin + length) / 4, stream=stream, correlation=correlation))
        if draw(st.booleans()):
            launch, took = draw(moments), draw(st.integers(0, 20))
            thread = draw(st.sampled_from([1, 2]))
            events.append(make_call(launch / 4, (launch + took) / 4, correlation=correlation, thread=thread))
    names = ["aten::add", "TorchDynamo Cache Lookup", "x (dynamo_timed)"]
    for _ in range(draw(st.integers(0, 8))):
        begin, length = draw(moments), draw(st.integers(0, 120))
        events.append(make_op(begin / 4, (begin + length) / 4, name=draw(st.sampled_from(names))))
        begin, length = draw(moments), draw(st.integers(0, 60))
        events.append(make_call(begin / 4, (begin + length) / 4, name="cudaStreamSynchronize"))
    if draw(st.booleans()):
        events += [make_span(i * 30, i * 30 + draw(st.integers(1, 30)), name=f"tracekit.step#{i}") for i in range(3)]
    return events


def busy_by_counting(events: list[Json], begin: float, end: float) -> float:
    """Slow and obvious: is a kernel running in this quarter of a microsecond?"""
    kernels = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["cat"] == "kernel"]
    ticks = [begin + i / 4 for i in range(round((end - begin) * 4))]
    return sum(any(start <= tick < stop for start, stop in kernels) for tick in ticks) / 4


@settings(max_examples=150, deadline=None)
@given(random_trace())
def test_causes_divide_idle_time_exactly(tmp_path_factory: pytest.TempPathFactory, events: list[Json]) -> None:
    trace = make_trace(tmp_path_factory.getbasetemp(), events)
    found: Analysis = analyze(trace, window="whole")
    assert found.gpu is not None
    assert found.idle is not None
    begin = min(e["ts"] for e in events if e["cat"] == "kernel")
    assert found.gpu.busy_us == pytest.approx(busy_by_counting(events, begin, begin + found.gpu.span_us))
    assert found.gpu.busy_us + found.gpu.idle_us == pytest.approx(found.gpu.span_us)
    assert sum(each.us for each in found.idle.causes) == pytest.approx(found.gpu.idle_us)
    assert all(each.us > 0 for each in found.idle.causes)
    for gap in found.idle.largest:
        assert sum(gap.causes.values()) == pytest.approx(gap.duration_us)


@settings(max_examples=100, deadline=None)
@given(random_trace())
def test_steps_close_too(tmp_path_factory: pytest.TempPathFactory, events: list[Json]) -> None:
    steps = [make_span(i * 40, i * 40 + 40, name=f"tracekit.step#{i}") for i in range(3)]
    kept = [event for event in events if event["cat"] != "user_annotation"]
    # One kernel that surely belongs, so that the window is never empty.
    sure = [make_call(0, 1, correlation=99), make_kernel(1, 2, correlation=99)]
    found = analyze(make_trace(tmp_path_factory.getbasetemp(), [*kept, *steps, *sure]))
    assert found.gpu is not None
    assert found.idle is not None
    assert sum(each.us for each in found.idle.causes) == pytest.approx(found.gpu.idle_us)
    assert [sum(each.causes.values()) for each in found.idle.by_step] == pytest.approx(
        [step.idle_us for step in found.steps]
    )
    for step in found.steps:
        assert step.busy_us is not None
        assert step.idle_us is not None
        assert step.busy_us + step.idle_us == pytest.approx(step.wall_us)
