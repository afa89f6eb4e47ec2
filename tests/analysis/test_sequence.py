import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.traces import (
    Json,
    analyze,
    launched,
    make_call,
    make_copy,
    make_kernel,
    make_op,
    make_replay,
    make_span,
    make_step,
    make_steps,
    make_trace,
    recording,
    write_trace,
)

from tracekit.analysis import sequence
from tracekit.analysis.sequence import _chains, list_and_draw, list_work
from tracekit.model.sequence import Operator, Sequence
from tracekit.model.timeline import Bars, StepTimeline
from tracekit.tracefile.read import read_trace


def work(folder: Path, events: list[Json]) -> Sequence:
    return list_work(read_trace(write_trace(folder, events), shapes=True))


def named(found: Sequence) -> str:
    return "".join(each.name for each in found.activities)


def test_kernels_stand_in_the_order_of_their_launches_not_of_their_starts(tmp_path: Path) -> None:
    assert named(work(tmp_path, [*launched(0, 4, 1, name="a", delay_us=90), *launched(10, 4, 2, name="b")])) == "ab"


def test_kernels_of_one_graph_launch_stand_in_the_order_of_their_starts_and_have_no_operator(tmp_path: Path) -> None:
    events = [
        make_op(0, 20, name="aten::add"),
        make_call(1, 3, name="cudaGraphLaunch", correlation=1),
        make_kernel(30, 40, name="b", correlation=1),
        make_kernel(10, 20, name="a", correlation=1),
    ]
    found = work(tmp_path, events)
    assert [(each.name, each.operator) for each in found.activities] == [("a", None), ("b", None)]
    assert found.operators == "none"


def test_the_innermost_operator_around_a_launch_asked_for_it(tmp_path: Path) -> None:
    shapes: Json = {"Input Dims": [[8], [4, 16], []], "Input type": ["float", "float", "Scalar"]}
    events = [
        make_op(0, 30, name="Torch-Compiled Region: 0/0"),
        make_op(1, 20, name="aten::linear"),
        make_op(2, 10, name="aten::addmm", **shapes),
        *launched(3, 4, 1, name="gemm"),
        *launched(5, 4, 2, name="reduce"),
        *launched(25, 4, 3, name="outside"),
        *launched(6, 4, 4, name="elsewhere", thread=2),
    ]
    found = work(tmp_path, events)
    gemm, reduce, elsewhere, outside = found.activities
    assert gemm.operator == Operator("aten::addmm", ((8,), (4, 16), ()), ("float", "float", "Scalar"))
    assert gemm.within == ("aten::linear", "aten::addmm")
    assert gemm.call == reduce.call is not None
    assert elsewhere.operator is outside.operator is None
    assert (found.operators, found.per_step) == ("own", 1)


TRITON, LIST = "triton_poi_fused_add_0", [[[1, 3], [2]], [4]]
TWO = {"Input Dims": [[1, 3], []], "Input type": ["float", "Scalar"]}


@pytest.mark.parametrize(
    ("name", "inputs", "operator"),
    [
        (TRITON, {"Input Dims": [[64, 64]], "Input type": ["float"]}, Operator(TRITON, ((64, 64),), ("float",))),
        # The tensors of a list stand one by one.
        (
            "aten::cat",
            {"Input Dims": [[[2, 3], [4, 3]], []], "Input type": ["TensorList", "Scalar"]},
            Operator("aten::cat", ((2, 3), (4, 3), ()), ("TensorList", "TensorList", "Scalar")),
        ),
        # What the profiler does not write is not recorded; types that are none leave the shapes.
        *(
            ("aten::add", {"Input Dims": dims}, Operator("aten::add", (), ()))
            for dims in ("none", [[1.5]], [7], None, [[[["a"]]]])
        ),
        ("aten::add", {}, Operator("aten::add", (), ())),
        (
            "aten::add",
            {"Input Dims": [[2], [3]], "Input type": ["float"]},
            Operator("aten::add", ((2,), (3,)), ("", "")),
        ),
    ],
)
def test_an_operator_has_the_inputs_that_the_file_tells(
    tmp_path: Path, name: str, inputs: Json, operator: Operator
) -> None:
    (kernel,) = work(tmp_path, [make_op(0, 9, name=name, **inputs), *launched(1, 4, 1, name="k")]).activities
    assert kernel.operator == operator


