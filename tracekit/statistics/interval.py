"""How sure is a median of values that were measured one after the other?

A block bootstrap: neighbouring calls are alike, so they are resampled together, in blocks as long as they depend on
each other.
"""

import math
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Values = NDArray[np.float64]
Number = TypeVar("Number", bound=np.number[Any])

RESAMPLES = 2000
SEED = 0
#: Of fewer values no interval is made.
FEWEST = 5
#: With fewer values no dependence can be told from chance.
FEWEST_FOR_DEPENDENCE = 8
#: More autocorrelation is not told from a drift.
MOST_AUTOCORRELATION = 0.95
#: Numbers that are resampled at a time, so that memory stays small.
AT_ONCE = 2_000_000
#: 97.5th percentiles: of Student's t for 1 to 10 degrees of freedom, as in every table, and of the normal distribution.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
NORMAL = 1.959964
#: From the median absolute deviation to the standard deviation of a normal distribution.
NORMAL_MAD = 1.4826


class Interval(Struct, frozen=True):
    """A median or a mean with its 95 % interval, and how many neighbouring values were kept together to find it.
    `stretches` is how many independent ones the values amount to; infinite where nobody asked."""

    middle: float
    low: float
    high: float
    block: int
    stretches: float = math.inf

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def block_length(values: Values) -> int:
    """The number of neighbouring values to keep together when their median is resampled; 1 for independent ones.

    A median depends on each value only by the side of it on which the value lies, so it is the signs whose dependence
    counts. The larger of two estimates, because short series hide dependence: Politis and White's, which needs no
    model, and the same formula for the first-order autoregression whose signs agree with their neighbours as often.
    """
    n = len(values)
    signs = np.sign(values - np.median(values))
    if n < FEWEST_FOR_DEPENDENCE or not signs.any():
        return 1
    # Signs agree by the arcsine law; a series of n shows (1 + 3 lag_one) / n too little (Kendall, 1954).
    shown = math.sin(math.pi / 2 * float((signs[1:] * signs[:-1]).sum() / (signs**2).sum()))
    lag_one = min(shown + (1 + 3 * shown) / n, MOST_AUTOCORRELATION)
    autoregressive = math.cbrt(6 * (lag_one / (1 - lag_one**2)) ** 2 * n) if lag_one > 0 else 1.0
    longest = math.ceil(min(3 * math.sqrt(n), n / 4))
    return max(1, min(longest, max(math.ceil(_politis_white(signs)), round(autoregressive))))


def _politis_white(signs: Values) -> float:
    """Politis and White (2004) with the correction of Patton, Politis and White (2009), for circular blocks."""
    n = len(signs)
    # So many lags in a row without correlation end the search for the last one that has some.
    run = max(5, math.ceil(math.log10(n)))
    lags = min(n - 1, 2 * (math.ceil(math.sqrt(n)) + run)) + 1
    centred = signs - signs.mean()
    covariances = np.array([float((centred[: n - lag] * centred[lag:]).sum()) for lag in range(lags)]) / n
    beyond_chance = np.abs(covariances[1:] / covariances[0]) > 2 * math.sqrt(math.log10(n) / n)
    starts = range(len(beyond_chance))
    reach = next((lag for lag in starts if not beyond_chance[lag : lag + run].any()), len(beyond_chance))

    near = np.arange(1, min(2 * reach, lags - 1) + 1)
    weights = np.minimum(1.0, 2 * (1 - near / max(2 * reach, 1)))
    g = 2 * float((weights * near * covariances[near]).sum())
    variance = covariances[0] + 2 * float((weights * covariances[near]).sum())
    return math.cbrt(1.5 * g**2 / variance**2 * n) if variance > 0 and g > 0 else 1.0


def median_interval(values: Values, resamples: int = RESAMPLES) -> Interval:
    """The 95 % interval of the values' median, by a circular block bootstrap; the same values give the same interval.

    Percentile intervals of few values are too short. So they are stretched about the median as Student's t is wider
    than the normal distribution, with one degree of freedom less than there are blocks (after Hesterberg, 2015).
    """
    block = block_length(values)
    return percentile_interval(
        float(np.median(values)), resampled_medians(values, block, resamples), len(values), block
    )


def percentile_interval(middle: float, resampled: Values, n: int, block: int) -> Interval:
    """Of a figure of `n` values, by the same figure of each of their resampled series."""
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
    for picked in resampled_series(ranks, block, resamples):
        picked.partition(middle, axis=1)
        medians.append(ordered[picked[:, middle]].mean(axis=1))
    return np.concatenate(medians)


def resampled_series(values: NDArray[Number], block: int, resamples: int) -> Iterator[NDArray[Number]]:
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
    """The 95 % interval of a - b, of processes that were started separately: one interval for each process of either.

    One of each: both intervals together (MOVER, Zou and Donner, 2008), which know nothing of other processes. Several
    of each: Welch's t over the processes' medians (1947). Where one has a single process, the spread of the other's is
    taken for its own. Never shorter than the shortest of single processes together.
    """
    one, other = (min(each, key=lambda within: within.half_width) for each in (a, b))
    middle, block = one.middle - other.middle, max(one.block, other.block)
    below = math.hypot(one.middle - one.low, other.high - other.middle)
    above = math.hypot(one.high - one.middle, other.middle - other.low)
    within = Interval(middle, middle - below, middle + above, block)
    if len(a) == len(b) == 1:
        return within

    of_a, of_b = (np.array([each.middle for each in side]) for side in (a, b))
    single = min(len(a), len(b)) == 1
    several = of_a if len(a) > 1 else of_b
    parts = [(several if single else each).var(ddof=1) / len(each) for each in (of_a, of_b)]
    error = math.sqrt(sum(parts))
    if single or not error:
        freedom = float(len(several) - 1)
    else:
        freedom = error**4 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, (of_a, of_b), strict=True))
    half = max(t_quantile(freedom) * error, within.half_width)
    middle = float(of_a.mean() - of_b.mean())
    return Interval(middle, middle - half, middle + half, block)


def odd_even_noise(values: Values) -> float:
    """How far a series seems to differ from itself by its odd and even values: the 95th percentile of |ratio - 1| of
    their resampled medians."""
    pairs = len(values) // 2
    odd, even = values[: 2 * pairs : 2], values[1 : 2 * pairs : 2]
    random, ratios = np.random.default_rng(SEED), []
    at_once = max(1, AT_ONCE // pairs)
    for begin in range(0, RESAMPLES, at_once):
        picks = random.integers(0, pairs, (min(at_once, RESAMPLES - begin), pairs))
        ratios.append(np.median(odd[picks], axis=1) / np.median(even[picks], axis=1))
    return float(np.percentile(np.abs(np.concatenate(ratios) - 1), 95))
