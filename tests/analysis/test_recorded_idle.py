"""What the causes of idle time of one trace alone may be without what recording adds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.traces import Json, launched, make_event, make_kernel, make_op, make_span, make_step, write_trace

from tracekit.analysis import unprofiled_idle
from tracekit.model.comparison import Side
from tracekit.model.idle_estimate import MOST_SLOWED, Between
from tracekit.reading.sides import load_side
from tracekit.reading.traces import Reading


def side_of(folder: Path, events: list[Json], **asked: object) -> Side:
    return load_side(write_trace(folder, events), reading=Reading(cached=False, **asked))  # type: ignore[arg-type]


def step(number: int, start: float, pause_us: float) -> list[Json]:
    """A launch at once, and one after a pause, which the GPU does not outlast."""
    events = [*launched(start + 30, 10, 2 * number + 1), *launched(start + 60 + pause_us, 10, 2 * number + 2)]
    return [make_span(start, start + pause_us + 90, name=f"ProfilerStep#{number}"), make_op(start, start + 1), *events]


def test_a_pause_of_python_may_be_as_much_shorter_as_recording_is_known_to_slow_a_call(tmp_path: Path) -> None:
    side = side_of(tmp_path, step(0, 0, 1000))
    ranges, recorded_us = side.recorded_idle_ranges(), side.idle_by_cause()["python"]
    assert ranges is not None and side.recorded_idle_estimate is not None
    assert ranges["python"].high_us == ranges["python"].us == recorded_us
    # All idle time less than that, where the GPU works for 10 us under the host.
    assert recorded_us / MOST_SLOWED - 20 <= ranges["python"].low_us <= recorded_us / MOST_SLOWED
    assert side.recorded_idle_estimate.largest(None) == "python"


def test_the_profilers_own_events_may_be_nothing_and_leave_no_time_to_others(tmp_path: Path) -> None:
    overhead = {**make_event("overhead", 100, 900, name="Activity Buffer Request"), "pid": -1, "tid": 0}
    ranges = side_of(tmp_path, [*step(0, 0, 1000), overhead]).recorded_idle_ranges()
    assert ranges is not None and ranges["profiler"] == Between(800.0, 0.0, 800.0)
    assert ranges["python"].high_us == ranges["python"].us < 300


def test_ranges_are_of_the_steps_that_were_asked_for(tmp_path: Path) -> None:
    events = [*step(0, 0, 1000), *step(1, 2000, 5000)]
    for number, most_us in ((0, 1100), (1, 5100)):
        side = side_of(tmp_path, events, steps=(number, number))
        ranges = side.recorded_idle_ranges()
        assert ranges is not None and most_us / 4 < ranges["python"].low_us <= ranges["python"].high_us < most_us


def test_what_the_host_did_under_a_kernel_may_be_why_the_next_one_is_late(tmp_path: Path) -> None:
    """800 us of Python, then 500 of dispatch, of which the GPU is idle in the last 300."""
    first, second = launched(0, 998, 1), launched(1301, 10, 2)
    span = make_span(0, 1320, name="ProfilerStep#0")
    ranges = side_of(tmp_path, [span, *first, make_op(801, 1310), *second]).recorded_idle_ranges()
    assert ranges is not None and ranges["python"].us < 10
    assert ranges["python"].high_us > 100 and ranges["op_dispatch"].low_us < 200 < ranges["op_dispatch"].high_us


def test_steps_of_which_the_gpu_is_behind_are_one(tmp_path: Path) -> None:
    """Each step's kernel is longer than the step: the next one's waits for it, and the GPU is never idle."""
    events = [make_op(0, 1)]
    for number in range(4):
        begin, start = 50 * number, 20 + 100 * number
        events += [make_span(begin, begin + 45, name=f"ProfilerStep#{number}")]
        events += [launched(begin + 5, 1, number + 1)[0], make_kernel(start, start + 100, correlation=number + 1)]
    side = side_of(tmp_path, events)
    ranges = side.recorded_idle_ranges()
    assert ranges is not None and sum(each.us for each in ranges.values()) == side.recorded_idle_us == 5.0
    assert sum(each.high_us for each in ranges.values()) <= 5.0


def test_of_idle_time_that_a_replay_does_not_come_to_nothing_is_known(tmp_path: Path) -> None:
    """Work from before the step fills its gaps, and the step's launches do not know of it."""
    before = [launched(-100, 1, 9)[0], make_kernel(100, 1050, correlation=9)]
    assert side_of(tmp_path, step(0, 0, 1000)).recorded_idle_ranges() is not None
    assert side_of(tmp_path, [*step(0, 0, 1000), *before]).recorded_idle_ranges() is None


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ([], {"window": "whole"}),
        ([], {"window": "ProfilerStep#0"}),
        ([make_event("python_function", 100, 200, name="model.py(3): forward")], {}),
        ([make_kernel(20, 30, device=1, correlation=1)], {}),
    ],
    ids=["no steps", "a span", "Python stacks", "two GPUs"],
)
def test_where_nobody_can_tell_there_are_no_ranges(tmp_path: Path, more: list[Json], asked: dict[str, str]) -> None:
    assert side_of(tmp_path, [*step(0, 0, 1000), *more], **asked).recorded_idle_ranges() is None


def test_of_more_calls_than_are_replayed_there_are_no_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event for number in range(3) for event in make_step(number, "abcd")]
    calls = 3 * (4 + unprofiled_idle.CALLS_OF_STEP)
    for most, is_told in ((calls, True), (calls - 1, False)):
        monkeypatch.setattr(unprofiled_idle, "MOST_CALLS_ALONE", most)
        assert (side_of(tmp_path, events).recorded_idle_ranges() is not None) is is_told
