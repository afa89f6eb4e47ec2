"""How sure is a median of values that were measured one after the other?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tracekit.statistics.blocks import Values, block_length

Number = TypeVar("Number", bound=np.number[Any])

RESAMPLES = 2000
SEED = 0
#: Of fewer values no interval is made.
FEWEST = 5
#: Numbers that are resampled at a time, so that memory stays small.
AT_ONCE = 2_000_000
#: 97.5th percentiles: of Student's t for 1 to 10 degrees of freedom, as in every table, and of the normal distribution.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
NORMAL = 1.959964


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


def median_time(times_us: Values, resamples: int = RESAMPLES) -> Interval:
    """The same of times, which are above 0, and so are both ends: the stretching is on logarithms. Percentiles may be
    taken on any scale that keeps the order (Efron and Tibshirani, 1993, chapter 13)."""
    block = block_length(times_us)
    return _above_zero(float(np.median(times_us)), resampled_medians(times_us, block, resamples), len(times_us), block)


def mean_time(times_us: Values, resamples: int = RESAMPLES) -> Interval:
    """The same of the times' mean, which hears of outliers what a median does not."""
    block = block_length(times_us)
    means = np.concatenate([picked.mean(axis=1) for picked in _resampled(times_us, block, resamples)])
    return _above_zero(float(times_us.mean()), means, len(times_us), block)


def _above_zero(middle: float, resampled: Values, n: int, block: int) -> Interval:
    found = _percentiles(math.log(middle), np.log(resampled), n, block)
    # Of as many values as one block holds there is no t, and no end.
    with np.errstate(over="ignore"):
        return Interval(middle, float(np.exp(found.low)), float(np.exp(found.high)), block)


def _percentiles(middle: float, resampled: Values, n: int, block: int) -> Interval:
    low, high = np.percentile(resampled, (2.5, 97.5))
    blocks = n / block
    stretch = math.sqrt(blocks / (blocks - 1)) * t_quantile(blocks - 1) / NORMAL
    return Interval(middle, middle - stretch * (middle - low), middle + stretch * (high - middle), block)


def resampled_medians(values: Values, block: int, resamples: int = RESAMPLES) -> Values:
    """The medians of so many series, each put together of blocks of the values; the last goes on at the first."""
    # Small whole numbers are gathered and divided at the middle in half the time that values take.
    order, n = np.argsort(values, kind="stable"), len(values)
    ranks: NDArray[np.unsignedinteger[Any]] = np.empty(
        n, dtype=np.uint16 if n <= np.iinfo(np.uint16).max else np.uint32
    )
    ranks[order] = np.arange(n)
    ordered, middle = values[order], ((n - 1) // 2, n // 2)
    medians = []
    for picked in _resampled(ranks, block, resamples):
        picked.partition(middle, axis=1)
        medians.append(ordered[picked[:, middle]].mean(axis=1))
    return np.concatenate(medians)


def _resampled(values: NDArray[Number], block: int, resamples: int) -> Iterator[NDArray[Number]]:
    """The series, some at a time, a row each."""
    n, random = len(values), np.random.default_rng(SEED)
    blocks, steps, around = math.ceil(n / block), np.arange(block), np.concatenate((values, values[: block - 1]))
    missing = resamples
    while missing > 0:
        starts = random.integers(0, n, (max(1, min(missing, AT_ONCE // n)), blocks, 1))
        missing -= len(starts)
        yield around[(starts + steps).reshape(len(starts), -1)[:, :n]]


def t_quantile(freedom: float) -> float:
    """How many standard errors a 95 % interval reaches to each side. Between whole degrees of freedom the smaller
    counts; above ten by the expansion of Abramowitz and Stegun, 26.7.5, within 0.001. Below one there is none: inf."""
    if freedom < 1:
        return float("inf")
    if freedom < 11:
        return STUDENT[int(freedom) - 1]
    z = NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


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


def interval_of_difference(a: tuple[Interval, ...], b: tuple[Interval, ...]) -> Interval:
    """The 95 % interval of a - b, of processes that were started apart: one interval for each process of either.

    One of each: both intervals together (MOVER, Zou and Donner, 2008), which know nothing of other processes. Several
    of each: Welch's t over the processes' medians. Where one has a single process, the spread of the other's is taken
    for its own. Never shorter than the shortest of single processes together.
    """
    shortest = tuple(min(each, key=lambda one: one.half_width) for each in (a, b))
    within = _of_two(*shortest)
    if len(a) == len(b) == 1:
        return within
    error, freedom = _error(np.array([each.middle for each in a]), np.array([each.middle for each in b]))
    half = max(t_quantile(freedom) * error, within.half_width)
    middle = float(np.mean([each.middle for each in a]) - np.mean([each.middle for each in b]))
    return Interval(middle, middle - half, middle + half, within.block)


def _of_two(a: Interval, b: Interval) -> Interval:
    middle = a.middle - b.middle
    below, above = math.hypot(a.middle - a.low, b.high - b.middle), math.hypot(a.high - a.middle, b.middle - b.low)
    return Interval(middle, middle - below, middle + above, max(a.block, b.block))


def _error(a: Values, b: Values) -> tuple[float, float]:
    """The standard error of the difference of two means, and its degrees of freedom (Welch, 1947)."""
    alone = min(len(a), len(b)) == 1
    several = a if len(a) > 1 else b
    parts = [(several if alone else each).var(ddof=1) / len(each) for each in (a, b)]
    error = math.sqrt(sum(parts))
    if alone or not error:
        return error, float(len(several) - 1)
    return error, error**4 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, (a, b), strict=True))
