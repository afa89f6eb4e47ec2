import math

import numpy as np
import pytest

from tracekit.statistics import interval as estimator
from tracekit.statistics.speeds import find_drift, find_two_speeds


def autoregressive(lag_one: float, n: int = 400, seed: int = 0) -> estimator.Values:
    random, level, values = np.random.default_rng(seed), 0.0, []
    for _ in range(n):
        level = lag_one * level + random.normal()
        values.append(level)
    return np.array(values)


def test_the_more_values_depend_on_each_other_the_longer_they_are_kept_together():
    lengths = [
        np.mean([estimator.block_length(autoregressive(lag_one, seed=seed)) for seed in range(10)])
        for lag_one in (0, 0.5, 0.9)
    ]
    assert lengths[0] < 3.5 and lengths[0] < lengths[1] < lengths[2] and lengths[2] > 15
    values = autoregressive(0.9)
    assert estimator.block_length(np.random.default_rng(1).permutation(values)) < estimator.block_length(values) / 3
    # Outliers do not hide it.
    values[::50] = 1e6
    assert estimator.block_length(values) > 10
    # A block is no longer than a quarter, and equal or few values are independent.
    assert estimator.block_length(np.arange(40.0)) <= 10
    assert estimator.block_length(np.ones(50)) == estimator.block_length(np.arange(7.0)) == 1


def test_a_slow_wave_under_much_noise_is_seen_though_neighbours_hardly_agree():
    """No autoregression of the first order: Politis and White's estimate finds it."""
    wave = np.sin(np.linspace(0, 10 * np.pi, 400)) + np.random.default_rng(0).normal(0, 1, 400)
    assert estimator.block_length(wave) >= 20


def test_short_series_are_corrected_for_the_dependence_they_hide():
    """Without Kendall's correction these are 7, 8, 9 and 7; by Politis and White's estimate alone 3, 6, 7 and 3."""
    series = [autoregressive(0.8, n, seed) for n, seed in ((40, 2), (40, 5), (60, 0), (60, 1))]
    assert [estimator.block_length(each) for each in series] == [9, 10, 11, 8]


def test_the_interval_of_independent_values_holds_the_true_median_as_often_as_it_says():
    drawn = (np.random.default_rng(seed).normal(5, 1, 25) for seed in range(300))
    found = [estimator.median_interval(values, resamples=400) for values in drawn]
    assert 0.92 <= np.mean([each.low <= 5 <= each.high for each in found]) <= 0.99
    # Four times as many values halve it.
    values = np.random.default_rng(3).normal(size=1600)
    assert estimator.median_interval(values).half_width == pytest.approx(
        estimator.median_interval(values[:400]).half_width / 2, rel=0.3
    )


def test_few_blocks_stretch_the_interval_as_students_t_does():
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    found, plain = estimator.median_interval(values), np.percentile(estimator.resampled_medians(values, 1), (2.5, 97.5))
    stretch = math.sqrt(5 / 4) * 2.776 / 1.96
    assert found.middle - found.low == pytest.approx(stretch * (3 - plain[0]), rel=1e-3)


