"""A recorded step run again, as it was and with a faster host; and its idle time by cause."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from tests.traces import (
    FLUX,
    GRAPHED,
    QWEN,
    ROOT,
    VIT,
    Json,
    analyze,
    make_call,
    make_copy,
    make_event,
    make_kernel,
    make_op,
    make_overlapping_launches,
    make_span,
    make_trace,
)

from tracekit.analysis import unprofiled_idle
from tracekit.analysis.replay import HostCost, HostStep, Replayed, host_steps, replay
from tracekit.analysis.unprofiled_idle import Host, Rule, estimate_idle, rules_of
from tracekit.analysis.window import find_scope
from tracekit.model.quartiles import HostTimes, Quartiles
from tracekit.model.recording_cost import Cost, EventCosts, RecordingCost
from tracekit.model.trace import Trace
from tracekit.tracefile.read import read_trace

GRAPH, SYNC = "cudaGraphLaunch", "cudaStreamSynchronize"
AS_RECORDED = (Rule(HostCost()),)


def step_of(trace: Trace) -> HostStep:
    (step,) = host_steps(trace, find_scope(trace, "auto"), 0)
    return step


def replayed(folder: Path, events: list[Json], cost: HostCost) -> tuple[HostStep, Replayed]:
    """A step of 200 us with these events."""
    step = step_of(make_trace(folder, [make_span(0, 200), *events]))
    return step, replay(step, cost)


def kernels_of(folder: Path, events: list[Json], cost: HostCost) -> list[tuple[float, float]]:
    """When each began and ended, in microseconds, by its launch."""
    _, again = replayed(folder, events, cost)
    return [(start / 1e3, end / 1e3) for start, end in zip(again.starts, again.ends, strict=True)]


def causes_of(light: Trace, rich: Trace | None = None, rules: tuple[Rule, ...] = AS_RECORDED) -> dict[str, float]:
    estimate = estimate_idle(light, rich, rules)
    assert estimate is not None
    return {cause: each.us for cause, each in estimate.causes.items()}


@pytest.mark.parametrize("run", [FLUX, QWEN, VIT, GRAPHED], ids=lambda run: run.name)
@pytest.mark.parametrize("form", ["eager", "compiled"])
def test_without_costs_a_replay_is_the_recording_and_its_causes_are_the_recorded_ones(run: Path, form: str) -> None:
    trace = read_trace(next((ROOT / run).glob(f"{form}-rich.json.*")))
    steps = host_steps(trace, find_scope(trace, "auto"), 0)
    for step in steps:
        again = replay(step, HostCost())
        assert (again.starts.tolist(), again.ends.tolist()) == (step.starts, step.ends)
        assert again.stretch_ends.tolist() == np.cumsum(step.lengths).tolist()
    recorded = {each.cause: each.us / len(steps) for each in analyze(trace).idle.causes}
    found = causes_of(trace)
    # An event of the profiler's inside a launch is a part of that launch here.
    overhead_us = recorded.pop("profiler", 0.0)
    assert sum(recorded.values()) + overhead_us == pytest.approx(sum(found.values()))
    for cause in {*recorded, *found}:
        slack_us = overhead_us if cause in ("launch_call", "op_dispatch", "python") else 0.0
        assert found.get(cause, 0.0) == pytest.approx(recorded.get(cause, 0.0), abs=slack_us + 1e-6), cause


def test_a_cost_shortens_the_launch_first_then_what_lies_before_it(tmp_path: Path) -> None:
    events = [make_call(10, 14, correlation=1), make_kernel(16, 20, correlation=1)]
    assert kernels_of(tmp_path, events, HostCost(launch=3000)) == [(13, 17)]
    step, again = replayed(tmp_path, events, HostCost(launch=6000))
    # Half a microsecond is left of the call.
    assert (again.stretch_ends[:2] / 1e3).tolist() == [10 - 2.5, 14 - 6]
    assert again.stretch_ends[-1] / 1e3 == 200 - 6
    both = replay(step, HostCost(launch=7000, in_call=False))
    assert (both.stretch_ends[:2] / 1e3).tolist() == [10 - 5, 14 - 7]
    # Never more than there is.
    assert replay(step, HostCost(launch=99_000)).starts.tolist() == [500 + 2000]


def test_work_handed_over_before_the_cost_begins_as_long_after_the_handing_over(tmp_path: Path) -> None:
    events = [make_call(10, 20, correlation=1), make_kernel(22, 30, correlation=1)]
    assert kernels_of(tmp_path, events, HostCost(launch=4000)) == [(18, 26)]
    assert kernels_of(tmp_path, events, HostCost(launch=4000, after_start=True)) == [(22, 30)]


def test_queued_work_stays_behind_what_runs_before_it(tmp_path: Path) -> None:
    launches = [make_call(10 * at, 10 * at + 5, correlation=at) for at in (1, 2, 3)]
    kernels = [
        make_kernel(17, 60, correlation=1),
        make_kernel(61, 70, correlation=2),
        make_kernel(71, 80, correlation=3),
    ]
    assert kernels_of(tmp_path, launches + kernels, HostCost(launch=3000)) == [(14, 57), (58, 67), (68, 77)]


@pytest.mark.parametrize(("ends", "sooner"), [(50.0, 4.0), (100.5, 4.5)])
def test_each_stream_waits_for_its_own_work_whatever_ended_last(tmp_path: Path, ends: float, sooner: float) -> None:
    events = [
        *(make_call(10, 15, correlation=1), make_kernel(17, 100, correlation=1, stream=7)),
        *(make_call(30, 35, correlation=2), make_kernel(37, ends, correlation=2, stream=8)),
        *(make_call(60, 65, correlation=3), make_kernel(101, 110, correlation=3, stream=7)),
    ]
    assert kernels_of(tmp_path, events, HostCost(launch=4000)) == [
        (13, 96),
        (29, ends - 8),
        (101 - sooner, 110 - sooner),
    ]


def test_a_wait_ends_as_long_after_the_work_it_waited_for_whatever_the_host_did(tmp_path: Path) -> None:
    events = [
        *(make_call(10, 15, correlation=1), make_kernel(17, 60, correlation=1)),
        *(make_call(30, 66, name=SYNC, correlation=9), make_call(70, 75, correlation=2)),
        make_kernel(77, 90, correlation=2),
    ]
    assert kernels_of(tmp_path, events, HostCost(launch=3000)) == [(14, 57), (71, 84)]
    assert kernels_of(tmp_path, events, HostCost(launch=3000, sync=4000)) == [(14, 57), (67, 80)]


def test_a_wait_that_the_gpus_clock_sees_return_too_early_is_replayed_as_recorded(tmp_path: Path) -> None:
    events = [
        *(make_call(10, 15, correlation=1), make_kernel(17, 60, correlation=1)),
        make_call(30, 59.5, name=SYNC, correlation=9),
    ]
    step, again = replayed(tmp_path, events, HostCost())
    assert again.stretch_ends.tolist() == np.cumsum(step.lengths).tolist()


@pytest.mark.parametrize("sync_us", [0.0, 3.0])
def test_a_copy_that_holds_its_caller_launches_until_it_began_and_waits_until_it_ended(
    tmp_path: Path, sync_us: float
) -> None:
    copy = {**make_kernel(40, 80, correlation=1, name="Memcpy DtoH (Device -> Pageable)"), "cat": "gpu_memcpy"}
    events = [make_call(20, 86, name="cudaMemcpyAsync", correlation=1), copy, make_op(-9, -8)]
    _, again = replayed(tmp_path, events, HostCost(copy=8000, sync=1000 * sync_us))
    assert (again.starts / 1e3, again.ends / 1e3) == (32, 72)
    trace = make_trace(tmp_path, [make_span(0, 200), *events])
    assert causes_of(trace, rules=(Rule(HostCost(copy=8000, sync=1000 * sync_us)),)) == pytest.approx(
        {"sync_wait": 6 - sync_us, "launch_call": 12, "python": 20 + 114}
    )


def test_a_copy_that_began_with_its_call_right_after_another_call_costs_nothing_more(tmp_path: Path) -> None:
    copy = {**make_kernel(20, 80, correlation=1, name="Memcpy DtoH (Device -> Pageable)"), "cat": "gpu_memcpy"}
    events = [make_call(10, 20, name="cudaEventQuery", correlation=9), copy]
    events.append(make_call(20, 86, name="cudaMemcpyAsync", correlation=1))
    for in_call in (True, False):
        assert kernels_of(tmp_path, events, HostCost(copy=8000, in_call=in_call)) == [(20, 80)]


def test_kernels_of_a_graph_that_begin_before_its_launch_returns_stay_in_the_call(tmp_path: Path) -> None:
    events = [
        make_call(10, 50, name=GRAPH, correlation=1),
        *(make_kernel(begin, begin + 5, correlation=1) for begin in (20, 30, 60)),
    ]
    # Of 40 us three quarters are left, so that the first begins 30 * 3/4 before the return; the others follow it.
    costs = HostCost(graph_launch=7000, graph_node=1000)
    assert kernels_of(tmp_path, events, costs) == [(17.5, 22.5), (27.5, 32.5), (57.5, 62.5)]


def test_between_the_kernels_of_a_graph_the_host_is_no_cause_though_its_launch_has_not_returned(tmp_path: Path) -> None:
    events = [make_call(0, 150, name=GRAPH, correlation=1), make_op(-9, -8)]
    events += [make_kernel(20, 30, correlation=1), make_kernel(40, 50, correlation=1)]
    trace = make_trace(tmp_path, [make_span(0, 150), *events])
    assert causes_of(trace) == {each.cause: each.us for each in analyze(trace).idle.causes}
    assert causes_of(trace) == {"launch_call": 20 + 100, "device": 10}


@pytest.mark.parametrize(
    ("faster_us", "gaps"), [(0.0, {"launch_latency": 3.4}), (1.0, {"launch_latency": 2.4}), (3.5, {"device": 1.0})]
)
def test_what_began_by_its_own_launch_is_behind_other_work_only_where_a_faster_host_has_it_wait(
    tmp_path: Path, faster_us: float, gaps: dict[str, float]
) -> None:
    trace = make_trace(tmp_path, [make_span(0, 2170), make_op(-9, -8), *make_overlapping_launches(400)])
    found = causes_of(trace, rules=(Rule(HostCost(launch=1000 * faster_us)),))
    of_gpu = {cause: found[cause] for cause in ("launch_latency", "device") if cause in found}
    # The first kernel has no other before it.
    of_gpu["launch_latency"] -= 5
    assert {cause: us for cause, us in of_gpu.items() if us > 1e-6} == pytest.approx(
        {cause: 399 * us for cause, us in gaps.items()}
    )


def test_what_is_queued_behind_long_work_stays_so_however_fast_the_host_is(tmp_path: Path) -> None:
    events = [make_op(-9, -8), make_call(10, 15, correlation=1), make_kernel(17, 100, correlation=1)]
    events += [make_call(30, 35, correlation=2), make_kernel(101, 200, correlation=2)]
    trace = make_trace(tmp_path, [make_span(0, 200), *events])
    for faster_us in (0.0, 4.0):
        found = causes_of(trace, rules=(Rule(HostCost(launch=1000 * faster_us)),))
        assert (found["launch_latency"], found["device"]) == (2, 1)


def test_what_autograds_thread_does_not_record_is_told_by_the_thread_before(tmp_path: Path) -> None:
    events = [
        *(make_call(10, 15, correlation=1), make_kernel(17, 20, correlation=1), make_op(22, 60, name="aten::nll_loss")),
        *(make_op(70, 75, name="AddBackward0", thread=2), make_call(80, 85, correlation=2, thread=2)),
        make_kernel(87, 190, correlation=2),
    ]
    trace = make_trace(tmp_path, [make_span(0, 200), *events])
    found = causes_of(trace)
    # The same stretch as a whole: more of it is recorded on the thread before.
    assert found["op_dispatch"] == 38
    assert found["python"] == 10 + 2 + 20 + 10
    assert sum(found.values()) == pytest.approx(200 - 106)


def test_a_thread_that_only_waits_for_the_gpu_hides_no_launch_of_another(tmp_path: Path) -> None:
    events = [make_op(-9, -8), make_call(10, 15, correlation=1), make_kernel(17, 20, correlation=1)]
    events += [make_call(50, 55, correlation=2), make_kernel(57, 195, correlation=2)]
    waiting = make_call(1, 198, name="cudaEventSynchronize", correlation=9, thread=2)
    alone = causes_of(make_trace(tmp_path, [make_span(0, 200), *events]))
    assert alone == {"launch_call": 10, "python": 10 + 30 + 5, "launch_latency": 4}
    assert causes_of(make_trace(tmp_path, [make_span(0, 200), *events, waiting])) == alone


def test_where_two_threads_launch_at_once_nothing_is_estimated(tmp_path: Path) -> None:
    copy = [make_call(1, 198, name="cudaMemcpy", correlation=9, thread=2), make_copy(3, 5, correlation=9)]
    events = [make_span(0, 200), make_call(10, 15, correlation=1), make_kernel(17, 20, correlation=1)]
    assert estimate_idle(make_trace(tmp_path, events), None, AS_RECORDED) is not None
    assert estimate_idle(make_trace(tmp_path, [*events, *copy]), None, AS_RECORDED) is None
    # Of one thread the one is a part of the other.
    inside = [{**copy[0], "tid": 1}, copy[1]]
    assert estimate_idle(make_trace(tmp_path, [*events, *inside]), None, AS_RECORDED) is not None


def test_a_collection_is_the_kernel_only_traces_own_and_none_of_what_the_full_one_tells(tmp_path: Path) -> None:
    def events(*more: Json) -> list[Json]:
        return [make_span(0, 200), make_call(100, 105, correlation=1), make_kernel(107, 195, correlation=1), *more]

    light = make_trace(tmp_path, events(make_event("user_annotation", 20, 60, name="Python GC")))
    rich = make_trace(tmp_path, events(make_op(50, 100), make_event("user_annotation", 0, 10, name="Python GC")))
    found = causes_of(light, rich)
    assert found["gc"] == 40
    assert found["op_dispatch"] == pytest.approx(60 * 50 / 90)
    assert sum(found.values()) == pytest.approx(200 - 88)


def test_a_call_inside_a_collection_is_no_part_of_it_and_one_told_twice_counts_once(tmp_path: Path) -> None:
    told = make_event("python_function", 10, 60, name="<built-in function collect>")
    inside = make_event("user_annotation", 12, 58, name="Python GC")
    later = make_event("user_annotation", 70, 80, name="Python GC")
    events = [told, inside, later, make_call(20, 30, name="cudaFree", correlation=9)]
    events += [make_call(100, 105, correlation=1), make_kernel(107, 200, correlation=1)]
    found = causes_of(make_trace(tmp_path, [make_span(0, 200), *events]))
    assert found == {"launch_call": 5, "memory": 10, "gc": 40 + 10, "launch_latency": 2, "unattributed": 10 + 30}


def test_work_without_a_recorded_launch_stays_where_it_was_and_what_it_ends_has_no_cause(tmp_path: Path) -> None:
    events = [make_op(-9, -8), make_kernel(40, 60, correlation=77)]
    events += [make_call(70, 75, correlation=1), make_kernel(77, 195, correlation=1)]
    assert kernels_of(tmp_path, events, HostCost(launch=4000)) == [(40, 60), (73, 191)]
    found = causes_of(make_trace(tmp_path, [make_span(0, 200), *events]))
    assert found == {"launch_call": 5, "python": 10 + 5, "launch_latency": 2, "unattributed": 40}


def test_the_profilers_own_events_in_a_launch_are_no_part_of_it_without_the_profiler(tmp_path: Path) -> None:
    overhead = make_event("overhead", 12, 42, name="Activity Buffer Request", thread=0)
    events = [make_call(10, 50, correlation=1), make_kernel(52, 60, correlation=1)]
    assert kernels_of(tmp_path, [*events, overhead], HostCost()) == [(52, 60)]
    assert kernels_of(tmp_path, [*events, overhead], HostCost(own_events=True)) == [(22, 30)]
    # A full queue is full without the profiler too.
    full = {**overhead, "name": "Command Buffer Full"}
    assert kernels_of(tmp_path, [*events, full], HostCost(own_events=True)) == [(52, 60)]
    assert all(rule.cost.own_events for rule in rules_of(None))


def test_launches_that_differ_between_the_recordings_have_the_causes_of_all_of_the_step(tmp_path: Path) -> None:
    def events(names: str, *more: Json) -> list[Json]:
        made = [make_span(0, 200)]
        for at, name in enumerate(names, 1):
            made += [make_call(40 * at, 40 * at + 4, correlation=at)]
            made += [make_kernel(40 * at + 6, 40 * at + 10, correlation=at, name=name)]
        return [*made, *more]

    rich = make_trace(tmp_path, events("axc", make_op(50, 80, name="aten::add")))
    estimate = estimate_idle(make_trace(tmp_path, events("abc")), rich, AS_RECORDED)
    assert estimate is not None
    # What lies before the second launch, after the first one's work, and before the third: behind other work.
    assert estimate.unaligned_us == pytest.approx((80 - 50) + (120 - 90))
    same = estimate_idle(make_trace(tmp_path, events("axc")), rich, AS_RECORDED)
    assert same is not None and same.unaligned_us == 0
    assert same.causes["op_dispatch"].us == 30
    assert 0 < estimate.causes["op_dispatch"].us < 15


@pytest.mark.parametrize(
    "left", [[make_op(0, 9)], [make_span(0, 200)], [make_kernel(1, 2)], [make_span(0, 9), make_op(0, 9)]]
)
def test_a_full_trace_that_was_cut_off_before_its_work_tells_nothing(tmp_path: Path, left: list[Json]) -> None:
    events = [make_span(0, 200), make_call(10, 15, correlation=1), make_kernel(17, 195, correlation=1)]
    rich = make_trace(tmp_path, left)
    assert causes_of(make_trace(tmp_path, events), rich) == {"launch_call": 5, "launch_latency": 2, "unattributed": 15}


def test_what_follows_a_wait_is_what_follows_one_in_which_the_gpu_ran_dry(tmp_path: Path) -> None:
    def after(wait: tuple[float, float]) -> dict[str, float]:
        events = [make_op(-9, -8), make_call(10, 15, correlation=1), make_kernel(17, 60, correlation=1)]
        events += [make_call(*wait, name=SYNC, correlation=9), make_call(150, 155, correlation=2)]
        events += [make_kernel(157, 200, correlation=2)]
        estimate = estimate_idle(make_trace(tmp_path, [make_span(0, 200), *events]), None, AS_RECORDED)
        assert estimate is not None
        return estimate.after_sync_us

    assert after((30, 66)) == {"launch_call": 5, "python": 150 - 66}
    # It returned at once, for the GPU had had nothing to do for long.
    assert after((100, 101)) == {}


def test_of_more_calls_than_are_replayed_nothing_is_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [make_span(100 * number, 100 * number + 90, name=f"tracekit.step#{number}") for number in (0, 1)]
    for number in (0, 1):
        events += [make_call(100 * number + 10, 100 * number + 15, correlation=number + 1)]
        events += [make_kernel(100 * number + 17, 100 * number + 20, correlation=number + 1)]
    trace = make_trace(tmp_path, [*events, make_call(95, 96, name="cudaFree", correlation=3)])
    monkeypatch.setattr(unprofiled_idle, "MOST_CALLS", 2)
    assert estimate_idle(trace, None, AS_RECORDED) is not None
    monkeypatch.setattr(unprofiled_idle, "MOST_CALLS", 1)
    assert estimate_idle(trace, None, AS_RECORDED) is None


def test_on_a_slow_host_everything_takes_as_much_longer_and_what_may_sleep_has_both_in_its_range(
    tmp_path: Path,
) -> None:
    """Recorded at half the speed of the timed calls: 20 us of dispatch, 10 of launching and 40 of Python."""
    step = [make_span(0, 200), make_call(60, 70, correlation=1), make_kernel(70, 200, correlation=1)]
    trace = make_trace(tmp_path, [*step, make_op(40, 70, name="aten::add")])
    host = Host(HostTimes(us=20.0, low=20.0, high=30.0), (40.0,))
    all_alike = Rule(HostCost(), by_clock="none")
    rules = (Rule(HostCost()), all_alike, replace(all_alike, speed="low"), replace(all_alike, speed="high"))
    estimate = estimate_idle(trace, trace, rules, host=host)
    assert estimate is not None
    found = {cause: (each.low_us, each.us, each.high_us) for cause, each in estimate.causes.items()}
    assert found["python"] == pytest.approx((20, 40, 40))
    assert found["op_dispatch"] == pytest.approx((10, 10, 15))
    assert found["launch_call"] == pytest.approx((5, 5, 7.5))
    for known in (replace(host, recorded_us=(20.1,)), replace(host, recorded_us=(1e9,))):
        as_recorded = estimate_idle(trace, trace, rules, host=known)
        assert as_recorded is not None and as_recorded.causes["op_dispatch"].us == 20


@pytest.mark.parametrize(
    ("off_cpu_us", "python_us"),
    [((10.0,), 25), ((0.0,), 20), ((40.0,), 40), ((99.0,), 40), ((), 40), ((10.0, 0.0), 40)],
)
def test_python_follows_the_host_but_for_what_its_thread_was_off_the_cpu(
    tmp_path: Path, off_cpu_us: tuple[float, ...], python_us: float
) -> None:
    """Recorded at half the speed of the timed calls: 40 us of Python, as good as asleep where nothing is known."""
    step = [make_span(0, 200), make_call(60, 70, correlation=1), make_kernel(70, 200, correlation=1)]
    step += [make_op(40, 70, name="aten::add"), make_call(70, 200, name=SYNC, correlation=9)]
    trace = make_trace(tmp_path, step)
    host = Host(HostTimes(us=20.0, low=20.0, high=20.0), (40.0,), off_cpu_us=off_cpu_us)
    rules = (Rule(HostCost()), Rule(HostCost(), by_clock="all"), Rule(HostCost(), by_clock="none"))
    estimate = estimate_idle(trace, trace, rules, host=host)
    assert estimate is not None
    python = estimate.causes["python"]
    assert (python.low_us, python.us, python.high_us) == pytest.approx((20, python_us, 40))
    assert estimate.causes["op_dispatch"].us == pytest.approx(10)


def test_a_copy_from_pageable_memory_takes_as_long_as_it_did_or_follows_the_host(tmp_path: Path) -> None:
    copied = {**make_copy(70, 80, correlation=1), "name": "Memcpy HtoD (Pageable -> Device)"}
    step = [make_span(0, 200), make_call(10, 70, name="cudaMemcpyAsync", correlation=1), copied]
    step += [make_call(100, 110, correlation=2), make_kernel(110, 200, correlation=2)]
    host = Host(HostTimes(us=20.0, low=20.0, high=20.0), (40.0,))
    rules = (Rule(HostCost()), Rule(HostCost(), by_clock="none"))
    estimate = estimate_idle(make_trace(tmp_path, step), None, rules, host=host)
    assert estimate is not None
    launching = estimate.causes["launch_call"]
    assert (launching.low_us, launching.us, launching.high_us) == pytest.approx((30 + 5, 60 + 5, 60 + 5))


def at_ratio(folder: Path, ratio: float, light: list[Json], rich: list[Json] | None = None) -> dict[str, float]:
    """Idle time by cause of a host that takes so many times as long when it is timed, the full trace's as long."""
    traces = []
    for name, events in (("light", light), ("rich", rich or light)):
        (folder / f"{name}{ratio}").mkdir()
        traces.append(make_trace(folder / f"{name}{ratio}", [make_span(0, 2000), *events]))
    host = Host(HostTimes(us=20.0, low=20.0, high=20.0), (20.0 / ratio,), (20.0,))
    estimate = estimate_idle(*traces, (Rule(HostCost()),), host=host)
    assert estimate is not None
    return {cause: each.us for cause, each in estimate.causes.items()}


