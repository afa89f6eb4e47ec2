from __future__ import annotations

import numpy as np

from tracekit.statistics.interval import block_length


def remembering(memory: float, n: int = 400, seed: int = 0) -> np.ndarray:
    random, level = np.random.default_rng(seed), 0.0
    values = []
    for _ in range(n):
        level = memory * level + random.normal()
        values.append(level)
    return np.array(values)


def test_independent_values_are_resampled_nearly_one_by_one():
    assert np.mean([block_length(remembering(0.0, seed=seed)) for seed in range(20)]) < 3.5


def test_values_that_remember_are_kept_together_the_longer_the_more_they_remember():
    lengths = [
        np.mean([block_length(remembering(memory, seed=seed)) for seed in range(10)]) for memory in (0, 0.5, 0.9)
    ]
    assert lengths[0] < lengths[1] < lengths[2]
    assert lengths[2] > 15


def test_a_block_is_never_longer_than_a_quarter_of_the_series():
    assert block_length(np.arange(40.0)) <= 10


def test_outliers_do_not_hide_the_dependence():
    values = remembering(0.9)
    values[::50] = 1e6
    assert block_length(values) > 10


def test_equal_values_and_few_values_are_independent():
    assert block_length(np.ones(50)) == 1
    assert block_length(np.arange(7.0)) == 1


def test_the_order_of_values_is_what_makes_them_dependent():
    values = remembering(0.9)
    assert block_length(np.random.default_rng(1).permutation(values)) < block_length(values) / 3


def test_a_slow_wave_under_much_noise_is_seen_though_neighbours_hardly_agree():
    """No autoregression of the first order: Politis and White's estimate finds it."""
    wave = np.sin(np.linspace(0, 10 * np.pi, 400)) + np.random.default_rng(0).normal(0, 1, 400)
    assert block_length(wave) >= 20


def test_short_series_are_corrected_for_the_dependence_they_hide():
    """Without Kendall's correction these are 7, 8, 9 and 7; by Politis and White's estimate alone 3, 6, 7 and 3."""
    series = [remembering(0.8, n, seed) for n, seed in ((40, 2), (40, 5), (60, 0), (60, 1))]
    assert [block_length(each) for each in series] == [9, 10, 11, 8]
