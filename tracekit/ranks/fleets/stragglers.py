"""Which ranks, hosts and links are slower than their peers, beyond chance?

Of each rank in each step the time is told that it spends by itself: compute and idle, no communication. So a rank that
waits for a slow one is not slow. It is held against the median of its peers in that step, which takes out what a step
does to all of them: ranks of a step are no independent witnesses, steps are. A rank's excess is the mean of the middle
half of its steps, a host's that of the medians over its ranks, a link's is of the transfers of a process group against
groups of the same collective, bytes and size.

Its 95 % interval is Student's t of its steps, less one. Simulated with excesses that scatter normally, unequally much
or with long tails over the steps (128 ranks, 150 jobs each), it holds the true excess in 99.7 to 99.9 % at 3 steps, 93
to 97 % at 5, 94 to 96 % at 10 and 93 to 95 % at 30; 1.96 for the quantile does so in 84 to 88 % at 5.

An excess is as unusual as it is large beside how excesses scatter: their median absolute deviation (Iglewicz and
Hoaglin, How to Detect and Handle Outliers, 1993), but no less than one rank's scatters over its steps. Few steps tell
that badly, so it is moved halfway to the usual rank's (as variances are in Smyth, Statistical Applications in Genetics
and Molecular Biology 3, 2004). Its probability is that of Student's t, of 0.37 times as many degrees of freedom as
there are peers: so efficient is that deviation (Rousseeuw and Croux, JASA 88, 1993). Holm's procedure (Scandinavian
Journal of Statistics 6, 1979) keeps the probability of even one false alarm in the whole job below FALSE_ALARMS,
whatever depends on what.
"""

import warnings

import numpy as np
from msgspec import Struct

from tracekit.interval import Floats, Ints
from tracekit.statistics.chance import by_chance
from tracekit.statistics.interval import t_quantile

#: Of one job in so many something is told that is chance.
FALSE_ALARMS = 0.01
#: Fewer peers tell no scatter.
LEAST_PEERS = 16
#: Slower by less is not worth a person's time: of own time, and of a link's transfer.
LEAST_EXCESS, LEAST_OF_LINK = 0.03, 0.25
#: Of a normal distribution the deviation is so many times the median absolute one; the mean of the middle half scatters
#: so many times as much as that of all.
OF_DEVIATION, OF_MIDMEAN = 1.4826, 1.09
EFFICIENCY = 0.37
#: Fewer steps tell nothing of a rank.
LEAST_STEPS = 3
#: What measured nothing scatters by no less than this.
LEAST_SCATTER = 1e-4


class Excess(Struct, frozen=True):
    """By how much each of some alike exceeds its peers, as a share, how far its 95 % interval reaches to each side, by
    its own steps, and how unusual it is: `beyond` in deviations, and the probability of that by chance."""

    share: Floats
    half: Floats
    beyond: Floats
    chance: Floats


def usual_of_peers(values: Floats, peers: Ints) -> Floats:
    """For each row the median over its peers, of what is known."""
    found = np.empty_like(values)
    for each in np.unique(peers):
        found[peers == each] = known_median(values[peers == each], axis=0)
    return found


def shares_of_steps(own: Floats, peers: Ints) -> Floats:
    """Of each rank (rows) in each step (columns) its excess over the median of its peers."""
    centre = usual_of_peers(own, peers)
    shares: Floats = own / np.where(centre > 0, centre, np.nan) - 1
    return shares


def excess_of(shares: Floats, peers: Ints) -> Excess:
    """The excess of those (rows) that have a share in each step (columns) over their peers'."""
    middle, counts = _midmean(shares)
    scatter = OF_DEVIATION * known_median(np.abs(shares - middle[:, np.newaxis]), axis=1)
    error = OF_MIDMEAN * scatter / np.sqrt(np.maximum(counts, 1))
    error = np.sqrt((error**2 + float(known_median(error)) ** 2) / 2)
    centred = middle - usual_of_peers(middle, peers)
    whole = OF_DEVIATION * float(known_median(np.abs(centred)))
    beyond, chance = np.zeros(len(middle)), np.ones(len(middle))
    for each in np.unique(peers):
        some = peers == each
        n = int(np.sum(some & ~np.isnan(centred)))
        own = OF_DEVIATION * float(known_median(np.abs(centred[some]))) if n >= LEAST_PEERS else 0.0
        # The scatter of all is known better; but peers that scatter more are held against their own.
        n = n if own > whole else int(np.sum(~np.isnan(centred)))
        scale = np.maximum(max(own, whole, LEAST_SCATTER), error[some])
        beyond[some] = centred[some] / scale
        chance[some] = [by_chance(float(t), EFFICIENCY * (n - 1)) if n >= LEAST_PEERS else 1.0 for t in beyond[some]]
    unknown = np.isnan(centred) | (counts < LEAST_STEPS)
    chance[unknown], beyond[unknown] = 1.0, 0.0
    half = np.where(counts < LEAST_STEPS, np.inf, error * [t_quantile(max(int(count) - 1, 1)) for count in counts])
    return Excess(np.where(np.isnan(centred), 0.0, centred), half, beyond, chance)


def _midmean(values: Floats) -> tuple[Floats, Ints]:
    """The mean of the middle half of each row's known values, and how many are known."""
    counts = np.sum(~np.isnan(values), axis=1)
    left_out = counts // 4
    ordered, places = np.sort(values, axis=1), np.arange(values.shape[1])
    kept = (places >= left_out[:, np.newaxis]) & (places < (counts - left_out)[:, np.newaxis])
    sums = np.where(kept, ordered, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(kept.sum(axis=1), 1), np.nan), counts


def known_median(values: Floats, axis: int | None = None) -> Floats:
    """Of those that are known; NaN where none is."""
    if values.size and not np.isnan(values).any():
        return np.asarray(np.median(values, axis=axis))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmedian(values, axis=axis))
