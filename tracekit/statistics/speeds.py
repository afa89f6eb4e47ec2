"""Do the calls of one form have one speed, and does it stay?"""

import math

import numpy as np
from msgspec import Struct

from tracekit.statistics.interval import NORMAL_MAD, Values

#: Of fewer calls neither is asked.
FEWEST = 15
#: Levels that differ by less than this share are taken for one.
LEAST_DIFFERENCE = 0.02
#: Each of two speeds has this share of the calls at least; less are outliers.
LEAST_SHARE = 0.1
#: Ashman, Bird and Zepf (1994) call two groups apart from D = 2 on; halves of one even spread have 3.5 already.
LEAST_SEPARATION = 4.5
#: A drift is larger than so many standard errors of the two levels' difference.
CLEARLY_MOVED = 4.0
#: Speeds last if the calls change between them less than this part as often as independent calls would.
SELDOM = 0.5


class TwoSpeeds(Struct, frozen=True):
    """Two speeds of one form: the medians of the fast and of the slow calls, and the share of the slow ones, 0 to 1.
    `lasting` is whether each was kept for several calls; those that change from call to call average out."""

    fast_us: float
    slow_us: float
    slow_share: float
    lasting: bool


def find_drift(wall_us: Values) -> float | None:
    """By which share the last third of the calls took longer than the first (0.05: 5 %); None where not clearly."""
    if len(wall_us) < FEWEST:
        return None
    third = len(wall_us) // 3
    first, last = np.log(wall_us[:third]), np.log(wall_us[-third:])
    moved = float(np.median(last) - np.median(first))
    error = 1.2533 * math.hypot(_spread(first), _spread(last)) / math.sqrt(third)
    if abs(moved) < max(math.log1p(LEAST_DIFFERENCE), CLEARLY_MOVED * error):
        return None
    return math.expm1(moved)


def find_two_speeds(wall_us: Values) -> TwoSpeeds | None:
    """The two speeds at which the calls ran; None where there is one, or many.

    The calls are cut in two where that leaves the least spread within the parts; they are two groups if Ashman's D of
    the parts says so.
    """
    if len(wall_us) < FEWEST:
        return None
    ordered = logs = np.sort(np.log(wall_us))
    least = math.ceil(LEAST_SHARE * len(ordered))
    # As long as the best cut parts off too few to be a speed, these are left out, up to a quarter of all.
    while min(cut := _best_cut(logs), len(logs) - cut) < least and len(logs) > 0.75 * len(ordered):
        logs = logs[cut:] if cut < len(logs) - cut else logs[:cut]
    fast, slow = logs[:cut], logs[cut:]
    difference = float(np.median(slow) - np.median(fast))
    spread = math.hypot(_spread(fast), _spread(slow))
    if min(len(fast), len(slow)) < LEAST_SHARE * len(wall_us) or difference < math.log1p(LEAST_DIFFERENCE):
        return None
    if math.sqrt(2) * difference < LEAST_SEPARATION * spread:
        return None
    fast_us, slow_us = math.exp(float(np.median(fast))), math.exp(float(np.median(slow)))
    # Independent calls are of another speed than the one before in 2 p (1 - p) of all cases.
    is_slow = wall_us > math.sqrt(fast_us * slow_us)
    share, changes = float(is_slow.mean()), float((is_slow[1:] != is_slow[:-1]).mean())
    return TwoSpeeds(fast_us, slow_us, len(slow) / len(logs), changes < SELDOM * 2 * share * (1 - share))


def _best_cut(ordered: Values) -> int:
    """How many of the values are in the lower part when each part is as much alike as can be."""
    n = len(ordered)
    lower = np.arange(1, n)
    sums = np.cumsum(ordered)[:-1]
    between = lower * (n - lower) * (sums / lower - (ordered.sum() - sums) / (n - lower)) ** 2
    return int(np.argmax(between)) + 1


def _spread(values: Values) -> float:
    return NORMAL_MAD * float(np.median(np.abs(values - np.median(values))))
