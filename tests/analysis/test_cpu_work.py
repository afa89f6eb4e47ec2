"""A CPU's outermost operators stand where a GPU's activities do."""

from pathlib import Path

import pytest
from tests.traces import make_op, make_span, make_trace

from tracekit.analysis.attribution import find_graph_calls, find_tagged
from tracekit.analysis.cpu_work import cpu_work
from tracekit.analysis.sequence import list_and_draw
from tracekit.model.provenance import CompiledActivity, TaggedActivity
from tracekit.reading.traces import Reading


def test_outermost_operators_are_called_after_what_a_library_does_in_them(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_op(5, 40, name="aten::linear"),
        make_op(6, 8, name="aten::t"),
        make_op(10, 39, name="aten::addmm"),
        make_op(41, 42, name="aten::view"),
        make_op(45, 60, name="graph_0_cpp_fused_gelu_1"),
        make_op(61, 70, name="aten::layer_norm"),
        make_op(62, 69, name="aten::native_layer_norm"),
        make_op(75, 90, name="autograd::engine::evaluate_function: AddBackward0"),
        make_op(76, 80, name="aten::add"),
    ]
    sequence, drawn = list_and_draw(cpu_work(make_trace(tmp_path, events)))
    assert [(each.name, each.family, each.duration_us) for each in sequence.activities] == [
        ("aten::addmm", "gemm", 35),
        ("cpp_fused_gelu_1", "cpp", 15),
        ("aten::layer_norm", "normalization", 9),
        ("aten::add", "pointwise", 4),
    ]
    assert sequence.activities[0].within == ("aten::linear", "aten::addmm")
    assert drawn is not None
    assert (drawn.work.starts_us, drawn.work.durations_us) == ((5, 45, 61, 76), (35, 15, 9, 4))
    assert drawn.gaps.starts_us == (0, 40, 60, 70, 80)


def test_what_a_library_does_among_other_things_keeps_its_name_and_what_takes_no_time_is_none(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_op(5, 40, name="aten::lstm"),
        make_op(10, 39, name="aten::addmm"),
        make_op(20, 20, name="aten::copy_"),
        make_op(45, 60, name="aten::scaled_dot_product_attention"),
        make_op(46, 50, name="aten::bmm"),
        make_op(51, 55, name="aten::softmax"),
        make_op(61, 65, name="aten::reshape"),
        make_op(62, 64, name="aten::clone"),
        make_op(70, 75, name="torch::autograd::AccumulateGrad"),
        make_op(80, 81, name="c10d::allreduce_"),
    ]
    sequence, _ = list_and_draw(cpu_work(make_trace(tmp_path, events)))
    assert [(each.name, each.family) for each in sequence.activities] == [
        ("aten::lstm", "other"),
        ("aten::scaled_dot_product_attention", "attention"),
        ("aten::clone", "copy"),
        ("c10d::allreduce_", "other"),
    ]


def test_an_operator_belongs_to_what_a_dispatch_mode_saw_in_it(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_op(5, 40, name="aten::linear"),
        make_op(6, 8, name="tracekit.op#0"),
        make_op(6.5, 7.5, name="aten::t"),
        make_op(9, 39, name="tracekit.op#1"),
        make_op(10, 38, name="aten::addmm"),
        make_op(45, 60, name="aten::layer_norm"),
        make_op(46, 59, name="tracekit.op#2"),
        make_op(47, 58, name="aten::native_layer_norm"),
        make_op(65, 80, name="aten::add"),
        make_op(66, 79, name="tracekit.op#3"),
        make_op(67, 78, name="aten::add"),
    ]
    assert find_tagged(cpu_work(make_trace(tmp_path, events))) == (
        TaggedActivity("aten::addmm", 1),
        TaggedActivity("aten::layer_norm", 2),
        TaggedActivity("aten::add", 3),
    )


def test_a_kernel_belongs_to_its_graph_call_and_is_told_without_the_graph_s_number(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_op(5, 50, name="## Call CompiledFxGraph fabc ##"),
        make_op(10, 20, name="graph_3_cpp_fused_add_0"),
        make_op(25, 40, name="aten::addmm"),
        make_op(60, 70, name="aten::exp"),
    ]
    keys, activities = find_graph_calls(cpu_work(make_trace(tmp_path, events)))
    assert keys == ("fabc",)
    assert activities == (
        CompiledActivity("cpp_fused_add_0", 0, "graph_3_cpp_fused_add_0", 0),
        CompiledActivity("aten::addmm", 0, "aten::addmm", 1),
        CompiledActivity("aten::exp", None),
    )


def test_threads_have_lanes_of_their_own(tmp_path: Path) -> None:
    events = [make_span(0, 100), make_op(5, 40), make_op(20, 60, thread=2), make_op(70, 80, thread=2)]
    _, drawn = list_and_draw(cpu_work(make_trace(tmp_path, events)))
    assert drawn is not None
    assert (drawn.work.lanes, len(drawn.streams)) == ((0, 1, 1), 2)


@pytest.mark.parametrize("shapes", [True, False])
def test_operators_are_listed_where_shapes_are_asked_for(shapes: bool, tmp_path: Path) -> None:
    trace = make_trace(tmp_path, [make_span(0, 20), make_op(0, 10)])
    _, sequence, drawn = Reading(shapes=shapes, cpu=True).look(trace)
    assert (sequence is not None, drawn is not None) == (shapes, shapes)
