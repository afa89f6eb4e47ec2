import numpy as np
import pytest

from tracekit.statistics.interval import median_interval
from tracekit.sweep.reading.calls import mean_time, median_time


@pytest.mark.parametrize(("interval", "middle"), [(median_time, 3.0), (mean_time, 20.0)])
def test_the_interval_of_times_is_above_nothing_and_of_many_that_of_any_values(interval, middle: float):
    few = np.array([1.0, 2.0, 3.0, 4.0, 90.0])
    assert median_interval(few).low < 0
    found = interval(few)
    assert 0 < found.low < found.middle < found.high and found.middle == middle
    times_us = np.random.default_rng(5).normal(1000, 5, 300)
    found, plain = interval(times_us), median_interval(times_us)
    assert found.low == pytest.approx(plain.low, rel=1e-3)
    assert found.high == pytest.approx(plain.high, rel=1e-3)