@pytest.mark.parametrize(
    ("name", "inputs", "values", "strides"),
    [
        ("aten::convolution", {**TWO, "Concrete Inputs": ["", "[2, 2]"]}, ("", "[2, 2]"), ()),
        ("aten::_flash_attention_forward", {**TWO, "Concrete Inputs": ["", "True"]}, ("", "True"), ()),
        ("aten::dropout", {**TWO, "Concrete Inputs": ["", "True"]}, (), ()),
        ("aten::convolution", {**TWO, "Concrete Inputs": ["", 2]}, (), ()),
        ("aten::convolution", {**TWO, "Concrete Inputs": "no list"}, (), ()),
        ("aten::convolution", {**TWO, "Input Strides": [[3, 1], []]}, (), ((3, 1), ())),
        (
            "aten::convolution",
            {**TWO, "Input Dims": LIST, "Input Strides": [[[3, 1], [1]], [1]]},
            (),
            ((3, 1), (1,), (1,)),
        ),
        # Not of these inputs, not of numbers, no list.
        *(
            ("aten::convolution", {**TWO, "Input Strides": written}, (), ())
            for written in ([[3, 1]], [["a", 1], []], [3, 1], "no list")
        ),
    ],
)
def test_values_and_strides_stand_beside_the_inputs_they_are_of(
    tmp_path: Path, name: str, inputs: Json, values: tuple[str, ...], strides: tuple[tuple[int, ...], ...]
) -> None:
    (found,) = work(tmp_path, [make_op(0, 9, name=name, **inputs), *launched(1, 4, 1, name="k")]).activities
    assert found.operator is not None
    assert (found.operator.values, found.operator.strides) == (values, strides)


def test_steps_that_ran_the_same_are_one_with_mean_durations(tmp_path: Path) -> None:
    found = work(tmp_path, [*make_step(0, "ab", us=2), *make_step(1, "ab", us=4)])
    assert [(each.name, each.duration_us) for each in found.activities] == [("a", 3), ("b", 3)]
    assert (found.per_step, found.starts) == (1, ())


def test_without_shapes_operators_have_names_alone(tmp_path: Path) -> None:
    trace = make_trace(
        tmp_path, [make_op(0, 9, name="aten::add", **{"Input Dims": [[2]]}), *launched(1, 4, 1, name="add")]
    )
    assert list_work(trace).activities[0].operator == Operator("aten::add", (), ())


def test_a_window_in_which_nothing_runs_has_no_work(tmp_path: Path) -> None:
    events = [*make_step(0, "ab", us=2), make_op(500, 600, name="idle")]
    assert list_work(make_trace(tmp_path, events), "idle").activities == ()


def test_copies_are_of_their_own_families(tmp_path: Path) -> None:
    found = work(tmp_path, [make_copy(0, 1), make_copy(2, 3, kind="memset"), make_kernel(4, 5)])
    assert [each.family for each in found.activities] == ["memcpy", "memset", "gemm"]


@pytest.mark.parametrize("name", ["flux_eager", "flux_reduce-overhead", "vit_default"])
def test_it_holds_all_gpu_time_of_a_real_recording(name: str) -> None:
    trace = read_trace(recording(name), shapes=True)
    found, analysis = list_work(trace), analyze(trace)
    assert analysis.kernels is not None and analysis.copies is not None
    whole = analysis.kernels.total_us + analysis.copies.total_us
    assert math.fsum(each.duration_us for each in found.activities) * found.per_step == pytest.approx(whole)


def test_calls_of_the_innermost_operator_are_told_apart_within_one_of_the_outermost(tmp_path: Path) -> None:
    events = [
        make_op(0, 40, name="mine::qkv"),
        make_op(1, 10, name="aten::mm"),
        *launched(2, 4, 1, name="gemm"),
        *launched(4, 4, 2, name="reduce"),
        make_op(11, 20, name="aten::mm"),
        *launched(12, 4, 3, name="gemm"),
    ]
    first, reduce, second = work(tmp_path, events).activities
    assert first.call == reduce.call == second.call
    assert first.operator_call == reduce.operator_call != second.operator_call is not None


