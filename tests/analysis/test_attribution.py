from pathlib import Path

from tests.traces import launched, make_call, make_copy, make_kernel, make_op, make_span, make_trace

from tracekit.analysis.attribution import find_graph_calls, find_tagged
from tracekit.model.provenance import CompiledActivity, TaggedActivity

REGION = "## Call CompiledFxGraph {} ##"


def test_an_activity_belongs_to_the_operator_around_its_launch(tmp_path: Path) -> None:
    trace = make_trace(
        tmp_path,
        [
            make_span(0, 100),
            make_op(10, 20, name="tracekit.op#0"),
            make_call(12, 13, correlation=1),
            make_op(30, 40, name="tracekit.op#7"),
            make_call(32, 33, correlation=2),
            make_call(34, 35, correlation=3, name="cudaMemcpyAsync"),
            make_call(50, 51, correlation=4),
            # They run in another order, and long after they were launched.
            make_kernel(80, 85, name="last", correlation=4),
            make_kernel(60, 70, name="gemm", correlation=2, stream=8),
            make_copy(55, 56, correlation=3),
            make_kernel(71, 75, name="add", correlation=1),
        ],
    )
    assert find_tagged(trace) == (
        TaggedActivity("add", 0),
        TaggedActivity("gemm", 7),
        TaggedActivity("Memcpy HtoD", 7),
        TaggedActivity("last", None),
    )


def test_a_launch_on_autograd_s_thread_belongs_to_an_operator_of_that_thread(tmp_path: Path) -> None:
    operators = [make_op(10, 60, name="tracekit.op#0"), make_op(20, 40, name="tracekit.op#1", thread=2)]
    trace = make_trace(tmp_path, [make_span(0, 100), *operators, *launched(25, 5, 1, thread=2, name="backward")])
    assert find_tagged(trace) == (TaggedActivity("backward", 1),)


def test_an_activity_belongs_to_the_graph_call_and_the_operator_directly_in_it(tmp_path: Path) -> None:
    events = [
        make_span(0, 200),
        make_span(10, 90, name=REGION.format("fabc")),
        make_op(20, 40, name="aten::addmm"),
        make_op(22, 38, name="aten::cublas_inside"),
        *launched(24, 1, 1, name="nvjet"),
        *launched(28, 1, 2, name="splitk"),
        make_op(50, 60, name="triton_poi_fused_add_0"),
        *launched(52, 1, 3, name="triton_poi_fused_add_0"),
        make_op(100, 110, name="aten::exp"),
        *launched(102, 1, 4, name="exp"),
    ]
    assert find_graph_calls(make_trace(tmp_path, events)) == (
        ("fabc",),
        (
            CompiledActivity("nvjet", 0, "aten::addmm", 0),
            CompiledActivity("splitk", 0, "aten::addmm", 0),
            CompiledActivity("triton_poi_fused_add_0", 0, "triton_poi_fused_add_0", 1),
            CompiledActivity("exp", None),
        ),
    )


def test_a_cuda_graph_s_kernels_belong_to_the_call_that_replays_it_and_to_no_operator(tmp_path: Path) -> None:
    events = [make_span(0, 200)]
    for number in range(2):
        at = 10 + 50 * number
        # Without shapes torch records the call of a graph as an operator.
        events += [
            make_op(at, at + 20, name=REGION.format("fabc")),
            make_call(at + 5, at + 6, correlation=number + 1, name="cudaGraphLaunch"),
            make_kernel(at + 40, at + 41, name="second", correlation=number + 1),
            make_kernel(at + 30, at + 31, name="first", correlation=number + 1),
        ]
    keys, activities = find_graph_calls(make_trace(tmp_path, events))
    assert keys == ("fabc", "fabc")
    assert activities == tuple(CompiledActivity(name, call) for call in (0, 1) for name in ("first", "second"))
