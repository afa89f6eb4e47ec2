from __future__ import annotations

import numpy as np
import pytest

from tracekit.statistics.speeds import find_drift, find_two_speeds


def normal(seed: int, n: int = 60, spread: float = 0.01) -> np.ndarray:
    return 1000 * np.exp(np.random.default_rng(seed).normal(0, spread, n))


def test_a_form_that_becomes_slower_or_faster_drifts_by_as_much():
    assert find_drift(normal(0) * np.linspace(1.0, 1.3, 60)) == pytest.approx(0.2, abs=0.03)
    assert find_drift(normal(0) * np.linspace(1.3, 1.0, 60)) == pytest.approx(-0.17, abs=0.03)


def test_noise_is_seldom_taken_for_drift():
    assert sum(find_drift(normal(seed, spread=0.05)) is not None for seed in range(200)) <= 4


def test_two_speeds_are_found_with_their_shares():
    walls = normal(1)
    walls[::3] *= 1.08
    found = find_two_speeds(walls)
    assert found is not None
    assert found.slow_us / found.fast_us == pytest.approx(1.08, abs=0.01)
    assert found.slow_share == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("shape", ["normal", "uniform", "skewed"])
def test_one_speed_with_noise_is_seldom_taken_for_two(shape: str):
    random = np.random.default_rng(0)
    draw = {
        "normal": lambda: random.normal(0, 0.03, 60),
        "uniform": lambda: random.uniform(0, 0.2, 60),
        "skewed": lambda: random.gamma(2, 0.03, 60),
    }[shape]
    assert sum(find_two_speeds(1000 * np.exp(draw())) is not None for _ in range(200)) <= 4


def test_a_few_outliers_and_less_than_two_percent_are_no_second_speed():
    outliers, near = normal(2), normal(1, spread=0.001)
    outliers[:4] *= 1.5
    near[::3] *= 1.015
    assert find_two_speeds(outliers) is None and find_two_speeds(near) is None


def test_few_calls_tell_neither():
    assert find_drift(np.linspace(1, 2, 14)) is None
    assert find_two_speeds(np.repeat([1.0, 2.0], 7)) is None


def test_speeds_last_if_they_are_kept_for_several_calls():
    kept, changing = normal(3), normal(3)
    kept[20:40] *= 1.08
    changing[np.random.default_rng(0).permutation(60)[:20]] *= 1.08
    found = find_two_speeds(kept), find_two_speeds(changing)
    assert [each and each.lasting for each in found] == [True, False]


def test_speeds_of_independent_calls_are_seldom_said_to_last():
    lasting = 0
    for seed in range(200):
        walls = normal(seed, 20)
        walls[np.random.default_rng(seed).permutation(20)[:7]] *= 1.1
        found = find_two_speeds(walls)
        lasting += found is not None and found.lasting
    assert lasting <= 10