def test_branches_of_a_cuda_graph_that_start_in_another_order_are_the_same_step(tmp_path: Path) -> None:
    found = work(tmp_path, [*make_replay(0, "abc"), *make_replay(1, "bac"), *make_replay(2, "cba")])
    assert [(each.name, each.duration_us) for each in found.activities] == [("a", 8), ("b", 4), ("c", 4)]
    assert (found.per_step, found.starts) == (1, ())


@pytest.mark.parametrize(
    ("steps", "names", "starts"),
    [
        pytest.param(["abc", "bad", "ab"], "abcbadab", (0, 3, 6), id="a CUDA graph with other kernels"),
        pytest.param([("ab", 8), ("ba", 8)], "abba", (0, 2), id="one by one in another order"),
        pytest.param([("ab", 8), ("ab", 16)], "abab", (0, 2), id="for operators of other sizes"),
        pytest.param([("", 8), ("ab", 8), ("ab", 8)], "abab", (0, 0, 2), id="none in the first"),
        pytest.param([("ab", 8), ("", 8), ("ab", 8)], "abab", (0, 2, 2), id="none in the second"),
        pytest.param([("ab", 8), ("ab", 8), ("", 8)], "abab", (0, 2, 4), id="none in the last"),
    ],
)
def test_steps_that_differ_stand_one_after_the_other_and_each_says_where_it_begins(
    tmp_path: Path, steps: list[str | tuple[str, int]], names: str, starts: tuple[int, ...]
) -> None:
    made = [
        make_replay(at, each) if isinstance(each, str) else make_step(at, each[0], size=each[1])
        for at, each in enumerate(steps)
    ]
    found = work(tmp_path, [event for some in made for event in some])
    assert (named(found), found.per_step, found.starts) == (names, 1 / len(steps), starts)


def test_operators_around_a_launch_are_told_apart_whatever_other_tables_hold() -> None:
    """polars numbers names over all tables: those of this one may lie as far apart as it has rows, and farther."""
    others = pl.Series([f"name {i}" for i in range(10)]).cast(pl.Categorical)
    names = pl.Series(["name 2", "name 1", "name 7", "name 0"])
    around = _chains(np.array([-1, 0, -1, 2]), np.array([1, 3]), names)
    assert around == [("name 2", "name 1"), ("name 7", "name 0")]
    assert others.len() == 10


def test_of_very_many_operators_around_a_launch_the_innermost_are_named(tmp_path: Path) -> None:
    ops = [make_op(at, 500 - at, name=f"aten::op{at}") for at in range(100)]
    (activity,) = work(tmp_path, [*ops, *launched(200, 4, 1)]).activities
    assert activity.within == tuple(f"aten::op{at}" for at in range(36, 100))
    assert (activity.call, activity.operator_call) == (0, 99)


def drawn(folder: Path, events: list[Json]) -> tuple[StepTimeline, Sequence]:
    """With the sequence whose positions it has."""
    trace = read_trace(write_trace(folder, events), shapes=True)
    found = list_and_draw(trace)[1]
    assert found is not None
    return found, list_work(trace)


def told(timeline: StepTimeline, bars: Bars) -> list[tuple[str, str, float, float]]:
    labels = [timeline.labels[at] for at in bars.labels]
    return [
        (label.name, label.kind, start, us)
        for label, start, us in zip(labels, bars.starts_us, bars.durations_us, strict=True)
    ]


def test_a_step_is_told_from_its_own_start(tmp_path: Path) -> None:
    events = [
        make_span(100, 200),
        make_call(110, 112, correlation=1),
        make_kernel(120, 140, name="nvjet_gemm", correlation=1),
        make_call(150, 155, correlation=2),
        make_copy(160, 170, correlation=2),
    ]
    found, _ = drawn(tmp_path, events)
    assert (found.step, found.length_us, found.device, found.other_devices) == (0, 100, 0, 0)
    assert told(found, found.work) == [("nvjet_gemm", "gemm", 20, 20), ("Memcpy HtoD", "memcpy", 60, 10)]
    assert told(found, found.host) == [
        ("cudaLaunchKernel", "launch_call", 10, 2),
        ("cudaLaunchKernel", "launch_call", 50, 5),
    ]
    gaps = told(found, found.gaps)
    assert [(start, us) for _, _, start, us in gaps] == [(0, 20), (40, 20), (70, 30)]
    assert {name for name, *_ in gaps} == {"idle"}


