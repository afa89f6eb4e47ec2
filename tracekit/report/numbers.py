"""Numbers as people read them: `tracekit.numbers`, which rooms share, under the name that reports know them by."""

from __future__ import annotations

from tracekit.numbers import (
    MINUS,
    MISSING,
    change_with_share,
    count,
    count_change,
    duration,
    duration_change,
    is_whole,
    mean_count,
    percent,
    points_change,
    size,
    size_change,
    times,
)

__all__ = (
    "MINUS",
    "MISSING",
    "change_with_share",
    "count",
    "count_change",
    "duration",
    "duration_change",
    "is_whole",
    "mean_count",
    "percent",
    "points_change",
    "size",
    "size_change",
    "times",
)
