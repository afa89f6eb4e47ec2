import math

import numpy as np
import pytest

from tracekit.ranks.fleets.stragglers import _by_chance, excess_of, holm


@pytest.mark.parametrize(
    ("t", "freedom", "chance"),
    # Tails of Student's t by its closed forms for 2 and 4 degrees of freedom, and by the normal's.
    [
        (4.0, 2.0, 0.5 - 2.0 / math.sqrt(18)),
        (5.0, 4.0, 0.5 - 0.5 * (5 / math.sqrt(29)) * (1.5 - 0.5 * 25 / 29)),
        (4.26, 1e6, 0.5 * math.erfc(4.26 / math.sqrt(2))),
    ],
)
def test_tails_are_those_of_student_s_t(t: float, freedom: float, chance: float) -> None:
    assert _by_chance(t, freedom) == pytest.approx(chance, rel=0.15)


def test_holm_multiplies_the_smallest_by_all_and_the_next_by_one_less() -> None:
    assert holm([0.01, 0.5, 0.001, 0.02]) == pytest.approx([0.03, 0.5, 0.004, 0.04])


def test_a_clean_job_has_a_false_alarm_in_one_of_a_hundred_at_most() -> None:
    """600 jobs of 128 ranks, whose excesses scatter normally: about 1 % of them, within chance."""
    random = np.random.default_rng(1)
    peers = np.zeros(128, dtype=np.int64)
    false = 0
    for _ in range(600):
        own = random.normal(0, 0.01, 128)
        excess = excess_of(np.repeat(own[:, np.newaxis], 3, axis=1), peers)
        false += min(holm(excess.chance.tolist())) <= 0.01
    assert false <= 14


@pytest.mark.parametrize("steps", [3, 5, 10, 30])
def test_the_95_percent_interval_has_the_true_excess_about_as_often(steps: int) -> None:
    """Ranks that scatter unequally over their steps."""
    random = np.random.default_rng(5)
    held = []
    for _ in range(20):
        true = random.normal(0, 0.005, 128)
        noise = random.normal(0, 0.01, (128, steps)) * random.lognormal(0, 0.5, (128, 1))
        excess = excess_of(true[:, np.newaxis] + noise, np.zeros(128, dtype=np.int64))
        held.append(np.abs(excess.share - (true - np.median(true))) <= excess.half)
    assert np.mean(held) >= 0.925


def test_few_peers_tell_nothing() -> None:
    shares = np.zeros((8, 5))
    shares[0] = 0.5
    assert (excess_of(shares, np.zeros(8, dtype=np.int64)).chance == 1).all()
