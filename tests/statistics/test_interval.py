from __future__ import annotations

import math

import numpy as np
import pytest

from tracekit.statistics.interval import (
    AT_ONCE,
    SEED,
    Interval,
    Values,
    interval_of_difference,
    interval_of_processes,
    mean_time,
    median_interval,
    median_time,
    resampled_medians,
    t_quantile,
)


def test_the_interval_of_independent_values_holds_the_true_median_as_often_as_it_says():
    held = 0
    for seed in range(300):
        found = median_interval(np.random.default_rng(seed).normal(5, 1, 25), resamples=400)
        held += found.low <= 5 <= found.high
    assert 0.92 <= held / 300 <= 0.99


def test_the_interval_of_values_that_remember_is_wider_than_that_of_the_same_values_shuffled():
    random = np.random.default_rng(0)
    values = np.convolve(random.normal(size=420), np.ones(20) / 20, mode="valid")
    apart, together = median_interval(random.permutation(values)), median_interval(values)
    assert together.half_width > 2 * apart.half_width


def test_few_blocks_stretch_the_interval_as_students_t_does():
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    found, plain = median_interval(values), np.percentile(resampled_medians(values, 1), (2.5, 97.5))
    stretch = math.sqrt(5 / 4) * 2.776 / 1.96
    assert found.middle - found.low == pytest.approx(stretch * (3 - plain[0]), rel=1e-3)


def test_four_times_as_many_values_halve_the_interval():
    values = np.random.default_rng(3).normal(size=1600)
    assert median_interval(values).half_width == pytest.approx(median_interval(values[:400]).half_width / 2, rel=0.3)


def test_many_values_are_resampled_a_part_at_a_time():
    assert len(resampled_medians(np.random.default_rng(0).normal(size=5000), 3, 1000)) == 1000


def in_full(values: Values, block: int, resamples: int) -> Values:
    """The same by the definition: blocks of the values themselves, the last going on at the first."""
    n, random = len(values), np.random.default_rng(SEED)
    blocks, found = math.ceil(n / block), []
    while len(found) < resamples:
        some = max(1, min(resamples - len(found), AT_ONCE // n))
        at = (random.integers(0, n, (some, blocks, 1)) + np.arange(block)) % n
        found += np.median(values[at.reshape(some, -1)[:, :n]], axis=1).tolist()
    return np.array(found)


@pytest.mark.parametrize("block", [1, 2, 3])
@pytest.mark.parametrize(
    "values",
    [
        [4.0, 2.0, 9.0],
        [4.0, 2.0, 9.0, 1.0, 7.5, 3.0],
        [5.0, 5.0, 1.0, 5.0, 1.0, 2.0, 2.0],
        [-math.inf, 3.0, 8.0, 8.0, 1.0, 2.0, 2.0],
    ],
)
def test_ranks_give_the_medians_of_the_values_themselves(values: list[float], block: int):
    of = np.array(values)
    assert resampled_medians(of, block, 300).tolist() == in_full(of, block, 300).tolist()


def test_one_value_is_its_own_median_and_of_very_many_ranks_are_still_told_apart():
    assert resampled_medians(np.array([3.0]), 1, 4).tolist() == [3.0] * 4
    many = np.random.default_rng(1).normal(size=2**16 + 2)
    assert resampled_medians(many, 40, 3).tolist() == in_full(many, 40, 3).tolist()


@pytest.mark.parametrize(("freedom", "expected"), [(1, 12.706), (4, 2.776), (15, 2.131), (30, 2.042), (200, 1.972)])
def test_t_quantiles_are_those_of_the_tables(freedom: int, expected: float):
    assert t_quantile(freedom) == pytest.approx(expected, abs=1e-3)


def test_less_than_one_degree_of_freedom_gives_no_bound():
    assert t_quantile(0.5) == math.inf


def within(*middles: float, half: float = 0.001) -> tuple[Interval, ...]:
    return tuple(Interval(each, each - half, each + half, 1) for each in middles)


def test_processes_are_averaged_and_spread_as_students_t_says():
    found = interval_of_processes(within(0.01, 0.02, 0.03))
    assert found.middle == pytest.approx(0.02)
    assert found.half_width == pytest.approx(4.303 * 0.01 / math.sqrt(3), rel=1e-3)


def test_processes_that_agree_by_chance_are_no_surer_than_one_of_them():
    assert interval_of_processes(within(0.02, 0.02, 0.02)).half_width == pytest.approx(0.001)


def test_two_medians_alone_differ_by_both_their_uncertainties():
    a, b = Interval(1.0, 0.97, 1.04, 2), Interval(0.8, 0.76, 0.83, 3)
    found = interval_of_difference((a,), (b,))
    assert found.middle == pytest.approx(0.2)
    assert found.low == pytest.approx(0.2 - math.hypot(0.03, 0.03))
    assert found.high == pytest.approx(0.2 + math.hypot(0.04, 0.04))
    assert found.block == 3


def test_two_sets_of_processes_differ_as_welch_says():
    found = interval_of_difference(within(0.02, 0.04, 0.06), within(0.0, 0.01, 0.02, 0.03, 0.04))
    # Textbook: variances 4e-4 / 3 and 2.5e-4 / 5; error 0.01354, 3.58 degrees of freedom, of which 3 count.
    assert found.middle == pytest.approx(0.02)
    assert found.half_width == pytest.approx(3.182 * 0.01354, rel=1e-3)


def test_a_single_process_is_taken_to_differ_as_the_others_do():
    several, one = within(0.02, 0.04, 0.06), within(0.0)
    for found in (interval_of_difference(several, one), interval_of_difference(one, several)):
        assert abs(found.middle) == pytest.approx(0.04)
        assert found.half_width == pytest.approx(4.303 * 0.02 * math.sqrt(1 + 1 / 3), rel=1e-3)


def test_sets_of_processes_that_agree_by_chance_are_no_surer_than_one_of_each():
    found = interval_of_difference(within(0.1, 0.1, 0.1), within(0.1, 0.1))
    assert found.half_width == pytest.approx(math.hypot(0.001, 0.001))


@pytest.mark.parametrize(("base", "new"), [(3, 3), (5, 5), (5, 1), (2, 5)])
def test_the_interval_between_runs_holds_the_truth_as_often_as_it_says(base: int, new: int):
    random, held = np.random.default_rng(base * 10 + new), 0
    for _ in range(1000):
        a, b = (within(*random.normal(0, 0.01, number), half=0.0) for number in (base, new))
        found = interval_of_difference(a, b)
        held += found.low <= 0 <= found.high
    assert 0.93 <= held / 1000 <= 0.995


@pytest.mark.parametrize("interval", [median_time, mean_time])
def test_no_end_of_the_interval_of_times_is_below_nothing(interval):
    few = np.array([10.0, 11.0, 200.0, 900.0, 500.0])
    assert median_interval(few).low < 0
    found = interval(few)
    assert 0 < found.low < found.middle < found.high


@pytest.mark.parametrize("interval", [median_time, mean_time])
def test_the_interval_of_many_times_is_that_of_any_values(interval):
    times_us = np.random.default_rng(5).normal(1000, 5, 300)
    found, plain = interval(times_us), median_interval(times_us)
    assert found.low == pytest.approx(plain.low, rel=1e-3)
    assert found.high == pytest.approx(plain.high, rel=1e-3)


def test_the_middle_of_an_interval_of_times_is_what_it_is_named_after():
    times_us = np.array([1.0, 2.0, 3.0, 4.0, 90.0])
    assert (median_time(times_us).middle, mean_time(times_us).middle) == (3.0, 20.0)
