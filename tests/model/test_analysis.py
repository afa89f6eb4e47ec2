from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.model.analysis import shrink_idle

RECORDED = {"op_dispatch": 60.0, "launch_call": 30.0, "profiler": 20.0, "device": 40.0}
CAUSES = st.dictionaries(
    st.sampled_from(["op_dispatch", "launch_call", "sync_wait", "python", "profiler", "device"]), st.floats(0, 1e6)
)


def test_idle_time_that_no_recording_shows_is_given_to_no_cause():
    without = {cause: us for cause, us in RECORDED.items() if cause != "profiler"}
    assert shrink_idle(without, 200.0) == without


def test_the_profiler_s_own_time_is_no_call_s_however_much_idle_time_there_is():
    for true_us in (140.0, 1000.0):
        assert shrink_idle(RECORDED, true_us) == {**RECORDED, "profiler": 0.0}


def test_the_host_s_causes_shrink_by_one_factor():
    assert shrink_idle(RECORDED, 85.0) == {"op_dispatch": 30.0, "launch_call": 15.0, "profiler": 0.0, "device": 40.0}


def test_the_gpu_s_own_idle_time_shrinks_when_nothing_else_is_left():
    assert shrink_idle(RECORDED, 25.0) == {"op_dispatch": 0.0, "launch_call": 0.0, "profiler": 0.0, "device": 25.0}


@given(CAUSES, st.floats(0, 1e6))
def test_causes_add_up_to_the_call_s_idle_time_or_to_what_was_recorded(causes: dict[str, float], true_us: float):
    left = shrink_idle(causes, true_us)
    recorded = math.fsum(us for cause, us in causes.items() if cause != "profiler")
    assert math.fsum(left.values()) == pytest.approx(min(recorded, true_us), rel=1e-9, abs=1e-6)
    assert all(0 <= left[cause] <= us for cause, us in causes.items())
