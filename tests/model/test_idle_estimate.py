"""What is known of idle time by cause where all of it together is known."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tracekit.model.idle_estimate import Between, IdleEstimate

THREE = st.lists(st.floats(0, 1e4), min_size=3, max_size=3)
ENDS = THREE.map(lambda each: Between(*(sorted(each)[at] for at in (1, 0, 2))))
ESTIMATES = st.dictionaries(st.sampled_from(["python", "op_dispatch", "gc", "guards"]), ENDS, min_size=1).map(
    IdleEstimate
)


def test_no_cause_is_likely_more_than_the_others_leave_at_the_least() -> None:
    causes = {"python": Between(3814, 1800, 4400), "op_dispatch": Between(150, 100, 200)}
    estimate = IdleEstimate(causes, after_sync_us={"python": 1907.0, "gc": 0.0}).within(2800, 50)
    assert estimate.causes == {"python": Between(2700, 1800, 2850), "op_dispatch": Between(150, 100, 200)}
    # Half of it, as before.
    assert estimate.after_sync_us == {"python": 1350.0}


def test_lows_that_make_more_than_there_is_are_wrong() -> None:
    causes = {"python": Between(300, 200, 400), "gc": Between(50, 50, 50)}
    estimate = IdleEstimate(causes).within(100, 10)
    assert estimate.causes == {"python": Between(100, 0, 110), "gc": Between(50, 0, 50)}
    assert estimate.largest(-50.0) is None


@given(ESTIMATES, st.floats(0, 1e4), st.floats(0, 100), st.data())
def test_what_was_possible_and_fits_in_the_whole_stays_possible(
    estimate: IdleEstimate, whole_us: float, doubt_us: float, data: st.DataObject
) -> None:
    truth = {cause: data.draw(st.floats(each.low_us, each.high_us)) for cause, each in estimate.causes.items()}
    assume(math.fsum(truth.values()) <= whole_us + doubt_us)
    found = estimate.within(whole_us, doubt_us).causes
    assert {*found} == {*truth}
    for cause, us in truth.items():
        assert found[cause].low_us <= us <= found[cause].high_us
        assert found[cause].low_us <= found[cause].us <= found[cause].high_us


@given(ESTIMATES)
def test_causes_that_fit_stay_as_they_are(estimate: IdleEstimate) -> None:
    whole_us = math.fsum(each.high_us for each in estimate.causes.values())
    for cause, each in estimate.within(whole_us, 0.0).causes.items():
        before = estimate.causes[cause]
        assert (each.us, each.low_us, each.high_us) == pytest.approx((before.us, before.low_us, before.high_us))
