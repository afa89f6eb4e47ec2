"""Has a timing made enough calls?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tracekit.model.timing import StoppingRule, StopReason
from tracekit.statistics.interval import FEWEST, median_interval

#: Calls of microseconds would fill the manifest before they fill the budget.
MOST_ROUNDS = 2000
#: The interval is looked at whenever there are so many times as many rounds: seldom, so that looking changes little.
GROWTH = 1.25
#: So many rounds that compiled, and fewer that did not than an interval takes, are no timing.
MOST_COMPILING = 16
#: Clocks switch and machines warm up in seconds: calls that agree for less than this part of the budget prove little.
LEAST_OF_BUDGET = 0.1
#: Enough to see how wide an interval is; the verdict takes more.
RESAMPLES = 400


class Stopping:
    """Watches one timing. `tell` hears how wide the interval is, whenever it was looked at."""

    def __init__(self, rule: StoppingRule, tell: Callable[[str], None] = lambda _: None) -> None:
        self._rule, self._tell = rule, tell
        self._next_look = max(rule.least, FEWEST)

    def reason(self, walls: Sequence[Sequence[float]], made: int, seconds: float) -> StopReason | None:
        """Why to stop after these rounds, of which `made` were made, and `seconds`; None to go on. `walls` are the
        times of one form or of two, a value for each round that counts: in which nothing was compiled. `seconds` are
        without what compiling took."""
        rounds = len(walls[0])
        if self._rule.rounds is not None:
            return "asked number" if made >= self._rule.rounds else None
        if rounds < FEWEST:
            # Of a form that never stops compiling there is no interval to wait for.
            return "budget spent" if made >= MOST_COMPILING + FEWEST else None
        long_enough = seconds >= LEAST_OF_BUDGET * self._rule.budget_seconds
        if rounds >= MOST_ROUNDS or (rounds >= self._next_look and long_enough):
            self._next_look = math.ceil(rounds * GROWTH)
            if self._is_narrow(walls):
                return "target reached"
        if seconds >= self._rule.budget_seconds:
            return "budget spent"
        return "most rounds" if made >= MOST_ROUNDS else None

    def _is_narrow(self, walls: Sequence[Sequence[float]]) -> bool:
        logs = np.log(np.asarray(walls))
        values = logs[0] - logs[1] if len(logs) == 2 else logs[0]
        half = math.expm1(median_interval(values, RESAMPLES).half_width)
        self._tell(f"{len(values)} rounds, ±{half * 100:.2g} %")
        return half <= self._rule.target