@pytest.mark.parametrize("ratio", [0.5, 1.6])
def test_work_that_begins_inside_its_call_begins_in_as_much_of_it_on_another_host(tmp_path: Path, ratio: float) -> None:
    graph = [make_call(100, 1100, name=GRAPH, correlation=1), make_kernel(200, 2000, correlation=1)]
    found = at_ratio(tmp_path, ratio, [*graph, make_op(0, 100)])
    assert found["launch_call"] == pytest.approx(100 * ratio)


def test_a_launch_that_waits_for_room_in_the_queue_waits_as_long_on_another_host(tmp_path: Path) -> None:
    full = make_event("overhead", 12, 988, name="Command Buffer Full", thread=0)
    events = [make_call(0, 10, correlation=1), make_kernel(12, 1000, correlation=1), full]
    events += [make_call(10, 990, correlation=2), make_kernel(1002, 2000, correlation=2)]
    assert at_ratio(tmp_path, 1.6, events).get("launch_call", 0.0) <= 20.0


def test_the_full_trace_is_read_at_the_speed_that_its_host_had(tmp_path: Path) -> None:
    """Timed calls and the full trace have 400 us of dispatch and 600 of sleep; the other recording's host is slow."""
    launch = [make_call(1000, 1010, correlation=1), make_kernel(1010, 2000, correlation=1)]
    slow = [make_call(1400, 1420, correlation=1), make_kernel(1420, 2000, correlation=1)]
    found = at_ratio(tmp_path, 0.5, slow, [make_op(0, 400, name="aten::view"), *launch])
    assert found["op_dispatch"] == pytest.approx(400)
    assert found["python"] == pytest.approx(600)