def test_a_gap_has_the_cause_of_its_larger_part(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_call(0, 1, correlation=1),
        make_kernel(1, 10, correlation=1),
        make_op(10, 60, name="aten::add"),
        make_call(50, 58, correlation=2),
        make_kernel(62, 100, correlation=2),
    ]
    found, _ = drawn(tmp_path, events)
    assert ("idle", "op_dispatch", 10, 52) in told(found, found.gaps)


def test_streams_are_lanes_and_positions_follow_the_order_of_launches(tmp_path: Path) -> None:
    events = [
        make_span(0, 100),
        make_call(1, 2, correlation=1),
        make_call(3, 4, correlation=2),
        make_kernel(50, 60, name="late", stream=7, correlation=1),
        make_kernel(5, 20, name="early", stream=9, correlation=2),
    ]
    found, sequence = drawn(tmp_path, events)
    assert (found.streams, found.work.lanes) == ((9, 7), (0, 1))
    assert [sequence.activities[at].name for at in found.positions] == ["early", "late"]


@pytest.mark.parametrize(
    ("events", "step", "positions", "starts"),
    [
        # Of median length, with positions of one step.
        ([*make_step(0, "a"), *make_step(2, "a", length=300), *make_step(6, "a", length=120)], 6, (0,), ()),
        # Branches of a CUDA graph that swap are found where the sequence has them.
        (
            [*make_replay(0, "abca", length=60), *make_replay(1, "caba", length=70), *make_replay(2, "abca")],
            *(1, (2, 0, 1, 3), ()),
        ),
        # Of steps that differ in shapes alone positions are those of the step drawn.
        (make_steps(("ab", 60, 8), ("ab", 61, 16), ("ab", 62, 8)), 1, (2, 3), (0, 2, 4)),
        (make_steps(("ab", 60, 8), ("ab", 61, 16), ("ab", 62, 16)), 1, (2, 3), (0, 2, 4)),
        # A step without work is not the one drawn, though its length is in the middle.
        (make_steps(("", 60, 8), ("ab", 70, 8), ("ab", 50, 8)), 2, (2, 3), (0, 0, 2)),
        (make_steps(("ab", 70, 8), ("", 60, 8), ("ab", 50, 8)), 2, (2, 3), (0, 2, 2)),
        (make_steps(("ab", 70, 8), ("ab", 50, 8), ("", 60, 8)), 1, (2, 3), (0, 2, 4)),
    ],
)
def test_the_step_of_median_length_is_told_with_its_places_in_the_sequence(
    tmp_path: Path, events: list[Json], step: int, positions: tuple[int, ...], starts: tuple[int, ...]
) -> None:
    found, sequence = drawn(tmp_path, events)
    assert (found.step, found.positions, sequence.starts) == (step, positions, starts)


def test_beyond_what_is_kept_the_shortest_are_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequence, "MOST_BARS", 2)
    events = [make_kernel(at * 10, at * 10 + at + 1, name=f"k{at}") for at in range(4)]
    found, _ = drawn(tmp_path, events)
    assert [name for name, *_ in told(found, found.work)] == ["k2", "k3"]
    assert found.work.left_out == 2
    assert found.positions == (2, 3)


def test_a_recording_without_steps_is_told_whole(tmp_path: Path) -> None:
    found, _ = drawn(tmp_path, [make_kernel(5, 10), make_kernel(20, 25, device=1)])
    assert (found.step, found.other_devices, found.work.starts_us) == (None, 1, (0,))
    assert found.host == Bars((), (), (), (), 0)


@pytest.mark.parametrize("name", ["vit_eager", "vit_default", "vit_reduce-overhead"])
def test_work_and_gaps_of_a_real_step_fill_it_as_the_analysis_says(name: str) -> None:
    trace, window = read_trace(recording(name)), r"tracekit\.iteration#\d+"
    found, steps = list_and_draw(trace, window)[1], analyze(trace, window=window).steps
    assert found is not None
    step = next(each for each in steps if each.index == found.step)
    assert sum(found.gaps.durations_us) == pytest.approx(step.idle_us)
    assert found.length_us == pytest.approx(sum(found.gaps.durations_us) + step.busy_us)
    sequence = list_work(trace, window)
    assert [sequence.activities[at].name for at in found.positions] == [
        found.labels[at].name for at in found.work.labels
    ]
