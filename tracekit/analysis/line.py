"""The threads of a trace one behind the other on one line of time: what is asked of each of ten thousand threads is
asked once."""

from collections.abc import Iterable

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.interval import NEVER, Ints
from tracekit.model.trace import Trace


class Line(Struct, frozen=True, eq=False):
    """Each lane (a thread, say) has a stretch of this length on the line, in the order of the lanes' numbers."""

    lanes: Ints
    length_ns: int

    def place(self, lanes: Ints, moments: Ints) -> Ints:
        """Where on the line these moments of these lanes are; -1, which is before everything, for lanes it has not."""
        at = np.minimum(np.searchsorted(self.lanes, lanes), max(len(self.lanes) - 1, 0))
        return np.where(np.isin(lanes, self.lanes), at * self.length_ns + moments, -1)


def make_line(trace: Trace, lanes: Iterable[int]) -> Line:
    """A line with these lanes, each of which holds all of the trace's time. Raises TracekitError where there is no room
    for so many."""
    every = np.unique(np.fromiter(lanes, dtype=np.int64))
    tables = (trace.host, trace.calls, trace.activities)
    length = 1 + max((int(table.select(pl.col("end_ns").max()).item()) for table in tables if table.height), default=0)
    if len(every) * length >= NEVER:
        raise TracekitError(
            f"{trace.path}: its times span {length / 86400e9:,.0f} days on {len(every):,} threads: more than can be"
            " analyzed; record it again"
        )
    return Line(every, length)
