"""Recorded idle time without what recording added to it."""

from __future__ import annotations

import math
from collections.abc import Mapping

#: `profiler` is no idle time of an unprofiled call; `device` is the GPU's own, all others are the host's.
NOT_THE_HOST = ("profiler", "device")


def shrink_idle(recorded_us: Mapping[str, float], true_us: float) -> dict[str, float]:
    """Idle time by cause, in microseconds, made to add up to `true_us`; to less, where less was recorded.

    Recording slows the host and hardly touches the GPU (docs/idle.md). So the profiler's own events go, and then every
    cause of the host shrinks by the same factor; what the GPU waited for itself (`device`) shrinks only when nothing of
    the host's is left. That the host's causes shrink alike is an assumption: a recording does not tell which of them it
    lengthened. Nothing is ever lengthened: idle time that no recording shows has no cause.
    """
    left = {cause: 0.0 if cause == "profiler" else us for cause, us in recorded_us.items()}
    over = math.fsum(left.values()) - true_us
    host = tuple(cause for cause in left if cause not in NOT_THE_HOST)
    for causes in (host, ("device",)):
        over = _take(left, tuple(cause for cause in causes if cause in left), over)
    return left


def _take(left: dict[str, float], causes: tuple[str, ...], over_us: float) -> float:
    """Takes as much of `over_us` from these causes as they have, in proportion; returns what is still too much."""
    have = math.fsum(left[cause] for cause in causes)
    if over_us <= 0 or not have:
        return over_us
    factor = max(1 - over_us / have, 0.0)
    for cause in causes:
        left[cause] *= factor
    return max(over_us - have, 0.0)
