from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.comparison.verdict import bootstrap_interval, find_noise_floor, judge
from tracekit.model.run import FormName

from ..sides import STEADY, make_form, make_pair, make_side, scaled

ORDER: tuple[FormName, ...] = ("eager", "compiled") * 10


def test_a_form_that_takes_two_thirds_of_the_time_is_faster():
    verdict, warnings = judge(*make_pair(STEADY, scaled(2 / 3)), ORDER)
    assert verdict.result == "faster"
    assert verdict.speedup == pytest.approx(1.5)
    assert verdict.ci95 is not None
    assert verdict.ci95[0] <= 1.5 <= verdict.ci95[1]
    assert warnings == ()


def test_a_form_that_takes_longer_is_slower():
    verdict, _ = judge(*make_pair(STEADY, scaled(1.2)), ORDER)
    assert verdict.result == "slower"
    assert verdict.speedup == pytest.approx(1 / 1.2)


def test_equal_forms_are_inconclusive():
    verdict, _ = judge(*make_pair(STEADY, STEADY[::-1]), ORDER)
    assert verdict.result == "inconclusive"


def test_a_change_below_the_noise_floor_is_inconclusive_though_every_pair_agrees():
    restless = [1000.0, 1200.0, 1000.0, 1200.0, 1000.0, 1200.0, 1000.0, 1200.0, 1000.0, 1200.0]
    verdict, _ = judge(*make_pair(restless, [us / 1.05 for us in restless]), ORDER)
    assert verdict.noise_floor is not None
    assert verdict.noise_floor > 0.05
    assert verdict.result == "inconclusive"


def test_drift_that_meets_both_forms_alike_does_not_widen_the_paired_interval():
    drift = np.linspace(1000, 2000, 20)
    low, high = bootstrap_interval(drift, drift / 1.1, paired=True)
    assert low == pytest.approx(1.1)
    assert high == pytest.approx(1.1)
    unpaired_low, unpaired_high = bootstrap_interval(drift, drift / 1.1, paired=False)
    assert unpaired_high - unpaired_low > 0.2


def test_a_form_that_never_varies_has_no_noise():
    assert find_noise_floor(np.full(10, 1000.0)) == 0


def test_traces_alone_give_no_verdict():
    verdict, warnings = judge(make_side("a"), make_side("b"), ())
    assert verdict.result == "not_timed"
    assert (verdict.speedup, verdict.ci95, verdict.noise_floor, verdict.a_wall_us, verdict.b_wall_us) == (None,) * 5
    assert "traces alone" in warnings[0]


def test_one_timed_side_gives_no_verdict():
    verdict, _ = judge(make_side("a", form=make_form()), make_side("b"), ())
    assert verdict.result == "not_timed"


def test_four_calls_are_too_few():
    verdict, warnings = judge(*make_pair((1000.0,) * 4, (500.0,) * 4), ORDER[:8])
    assert verdict.result == "inconclusive"
    assert verdict.speedup == 2
    assert verdict.ci95 is None
    assert verdict.noise_floor is None
    assert any("Only 4 timed calls" in warning for warning in warnings)


def test_sides_of_different_runs_are_said_not_to_be_interleaved():
    verdict, warnings = judge(*make_pair(STEADY, scaled(0.5)), ())
    assert verdict.result == "inconclusive"
    assert any("not timed in alternation" in warning for warning in warnings)


def test_an_interrupted_round_does_not_count():
    _, warnings = judge(*make_pair(STEADY, scaled(0.5)[:9]), ORDER[:19])
    assert any("only the first 9 rounds" in warning for warning in warnings)


def test_compilation_inside_timed_calls_withholds_the_verdict():
    a, _ = make_pair(STEADY, STEADY)
    b = make_side("compiled", form=make_form("compiled", scaled(0.5), during_timing=2))
    verdict, warnings = judge(a, b, ORDER)
    assert verdict.result == "inconclusive"
    assert any("compiled 2 times while timed" in warning for warning in warnings)


def test_the_same_times_give_the_same_interval_every_time():
    assert judge(*make_pair(STEADY, scaled(0.7)), ORDER) == judge(*make_pair(STEADY, scaled(0.7)), ORDER)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(1.0, 1e7), min_size=5, max_size=12), st.floats(0.1, 10.0))
def test_the_speed_up_lies_in_its_interval_when_one_form_is_a_multiple_of_the_other(walls, factor):
    verdict, _ = judge(*make_pair(walls, [us / factor for us in walls]), ORDER)
    assert verdict.ci95 is not None
    assert verdict.ci95[0] == pytest.approx(factor)
    assert verdict.ci95[1] == pytest.approx(factor)
