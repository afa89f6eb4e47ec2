"""How sure is a median of values that were measured one after the other?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracekit.statistics.blocks import Values, block_length
from tracekit.statistics.student import NORMAL, t_quantile

RESAMPLES = 2000
SEED = 0
#: Of fewer values no interval is made.
FEWEST = 5
#: Numbers that are resampled at a time, so that memory stays small.
AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A median or a mean with its 95 % interval, and how many neighbouring values were kept together to find it."""

    middle: float
    low: float
    high: float
    block: int

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def median_interval(values: Values, resamples: int = RESAMPLES) -> Interval:
    """The 95 % interval of the values' median, by a circular block bootstrap; the same values give the same interval.

    Percentile intervals of few values are too short. So they are stretched about the median as Student's t is wider
    than the normal distribution, with one degree of freedom less than there are blocks (after Hesterberg, 2015).
    """
    block = block_length(values)
    return _percentiles(float(np.median(values)), resampled_medians(values, block, resamples), len(values), block)


def mean_interval(values: Values, resamples: int = RESAMPLES) -> Interval:
    """The same of the values' mean, which hears of outliers what a median does not."""
    block = block_length(values)
    means = np.concatenate([picked.mean(axis=1) for picked in _resampled(values, block, resamples)])
    return _percentiles(float(values.mean()), means, len(values), block)


def _percentiles(middle: float, resampled: Values, n: int, block: int) -> Interval:
    low, high = np.percentile(resampled, (2.5, 97.5))
    stretch = _stretch(n / block)
    return Interval(middle, middle - stretch * (middle - low), middle + stretch * (high - middle), block)


def resampled_medians(values: Values, block: int, resamples: int = RESAMPLES) -> Values:
    """The medians of so many series, each put together of blocks of the values; the last goes on at the first."""
    return np.concatenate([np.median(picked, axis=1) for picked in _resampled(values, block, resamples)])


def _resampled(values: Values, block: int, resamples: int) -> Iterator[Values]:
    """The series, some at a time, a row each."""
    n, random = len(values), np.random.default_rng(SEED)
    blocks, steps = math.ceil(n / block), np.arange(block)
    missing = resamples
    while missing > 0:
        starts = random.integers(0, n, (max(1, min(missing, AT_ONCE // n)), blocks, 1))
        missing -= len(starts)
        yield values[((starts + steps) % n).reshape(len(starts), -1)[:, :n]]


def _stretch(blocks: float) -> float:
    return math.sqrt(blocks / (blocks - 1)) * t_quantile(blocks - 1) / NORMAL


def interval_of_processes(within: tuple[Interval, ...]) -> Interval:
    """The 95 % interval of what processes have in common, from each one's median and interval; two of them at least.

    Student's t over the processes' medians: what changes from process to process is not seen by any one of them,
    however many calls it makes (Kalibera and Jones, 2013). Never shorter than a single process's shortest.
    """
    middles = np.array([each.middle for each in within])
    error = float(middles.std(ddof=1)) / math.sqrt(len(middles))
    half = max(t_quantile(len(middles) - 1) * error, min(each.half_width for each in within))
    middle = float(middles.mean())
    return Interval(middle, middle - half, middle + half, max(each.block for each in within))