def in_full(values: estimator.Values, block: int, resamples: int) -> estimator.Values:
    """The same by the definition: blocks of the values themselves, the last going on at the first."""
    n, random = len(values), np.random.default_rng(estimator.SEED)
    blocks, found = math.ceil(n / block), []
    while len(found) < resamples:
        some = max(1, min(resamples - len(found), estimator.AT_ONCE // n))
        at = (random.integers(0, n, (some, blocks, 1)) + np.arange(block)) % n
        found += np.median(values[at.reshape(some, -1)[:, :n]], axis=1).tolist()
    return np.array(found)


@pytest.mark.parametrize("block", [1, 2, 3])
@pytest.mark.parametrize(
    "values",
    [[4.0, 2.0, 9.0], [4.0, 2.0, 9.0, 1.0, 7.5, 3.0], [-math.inf, 3.0, 8.0, 8.0, 1.0, 2.0, 2.0]],
)
def test_ranks_give_the_medians_of_the_values_themselves(values: list[float], block: int):
    of = np.array(values)
    assert estimator.resampled_medians(of, block, 300).tolist() == in_full(of, block, 300).tolist()


def test_one_value_is_its_own_median_and_of_very_many_ranks_are_still_told_apart():
    assert estimator.resampled_medians(np.array([3.0]), 1, 4).tolist() == [3.0] * 4
    many = np.random.default_rng(1).normal(size=2**16 + 2)
    assert estimator.resampled_medians(many, 40, 3).tolist() == in_full(many, 40, 3).tolist()


@pytest.mark.parametrize(
    ("freedom", "expected"), [(1, 12.706), (4, 2.776), (15, 2.131), (30, 2.042), (200, 1.972), (0.5, math.inf)]
)
def test_t_quantiles_are_those_of_the_tables(freedom: int, expected: float):
    assert estimator.t_quantile(freedom) == pytest.approx(expected, abs=1e-3)


def within(*middles: float, half: float = 0.001) -> tuple[estimator.Interval, ...]:
    return tuple(estimator.Interval(each, each - half, each + half, 1) for each in middles)


def test_processes_are_averaged_and_spread_as_students_t_says():
    found = estimator.interval_of_processes(within(0.01, 0.02, 0.03))
    assert found.middle == pytest.approx(0.02)
    assert found.half_width == pytest.approx(4.303 * 0.01 / math.sqrt(3), rel=1e-3)
    # Processes that agree by chance are no surer than one of them.
    assert estimator.interval_of_processes(within(0.02, 0.02, 0.02)).half_width == pytest.approx(0.001)


def test_two_single_medians_differ_by_both_their_uncertainties():
    a, b = estimator.Interval(1.0, 0.97, 1.04, 2), estimator.Interval(0.8, 0.76, 0.83, 3)
    found = estimator.interval_of_difference((a,), (b,))
    ends = 0.2 - math.hypot(0.03, 0.03), 0.2 + math.hypot(0.04, 0.04)
    assert (found.middle, found.low, found.high, found.block) == pytest.approx((0.2, *ends, 3))


def test_two_sets_of_processes_differ_as_welch_says():
    found = estimator.interval_of_difference(within(0.02, 0.04, 0.06), within(0.0, 0.01, 0.02, 0.03, 0.04))
    # Textbook: variances 4e-4 / 3 and 2.5e-4 / 5; error 0.01354, 3.58 degrees of freedom, of which 3 count.
    assert found.middle == pytest.approx(0.02)
    assert found.half_width == pytest.approx(3.182 * 0.01354, rel=1e-3)


def test_a_single_process_is_taken_to_differ_as_the_others_do():
    several, one = within(0.02, 0.04, 0.06), within(0.0)
    for found in (estimator.interval_of_difference(several, one), estimator.interval_of_difference(one, several)):
        assert abs(found.middle) == pytest.approx(0.04)
        assert found.half_width == pytest.approx(4.303 * 0.02 * math.sqrt(1 + 1 / 3), rel=1e-3)


@pytest.mark.parametrize(("base", "new"), [(3, 3), (5, 5), (5, 1), (2, 5)])
def test_the_interval_between_runs_holds_the_truth_as_often_as_it_says(base: int, new: int):
    random, held = np.random.default_rng(base * 10 + new), 0
    for _ in range(1000):
        a, b = (within(*random.normal(0, 0.01, number), half=0.0) for number in (base, new))
        found = estimator.interval_of_difference(a, b)
        held += found.low <= 0 <= found.high
    assert 0.93 <= held / 1000 <= 0.995


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
    assert found.slow_us / found.fast_us == pytest.approx(1.08, abs=0.01)
    assert found.slow_share == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize(("shape", "of"), [("normal", (0, 0.03)), ("uniform", (0, 0.2)), ("gamma", (2, 0.03))])
def test_one_speed_with_noise_is_seldom_taken_for_two(shape: str, of: tuple[float, float]):
    draw = getattr(np.random.default_rng(0), shape)
    assert sum(find_two_speeds(1000 * np.exp(draw(*of, 60))) is not None for _ in range(200)) <= 4


def test_a_few_outliers_and_less_than_two_percent_are_no_second_speed():
    outliers, near = normal(2), normal(1, spread=0.001)
    outliers[:4] *= 1.5
    near[::3] *= 1.015
    assert find_two_speeds(outliers) is None and find_two_speeds(near) is None
    # Fourteen calls tell neither speeds nor a drift.
    assert find_two_speeds(np.repeat([1.0, 2.0], 7)) is find_drift(np.linspace(1, 2, 14)) is None


def test_speeds_last_if_they_are_kept_for_several_calls():
    kept, changing = normal(3), normal(3)
    kept[20:40] *= 1.08
    changing[np.random.default_rng(0).permutation(60)[:20]] *= 1.08
    found = find_two_speeds(kept), find_two_speeds(changing)
    assert [each and each.lasting for each in found] == [True, False]


def test_speeds_of_independent_calls_are_seldom_said_to_last():
    found = []
    for seed in range(200):
        walls = normal(seed, 20)
        walls[np.random.default_rng(seed).permutation(20)[:7]] *= 1.1
        found.append(find_two_speeds(walls))
    assert sum(each is not None and each.lasting for each in found) <= 10
