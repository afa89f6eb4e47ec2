"""Is what a cell gained or lost more than eager of the same work differs by from process to process?"""

from __future__ import annotations

import math

from tracekit.model.comparison import Verdict
from tracekit.model.sweep_figures import EagerPool


def is_within_spread(verdict: Verdict | None, eager: EagerPool | None) -> bool | None:
    """Whether the change is no larger than that. None where nothing was compared, or one process alone timed eager."""
    if verdict is None or verdict.speedup is None or eager is None or eager.processes < 2:
        return None
    return abs(math.log(verdict.speedup)) <= math.log1p(eager.spread)
