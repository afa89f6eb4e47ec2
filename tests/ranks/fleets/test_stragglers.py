import numpy as np
import pytest

from tracekit.ranks.fleets.stragglers import excess_of
from tracekit.statistics.chance import holm


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
