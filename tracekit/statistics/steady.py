"""From where on is a series steady, and how sure is its mean when neighbours are alike?

Batch means (Conway, 1963; Flegal and Jones, 2010): a series is cut into parts, and their means are values that depend
on each other the less the longer the parts are. Nobody knows how long is long enough, so where neighbours seem to be
alike several lengths are asked, and the widest answer counts. What that is worth is simulated in docs/timing.md.
"""

import math
from collections.abc import Sequence

import numpy as np

from tracekit.statistics.interval import FEWEST, NORMAL_MAD, Interval, Values, t_quantile

#: Into how many parts a series is cut: of few parts each is long, of many their spread is well known.
PARTS = (3, 4, 5, 7, 10, 14, 20, 28, 40, 56, 80)
#: So many parts or more, and each value as a part, are asked of values that look independent.
ENOUGH_PARTS = 20
#: Of fewer independent stretches nothing is said to be faster: chosen.
FEWEST_STRETCHES = 10
#: Values so many robust standard deviations from the median are outliers, unless they are more than such a share.
OUTLIER, MOST_OUTLIERS = 4.0, 0.25
#: A series of so many values is looked at for a beginning that is not steady, in so many parts, of which the later half
#: says what is steady. A part is beyond it by so many of that half's standard deviations.
FEWEST_TO_WARM, WARMING_PARTS, BEYOND = 40, 20, 4.0
#: By so many standard deviations a beginning comes nearer, from its first part to its last, and by no more than so many
#: it moves away from one part to the next.
NEARER, AWAY = 3.0, 2.0
#: The later half's own two halves differ by fewer standard deviations where it is steady: 1.65 on a straight line.
STILL_MOVING = 1.3
#: Microseconds: a tick of 41.67 ns is shown as 41 ns or 42.
NANOSECONDS = 0.0015
#: Logarithms that differ by less differ by rounding alone.
ROUNDING = 1e-12
#: 90th and 99th percentiles of the normal distribution: parts that differ more are looked at, and counted.
UNUSUAL, RARE = 1.282, 2.326


def steady_from(values: Values) -> int:
    """How many values at the beginning are left out because they are still on their way to where the others are."""
    if len(values) < FEWEST_TO_WARM:
        return 0
    means = _means(values, WARMING_PARTS)
    half = WARMING_PARTS // 2
    deviation = float(means[half:].std(ddof=1))
    if abs(means[half : half + half // 2].mean() - means[half + half // 2 :].mean()) > STILL_MOVING * deviation:
        return 0
    away = means[:half] - means[half:].mean()
    away *= np.sign(away[0])
    warming = int(np.argmin(np.append(away > BEYOND * deviation, False)))
    # A speed that was kept for a while and then another is no warming up.
    if warming < 2 or away[0] - away[warming - 1] < NEARER * deviation:
        return 0
    if np.any(np.diff(away[:warming]) > AWAY * deviation):
        return 0
    return math.ceil(min(warming + 1, half) * len(values) / WARMING_PARTS)


def mean_interval(values: Values) -> Interval:
    """The mean without outliers, its 95 % interval, and how many independent stretches the values amount to: as many as
    they are, divided by how much more the means of parts differ than those of independent values would. Five values at
    least."""
    kept = without_outliers(values)
    n, middle, variance = len(kept), float(kept.mean()), float(kept.var(ddof=1))
    if variance < ROUNDING**2:
        return Interval(middle, middle, middle, 1, len(values))
    spreads = {parts: float(_means(kept, parts).var(ddof=1)) for parts in (*(each for each in PARTS if each < n), n)}
    larger = {parts: spread * n / parts / variance for parts, spread in spreads.items()}
    inflation = max([1.0, *(each for parts, each in larger.items() if each > _seldom_exceeded(parts - 1, RARE))])
    # Of values that look independent long parts say nothing that many short ones do not.
    independent = all(each <= _seldom_exceeded(parts - 1, UNUSUAL) for parts, each in larger.items())
    asked = [parts for parts in spreads if parts >= ENOUGH_PARTS or parts == n] if independent else [*spreads]
    reaches = {parts: t_quantile(parts - 1) * math.sqrt(spreads[parts] / parts) for parts in asked}
    widest = max(reaches, key=reaches.__getitem__)
    half = reaches[widest]
    return Interval(middle, middle - half, middle + half, math.ceil(n / widest), len(values) / inflation)


def mean_ratio(a: Sequence[float] | Values, b: Sequence[float] | Values) -> float:
    """The geometric mean of A's value over B's, of the pairs that both have, of however few; without outliers."""
    pairs = min(len(a), len(b))
    ratios = np.log(np.asarray(a[:pairs]) / np.asarray(b[:pairs]))
    return math.exp(mean_interval(ratios).middle if pairs >= FEWEST else float(ratios.mean()))


def find_tick(a: Values, b: Values) -> float:
    """The step in which a clock shows both sides' times, in microseconds, at most: the least difference between times
    of one side, where values come twice and more; of times that are all one, that time. 0 where more than half are
    values of their own, and where nothing is known of it because each side's times are all one."""
    of_a, of_b, of_both = _apart(a), _apart(b), _apart(np.concatenate((a, b)))
    if 2 * len(of_both) > len(a) + len(b):
        return 0.0
    if len(of_both) == 1:
        return float(of_both[0])
    return float(min((*np.diff(of_a), *np.diff(of_b)), default=0.0))


def _apart(times: Values) -> Values:
    """The different values among them, those nearer than whole nanoseconds show taken for one."""
    values = np.unique(times)
    return values[np.diff(values, prepend=-np.inf) > NANOSECONDS]


def without_outliers(values: Values) -> Values:
    """Those that a mean is made of: all of them where more than a quarter lie far out."""
    median = np.median(values)
    distances = np.abs(values - median)
    deviation = NORMAL_MAD * float(np.median(distances))
    kept = values[distances <= OUTLIER * deviation]
    few = len(values) - len(kept) <= MOST_OUTLIERS * len(values)
    return kept if deviation and few and len(values) >= FEWEST_STRETCHES else values


def _means(values: Values, parts: int) -> Values:
    return np.array([part.mean() for part in np.array_split(values, parts)])


def _seldom_exceeded(freedom: int, normal: float) -> float:
    """Chi square over its degrees of freedom, at the normal distribution's percentile (Wilson and Hilferty, 1931)."""
    ninths = 2 / (9 * freedom)
    return float((1 - ninths + normal * math.sqrt(ninths)) ** 3)
