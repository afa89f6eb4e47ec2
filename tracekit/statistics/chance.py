"""How likely is it that chance alone did this, once or among many?"""

import math
from collections.abc import Sequence

import numpy as np


def by_chance(t: float, freedom: float) -> float:
    """The probability that Student's t is as large, by Wallace's approximation (Annals of Mathematical Statistics 30,
    1959). It errs upwards: at 2.5 % by 30 % of it with one degree of freedom, by 3 % with three, by less than 0.1 %
    from 20 on; farther out by more."""
    if t <= 0 or math.isnan(t):
        return 1.0
    normal = (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p(t * t / freedom))
    return 0.5 * math.erfc(normal / math.sqrt(2))


def holm(chances: Sequence[float]) -> list[float]:
    """Probabilities that hold for all of them together: of those that are no larger than a level not one is by chance,
    with a probability of 1 less that level."""
    order = np.argsort(chances, kind="stable")
    found, most = [1.0] * len(chances), 0.0
    for place, at in enumerate(order):
        most = max(most, min(1.0, float(chances[at]) * (len(chances) - place)))
        found[int(at)] = most
    return found


def chance_of_as_many(met: int, count: int, share: float) -> float:
    """How likely so many or more of `count` are, each by itself with that likelihood."""
    if not 0 < share < 1:
        return float(share > 0)
    logs = [
        math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
        + k * math.log(share) + (count - k) * math.log1p(-share)
        for k in range(met, count + 1)
    ]  # fmt: skip
    return sum(math.exp(each) for each in logs)
