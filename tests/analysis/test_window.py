from __future__ import annotations

from pathlib import Path

import pytest
from tests.traces import Json, analyze, make_call, make_kernel, make_op, make_span, make_trace

from tracekit.analysis.window import Scope, find_scope
from tracekit.errors import TracekitError


def scope_of(folder: Path, events: list[Json], window: str = "auto") -> Scope:
    return find_scope(make_trace(folder, events), window)


def steps_of(scope: Scope) -> list[int]:
    return scope.activities["step"].to_list()


def test_an_id_used_twice_is_the_last_call_s_before_the_kernel(tmp_path: Path) -> None:
    events = [
        make_span(0, 10),
        make_span(20, 30, name="tracekit.step#1"),
        make_call(1, 2, correlation=5),
        make_call(21, 22, correlation=5),
        make_kernel(3, 4, correlation=5),
        make_kernel(23, 24, correlation=5),
    ]
    scope = scope_of(tmp_path, events)
    assert steps_of(scope) == [0, 1]
    assert scope.activities["call"].to_list() == [0, 1]


def test_launches_of_an_id_used_twice_are_two(tmp_path: Path) -> None:
    calls = [make_call(at, at + 1, correlation=5) for at in (0, 10)]
    kernels = [make_kernel(at + 2, at + 3, correlation=5) for at in (0, 10)]
    analysis = analyze(make_trace(tmp_path, [*calls, *kernels]))
    assert analysis.launches.count == 2


def test_a_kernel_that_seems_to_begin_before_its_launch_is_joined_all_the_same(tmp_path: Path) -> None:
    calls = [make_call(at, at + 1, correlation=5) for at in (1, 10)]
    assert scope_of(tmp_path, [*calls, make_kernel(0.5, 2, correlation=5)]).activities["call"].to_list() == [0]


def test_a_launch_from_a_thread_without_spans_belongs_to_the_span_around_it(tmp_path: Path) -> None:
    backward = [make_call(20, 21, correlation=1, thread=9), make_kernel(22, 23, correlation=1)]
    assert steps_of(scope_of(tmp_path, [make_span(0, 100), *backward])) == [0]
    two = [make_span(0, 100, name="work"), make_span(10, 50, name="work", thread=2)]
    scope = scope_of(tmp_path, [*two, *backward], window="work")
    assert (steps_of(scope), scope.doubtful) == ([1], 1)
    assert "ambiguous_steps" in {
        each.code for each in analyze(make_trace(tmp_path, [*two, *backward]), window="work").health
    }


def test_steps_that_old_profilers_wrote_as_operators_are_found(tmp_path: Path) -> None:
    events = [make_op(0, 10, name="ProfilerStep#7"), make_call(1, 2, correlation=1), make_kernel(3, 4, correlation=1)]
    assert [span.index for span in scope_of(tmp_path, events).spans] == [7]


def test_a_call_that_waits_is_nobody_s_launch_where_another_carries_the_id(tmp_path: Path) -> None:
    events = [
        make_call(0, 1, correlation=7),
        {**make_call(2, 3, correlation=7, name="cudaStreamSynchronize"), "pid": 200},
        make_kernel(4, 5, correlation=7),
    ]
    assert scope_of(tmp_path, events).activities["call"].to_list() == [0]
    assert "ambiguous_correlations" not in {each.code for each in analyze(make_trace(tmp_path, events)).health}


def test_a_driver_s_call_inside_the_runtime_s_is_the_same_launch(tmp_path: Path) -> None:
    events = [
        make_call(0, 5, correlation=7),
        make_call(1, 2, correlation=7, name="cuLaunchKernel", category="cuda_driver"),
        make_kernel(4, 6, correlation=7),
    ]
    found = analyze(make_trace(tmp_path, events))
    assert found.launches.count == 1
    assert "ambiguous_correlations" not in {each.code for each in found.health}


def test_clocks_a_little_apart_do_not_move_a_kernel_to_an_earlier_step(tmp_path: Path) -> None:
    events = [
        make_span(0, 10),
        make_span(1000, 1010, name="tracekit.step#1"),
        make_call(1, 2, correlation=7),
        make_kernel(3, 4, correlation=7),
        make_call(1001, 1002, correlation=7),
        make_kernel(1000.5, 1003, correlation=7),
    ]
    assert steps_of(scope_of(tmp_path, events)) == [0, 1]


def test_a_step_number_no_column_holds_is_its_place(tmp_path: Path) -> None:
    events = [
        make_span(0, 10, name="ProfilerStep#" + "9" * 30),
        make_call(1, 2, correlation=1),
        make_kernel(3, 4, correlation=1),
    ]
    assert [span.index for span in scope_of(tmp_path, events).spans] == [0]


def test_steps_are_chosen_by_their_numbers(tmp_path: Path) -> None:
    events: list[Json] = []
    for number in range(5):
        begin = 100 * number
        events += [
            make_span(begin, begin + 10, name=f"ProfilerStep#{number + 3}"),
            make_call(begin + 1, begin + 2, correlation=number + 1),
            make_kernel(begin + 3, begin + 4, correlation=number + 1),
        ]
    trace = make_trace(tmp_path, events)
    assert [step.index for step in analyze(trace, steps=(4, 6)).steps] == [4, 5, 6]
    with pytest.raises(TracekitError, match="its steps are 3 to 7"):
        analyze(trace, steps=(9, 10))
    with pytest.raises(TracekitError, match="leave --window whole out"):
        analyze(trace, window="whole", steps=(3, 3))
