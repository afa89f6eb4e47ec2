"""How long does a timed call remember? Neighbouring calls are alike, so they are resampled in blocks."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

#: With fewer values no dependence can be told from chance.
FEWEST = 8
#: More is not told from a drift.
MOST_MEMORY = 0.95


def block_length(values: Values) -> int:
    """The number of neighbouring values to keep together when their median is resampled; 1 for independent ones.

    A median hears of each value only on which side of it that value lies, so it is the signs whose dependence counts.
    The larger of two estimates, because short series hide dependence: Politis and White's, which needs no model, and
    that of the first-order autoregression whose signs agree with their neighbours as often as these.
    """
    n = len(values)
    signs = np.sign(values - np.median(values))
    if n < FEWEST or not signs.any():
        return 1
    longest = math.ceil(min(3 * math.sqrt(n), n / 4))
    return max(1, min(longest, max(math.ceil(_politis_white(signs)), round(_autoregressive(signs)))))


def _politis_white(signs: Values) -> float:
    """Politis and White (2004) with the correction of Patton, Politis and White (2009), for circular blocks."""
    n = len(signs)
    farthest = min(n - 1, 2 * (math.ceil(math.sqrt(n)) + _run(n)))
    covariances = _autocovariances(signs, farthest + 1)
    reach = _reach(covariances / covariances[0], n)
    lags = np.arange(1, min(2 * reach, len(covariances) - 1) + 1)
    weights = np.minimum(1.0, 2 * (1 - lags / max(2 * reach, 1)))
    g = 2 * float((weights * lags * covariances[lags]).sum())
    variance = covariances[0] + 2 * float((weights * covariances[lags]).sum())
    return math.cbrt(1.5 * g**2 / variance**2 * n) if variance > 0 and g > 0 else 1.0


def _autoregressive(signs: Values) -> float:
    """The same formula where value k + 1 is `memory` times value k and noise.

    Signs of such values agree by the arcsine law; a series of n shows (1 + 3 memory) / n too little (Kendall, 1954).
    """
    shown = math.sin(math.pi / 2 * float((signs[1:] * signs[:-1]).sum() / (signs**2).sum()))
    memory = min(shown + (1 + 3 * shown) / len(signs), MOST_MEMORY)
    return math.cbrt(6 * (memory / (1 - memory**2)) ** 2 * len(signs)) if memory > 0 else 1.0


def _run(n: int) -> int:
    """So many lags in a row without correlation end the search."""
    return max(5, math.ceil(math.log10(n)))


def _autocovariances(values: Values, lags: int) -> Values:
    centred = values - values.mean()
    return np.array([float((centred[: len(centred) - lag] * centred[lag:]).sum()) for lag in range(lags)]) / len(values)


def _reach(correlations: Values, n: int) -> int:
    """The last lag before the correlations stay inside what chance alone gives."""
    threshold = 2 * math.sqrt(math.log10(n) / n)
    beyond = np.abs(correlations[1:]) > threshold
    for lag in range(len(beyond)):
        if not beyond[lag : lag + _run(n)].any():
            return lag
    return len(beyond)
