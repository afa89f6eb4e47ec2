"""Did each form run at one speed while it was timed?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tracekit.comparison.judging.timed import Timed
from tracekit.model.note import Note
from tracekit.statistics.speeds import find_drift, find_two_speeds

Times = NDArray[np.float64]

#: Forms share what moves them if their ratio ranges over less than this part of what each does.
SHARED = 0.7
#: A median hears of a second speed that so large a part of the calls has; of less it hears little.
SWAYS = 0.15
#: Speeds farther apart are interruptions, not speeds.
MOST_APART = 0.5


def find_restlessness(*sides: Timed) -> tuple[Note, ...]:
    """A note for each side that drifted, and for each that ran at two speeds."""
    return tuple(note for side in sides for note in _of(side))


def tell_thirds(a_us: Times, b_us: Times) -> tuple[Note, ...]:
    """Where a form drifted in its rounds, what became of the ratio, which they are to spare; empty where none did."""
    if find_drift(a_us) is None and find_drift(b_us) is None:
        return ()
    third = len(a_us) // 3
    ratios = np.asarray(a_us / b_us)
    first, last = float(np.median(ratios[:third])), float(np.median(ratios[-third:]))
    return (Note("speedup_by_thirds", "info", facts={"first": first, "last": last}),)


def unshared_change(a_us: Times, b_us: Times) -> float:
    """By which share the ratio of the two forms itself changed within the timing, 0 where it did not clearly.

    Forms that drift or switch speeds together leave their ratio in peace. Where the ratio moves, or a form keeps two
    speeds for several calls each that the ratio is not spared, a difference as small as that may be of when it was
    measured. Speeds that change from call to call are noise, which the interval knows.
    """
    ratios = np.asarray(a_us / b_us)
    drift, speeds = find_drift(ratios), [find_two_speeds(ratios)]
    speeds += [find_two_speeds(us) for us in (a_us, b_us) if _range(ratios) > SHARED * _range(us)]
    swaying = (each for each in speeds if each and each.lasting and SWAYS <= each.slow_share <= 1 - SWAYS)
    apart = [each.slow_us / each.fast_us - 1 for each in swaying]
    return max((abs(drift or 0.0), *(each for each in apart if each < MOST_APART)))


def _range(values: Times) -> float:
    """How far the logarithms of most values reach."""
    low, high = np.percentile(np.log(values), (10, 90))
    return float(high - low)


def _of(side: Timed) -> Iterator[Note]:
    if side.form is None:
        return
    wall_us = np.asarray(side.form.wall_us)
    drift, speeds = find_drift(wall_us), find_two_speeds(wall_us)
    if drift is not None:
        yield Note("drifted", subject=side.label, facts={"share": drift})
    if speeds is not None:
        facts = {
            "fast_us": speeds.fast_us,
            "slow_us": speeds.slow_us,
            "slow_share": speeds.slow_share,
            "lasting": speeds.lasting,
        }
        yield Note("two_speeds", subject=side.label, facts=facts)
