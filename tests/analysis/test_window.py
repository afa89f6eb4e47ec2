from __future__ import annotations

from pathlib import Path

from tests.traces import Json, make_call, make_kernel, make_op, make_span, make_trace

from tracekit.analysis import analyze
from tracekit.analysis.window import Scope, find_scope


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
    assert analysis.launches is not None
    assert analysis.launches.count == 2


def test_a_kernel_that_seems_to_begin_before_its_launch_is_joined_all_the_same(tmp_path: Path) -> None:
    calls = [make_call(at, at + 1, correlation=5) for at in (1, 10)]
    assert scope_of(tmp_path, [*calls, make_kernel(0.5, 2, correlation=5)]).activities["call"].to_list() == [0]


def test_kernels_belong_to_the_span_of_the_thread_that_launched_them(tmp_path: Path) -> None:
    events = [make_span(0, 100, name="work"), make_span(10, 50, name="work", thread=2)]
    for i in range(10):
        thread = 1 + i % 2
        events += [
            make_call(12 + 3 * i, 13 + 3 * i, correlation=i + 1, thread=thread),
            make_kernel(60 + i, 60.5 + i, correlation=i + 1),
        ]
    scope = scope_of(tmp_path, events, window="work")
    assert steps_of(scope) == [0, 1] * 5
    assert scope.doubtful == 0


def test_a_launch_from_a_thread_without_spans_belongs_to_the_span_around_it(tmp_path: Path) -> None:
    backward = [make_call(20, 21, correlation=1, thread=9), make_kernel(22, 23, correlation=1)]
    assert steps_of(scope_of(tmp_path, [make_span(0, 100), *backward])) == [0]
    two = [make_span(0, 100, name="work"), make_span(10, 50, name="work", thread=2)]
    scope = scope_of(tmp_path, [*two, *backward], window="work")
    assert (steps_of(scope), scope.doubtful) == ([1], 1)
    assert "ambiguous_steps" in {
        each.code for each in analyze(make_trace(tmp_path, [*two, *backward]), window="work").health
    }


def test_a_long_span_that_outlasts_a_short_one_of_another_thread_keeps_its_kernels(tmp_path: Path) -> None:
    spans = [make_span(0, 100, name="work"), make_span(10, 20, name="work", thread=2)]
    later = [make_call(80, 81, correlation=1, thread=9), make_kernel(82, 83, correlation=1)]
    scope = scope_of(tmp_path, [*spans, *later], window="work")
    assert (steps_of(scope), scope.doubtful) == ([0], 0)


def test_steps_that_old_profilers_wrote_as_operators_are_found(tmp_path: Path) -> None:
    events = [make_op(0, 10, name="ProfilerStep#7"), make_call(1, 2, correlation=1), make_kernel(3, 4, correlation=1)]
    assert [span.index for span in scope_of(tmp_path, events).spans] == [7]