def test_what_was_queued_waits_for_its_own_launch_where_the_host_is_slow(tmp_path: Path) -> None:
    """Each returns while the work before it runs, where 3 us is a launch's latency; at a quarter of the speed none."""
    events = [make_call(0, 4, correlation=1), make_kernel(7, 27, correlation=1)]
    for at in range(1, 20):
        events += [make_call(4 + 10 * at, 14 + 10 * at, correlation=1 + at)]
        events += [make_kernel(7 + 20 * at + at, 27 + 20 * at, correlation=1 + at)]
    found = at_ratio(tmp_path, 4.0, events)
    assert found["launch_latency"] == pytest.approx(20 * 3, rel=0.1)


AT_QUARTILES = (Rule(HostCost()), Rule(HostCost(), speed="low"), Rule(HostCost(), speed="high"))


def collecting(
    folder: Path, steps: list[list[Json]], timed: Quartiles | None, host: Host | None = None
) -> dict[str, tuple[float, float, float]]:
    """The causes of steps of 200 us that launch at 150 and have these events before it; each with its low and high."""
    events = []
    for at, more in enumerate(steps):
        begin, number = 1000 * at, at + 1
        moved = [{**event, "ts": event["ts"] + begin} for event in more]
        events += [make_span(begin, begin + 200, name=f"tracekit.step#{at}"), *moved]
        events += [make_call(begin + 150, begin + 160, correlation=number)]
        events += [make_kernel(begin + 160, begin + 200, correlation=number)]
    estimate = estimate_idle(make_trace(folder, events), None, AT_QUARTILES, host=host, collecting=timed)
    assert estimate is not None
    return {cause: (each.low_us, each.us, each.high_us) for cause, each in estimate.causes.items()}


