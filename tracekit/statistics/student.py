"""The 97.5th percentile of Student's t distribution."""

from __future__ import annotations

#: For 1 to 10 degrees of freedom, as in every table.
FEW = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
#: The normal distribution's.
NORMAL = 1.959964


def t_quantile(freedom: float) -> float:
    """How many standard errors a 95 % interval reaches to each side. Between whole degrees of freedom the smaller
    counts; above ten by the expansion of Abramowitz and Stegun, 26.7.5, within 0.001. Below one there is none: inf."""
    if freedom < 1:
        return float("inf")
    if freedom < 11:
        return FEW[int(freedom) - 1]
    z = NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2
