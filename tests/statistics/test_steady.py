import math

import numpy as np
import pytest
from tests.statistics.test_interval import autoregressive

from tracekit.statistics.steady import find_tick, mean_interval, mean_ratio, steady_from

DRAWN = [np.random.default_rng(seed).normal(5, 1, 100) for seed in range(300)]


def test_the_interval_of_independent_values_holds_their_mean_and_each_is_a_stretch():
    found = [mean_interval(values) for values in DRAWN]
    assert np.mean([each.low <= 5 <= each.high for each in found]) >= 0.95
    assert np.median([each.stretches for each in found]) == 100
    # What it costs not to know that they are independent: Student's t for them is 1.98 / 10.
    assert np.median([each.half_width for each in found]) < 1.3 * 1.98 / 10


@pytest.mark.parametrize(("memory", "least"), [(0.5, 0.93), (0.9, 0.93)])
def test_neighbours_that_are_alike_widen_it_and_are_fewer_stretches(memory: float, least: float):
    drawn = [autoregressive(memory, 400, seed) for seed in range(200)]
    found = [mean_interval(values) for values in drawn]
    assert np.mean([each.low <= 0 <= each.high for each in found]) >= least
    # Of an autoregression there are (1 - m) / (1 + m) as many.
    independent = 400 * (1 - memory) / (1 + memory)
    assert np.median([each.stretches for each in found]) == pytest.approx(independent, rel=0.5)


def test_outliers_are_left_out_but_not_a_second_speed():
    values = DRAWN[0].copy()
    plain = mean_interval(values)
    values[:5] += 1000
    assert mean_interval(values).middle == pytest.approx(plain.middle, abs=0.1)
    values[:40] = DRAWN[0][:40] + 1000
    assert mean_interval(values).middle == pytest.approx(plain.middle + 400, abs=1)


def test_equal_values_have_no_spread():
    found = mean_interval(np.full(12, 3.0))
    assert (found.middle, found.low, found.high, found.stretches) == (3, 3, 3, 12)


@pytest.mark.parametrize("evenly", [True, False])
def test_a_beginning_on_its_way_to_the_rest_is_found(evenly: bool):
    at = np.arange(300)
    away = np.clip(1 - at / 100, 0, None) if evenly else np.exp(-at / 30)
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(0, 0.014, 300)
        for sign in (1, -1):
            first = steady_from(sign * 0.1 * away + noise)
            assert 60 <= first <= 150 and away[first] < 0.35


def test_what_is_steady_or_never_is_is_left_whole():
    noise = np.random.default_rng(0).normal(0, 0.014, 300)
    assert sum(steady_from(values) > 0 for values in DRAWN) <= 3
    assert steady_from(noise + np.linspace(0, 0.3, 300)) == 0, "it moves to the end"
    assert steady_from(noise + 0.05 * (np.arange(300) // 40 % 2)) == 0, "it switches to and fro"
    for share in (0.1, 0.3, 0.5):
        steps = (
            0.06 * (np.arange(300) < share * 300) + np.random.default_rng(seed).normal(0, 0.014, 300)
            for seed in range(50)
        )
        assert sum(steady_from(values) > 0 for values in steps) <= 5, "one speed and then another"
    assert steady_from(noise + 5.0 * (np.arange(300) == 0)) == 0, "one slow call"
    assert steady_from(np.concatenate((np.linspace(1, 0, 20), np.zeros(19)))) == 0, "too few to tell"


def test_the_mean_ratio_is_of_the_pairs_that_both_have():
    assert mean_ratio([4.0, 1.0, 9.0], [1.0, 1.0]) == pytest.approx(2.0)
    assert mean_ratio([2.0] * 6, [1.0] * 6) == pytest.approx(2.0)


def test_a_tick_is_the_least_difference_of_times_that_come_twice():
    drawn = np.exp(np.random.default_rng(0).normal(0, 0.02, (2, 60))) * 1000
    assert find_tick(*drawn) == 0
    assert find_tick(*np.round(drawn / 20) * 20) == pytest.approx(20)
    assert find_tick(np.full(9, 7.0), np.full(9, 7.0)) == 7
    # Either side's one value: they differ by what was done, not by a step.
    assert find_tick(np.full(9, 7.0), np.full(9, 3.0)) == 0
    assert math.isclose(find_tick(np.full(9, 7.0), np.tile([3.0, 3.5], 5)), 0.5)
    # What a clock of 41.67 ns shows in whole nanoseconds.
    shown = np.floor(np.round(drawn[0] / 1000 / 0.04167) * 41.67) / 1000
    assert find_tick(shown, shown) == pytest.approx(0.0415, abs=0.002)
