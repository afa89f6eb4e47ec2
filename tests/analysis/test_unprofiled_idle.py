from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.traces import Json, launched, make_call, make_kernel, make_op, make_span, make_trace

from tracekit.analysis.replay import HostCost, host_steps, replay
from tracekit.analysis.unprofiled_idle import Rule, estimate_idle
from tracekit.analysis.window import find_scope
from tracekit.model.idle_estimate import IdleEstimate

LOOKUP, GRAPH, STEP = "TorchDynamo Cache Lookup", "## Call CompiledFxGraph f ##", "tracekit.step#0"
EXACT = Rule(HostCost())


def estimated(folder: Path, light: list[Json], rich: list[Json], rule: Rule = EXACT) -> IdleEstimate:
    traces = []
    for name, events in (("light", light), ("rich", rich)):
        (folder / name).mkdir()
        traces.append(make_trace(folder / name, events))
    estimate = estimate_idle(traces[0], traces[1], (rule,))
    assert estimate is not None
    return estimate


def test_what_lies_behind_other_work_is_not_taken_for_the_same(tmp_path: Path) -> None:
    """The full trace launches more between the first launch and the lookup, which is why it shows no Python there."""
    last = launched(901, 5, 4)
    light = [make_span(0, 1000, name=STEP), *launched(1, 5, 1), *launched(501, 5, 2), *last]
    rich = [make_span(0, 1000, name=STEP), *launched(1, 5, 1), *launched(100, 5, 3, name="other")]
    rich += [make_op(201, 501, name=LOOKUP), *launched(501, 5, 2), *last]
    estimate = estimated(tmp_path, light, rich)
    assert estimate.unaligned_us == 493.0
    assert estimate.causes["python"].us > 493.0 > estimate.causes["guards"].us
    truth = {"guards": 300.0, "python": 193.0 + 393.0 + 98.0}
    for cause, us in truth.items():
        assert estimate.causes[cause].low_us <= us <= estimate.causes[cause].high_us


@pytest.mark.parametrize(
    "lacks",
    [
        lambda event: event["name"] == STEP,
        lambda event: event["cat"] == "kernel",
    ],
    ids=["steps", "kernels"],
)
def test_a_full_trace_without_the_steps_or_the_gpu_tells_nothing(tmp_path: Path, lacks: Callable[[Json], bool]) -> None:
    light = [make_span(0, 100, name=STEP), *launched(1, 5, 1), *launched(60, 5, 2)]
    estimate = estimated(tmp_path, light, [event for event in [*light, make_op(10, 60)] if not lacks(event)])
    assert estimate.causes["unattributed"].us > 80.0
    assert "op_dispatch" not in estimate.causes


def test_a_span_costs_what_spans_cost(tmp_path: Path) -> None:
    light = [make_span(0, 40, name=STEP), *launched(20, 20, 1, delay_us=1)]
    rich = [make_span(0, 44, name=STEP), make_op(0, 10, name=LOOKUP), make_span(10, 24, name=GRAPH)]
    estimate = estimated(tmp_path, light, [*rich, *launched(24, 20, 1, delay_us=1)], Rule(HostCost(), span_ns=4000.0))
    assert {cause: each.us for cause, each in estimate.causes.items()} == pytest.approx(
        {"guards": 10.0, "compiled_wrapper": 10.0, "launch_call": 1.0}
    )


def test_no_kernel_waits_for_one_that_is_launched_later(tmp_path: Path) -> None:
    """The second is queued behind the first. That the third has just ended on another stream does not matter."""
    events = [make_span(0, 1000, name=STEP)]
    events += [make_call(10, 40, correlation=1), make_kernel(42, 400, correlation=1)]
    events += [make_call(50, 80, correlation=2), make_kernel(401, 900, correlation=2)]
    events += [make_call(350, 380, correlation=3), make_kernel(382, 400.5, stream=13, correlation=3)]
    trace = make_trace(tmp_path, events)
    step = host_steps(trace, find_scope(trace, "auto"), 0)[0]
    assert replay(step, HostCost(launch=20_000.0)).starts.tolist() == [22_000.0, 381_000.0, 322_000.0]