def collection(begin: float, end: float) -> Json:
    return make_event("user_annotation", begin, end, name="Python GC")


#: On a host that was half as fast while it was recorded, on one as fast, and where nothing is known of it.
HOSTS = (Host(HostTimes(20.0, 20.0, 20.0), (40.0,)), Host(HostTimes(20.0, 20.0, 20.0), (20.0,)), None)


@pytest.mark.parametrize("host", HOSTS)
def test_collections_take_as_long_as_those_of_timed_calls_however_fast_the_host_is(
    tmp_path: Path, host: Host | None
) -> None:
    step = [collection(10, 50), collection(70, 90)]
    found = collecting(tmp_path, [step], Quartiles(us=20.0, low=15.0, high=30.0), host)
    assert found["gc"] == pytest.approx((15, 20, 30))
    assert found["unattributed"] == pytest.approx((90, 90, 90))
    assert found["launch_call"][1] == pytest.approx(5 if host is HOSTS[0] else 10)


def test_where_timed_calls_collect_nothing_a_recorded_collection_is_no_cause(tmp_path: Path) -> None:
    assert "gc" not in collecting(tmp_path, [[collection(10, 70)], [], []], Quartiles(us=0.0, low=0.0, high=0.0))


def test_a_step_that_collects_nothing_stays_without_collections(tmp_path: Path) -> None:
    found = collecting(tmp_path, [[], [collection(10, 70)], []], Quartiles(us=30.0, low=0.0, high=60.0))
    assert found["gc"] == pytest.approx((0, 30 / 3, 30))


