"""Where in a recording the GPU was idle for a stated reason."""

from __future__ import annotations

from collections.abc import Callable

from tracekit.model.analysis import Analysis, IdleGap
from tracekit.model.comparison import Side, TracePlace

#: So many places are named.
MOST = 3


def gaps_behind(side: Side, calls: set[str]) -> tuple[TracePlace, ...]:
    """The longest gaps that these synchronising calls exposed, in the recording that distorts least."""
    return _gaps(side.analysis, lambda gap: gap.sync in calls)


def gaps_of_cause(side: Side, causes: tuple[str, ...]) -> tuple[TracePlace, ...]:
    """The longest gaps that have these causes for most of their time, in the recording that tells causes apart."""
    return _gaps(side.host, lambda gap: sum(gap.causes.get(cause, 0.0) for cause in causes) > gap.duration_us / 2)


def _gaps(analysis: Analysis, fits: Callable[[IdleGap], bool]) -> tuple[TracePlace, ...]:
    some = [gap for gap in analysis.idle.largest if fits(gap)] if analysis.idle else []
    return tuple(TracePlace(analysis.trace.path, gap.start_us, gap.duration_us) for gap in some[:MOST])