def test_of_what_a_call_hides_of_a_collection_nothing_comes_back(tmp_path: Path) -> None:
    """A collection of 60 us, for 20 of which its thread frees memory, takes half as long when it is timed."""
    free = make_call(30, 50, name="cudaFree", correlation=9)
    found = collecting(tmp_path, [[collection(10, 70), free]], Quartiles(us=30.0, low=30.0, high=30.0))
    assert (found["gc"][1], found["memory"][1]) == pytest.approx((20, 20))


def test_collections_are_as_recorded_where_nothing_is_known_of_timed_ones(tmp_path: Path) -> None:
    assert collecting(tmp_path, [[collection(10, 70)]], None)["gc"] == (60, 60, 60)


def test_what_recording_adds_is_of_the_speed_that_a_rule_supposes() -> None:
    cost = EventCosts(*[Cost(5.0, 5.0, 5.0)] * 5)
    rules = rules_of(RecordingCost(cost, cost, host_us=25.0), HostTimes(us=45.0, low=25.0, high=50.0))
    launch = {rule.speed: (rule.cost.launch, rule.operator_ns) for rule in rules}
    assert launch == {"us": (9000, 9000), "low": (5000, 5000), "high": (10_000, 10_000)}
    for absurd in (HostTimes(us=1e9, low=1e9, high=1e9), None):
        assert {rule.cost.launch for rule in rules_of(RecordingCost(cost, cost, host_us=25.0), absurd)} == {5000}
