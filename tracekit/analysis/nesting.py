"""Which event stands inside which, and which is the innermost at each moment? And the threads of a trace one behind the
other on one line of time: what is asked of each of ten thousand threads is asked once.

Host events of one thread nest as brackets do, but for a few: the profiler's own, and clocks that are a little off. Of
two that overlap without one being inside the other, the one that began later is taken for the inner one, and goes on
when the other has ended.
"""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.errors import TracekitError
from tracekit.interval import NEVER, Bools, Ints
from tracekit.model.trace import Trace


class Nesting(Struct, frozen=True):
    """`parents` is, for each event, the row of the one it began in; -1 for none, and for events of no length. The
    stretches from `starts` to `ends` do not overlap and are in order; `rows` is the innermost event of each."""

    parents: Ints
    starts: Ints
    ends: Ints
    rows: Ints


def nest(starts: Ints, ends: Ints) -> Nesting:
    """How events nest that are in order of their start, the longer first where two begin together. Nanoseconds."""
    rows = np.flatnonzero(ends > starts)
    begun, over = starts[rows], ends[rows]
    parents, depths = _parents(begun, over)
    outlasting = over > np.where(parents >= 0, over[parents], over)
    if not outlasting.any():
        return _nesting(len(starts), rows, begun, over, parents, depths)
    # Between two stretches without pause nothing is open, so what is wrong in one says nothing of the other: only
    # stretches with an event that outlasts its parent are gone through one event after the other.
    stretch = np.cumsum(np.concatenate(([True], begun[1:] >= np.maximum.accumulate(over)[:-1])))
    wrong = np.zeros(stretch[-1] + 1, dtype=bool)
    wrong[stretch[outlasting]] = True
    right = ~wrong[stretch]
    swept = _sweep(starts, ends, rows[~right])
    places = np.cumsum(right, dtype=np.int32) - 1
    parents = np.where(parents >= 0, places[parents], -1)[right]
    del stretch, outlasting, places
    sound = _nesting(len(starts), rows[right], begun[right], over[right], parents, depths[right])
    # The two share no moment.
    order = np.argsort(np.concatenate((sound.starts, swept.starts)), kind="stable")
    keys = ("starts", "ends", "rows")
    both = {key: np.concatenate((getattr(sound, key), getattr(swept, key)))[order] for key in keys}
    return Nesting(np.maximum(sound.parents, swept.parents), **both)


def nearest(parents: Ints, wanted: Bools) -> Ints:
    """The row of the first wanted event around each; -1 for none."""
    # Each round looks twice as far up. The last place stands for no event, and is its own parent.
    none = len(parents)
    above = np.append(np.where(parents >= 0, parents, none), none)
    stops = np.append(wanted, [True])
    while not (stopped := stops[above]).all():
        above = np.where(stopped, above, above[above])
    found = above[:-1]
    return np.where(found < none, found, -1)


def _nesting(
    count: int, rows: Ints, starts: Ints, ends: Ints, parents: NDArray[np.int32], depths: NDArray[np.int32]
) -> Nesting:
    """That of so many events, of which these rows have a length and lie in each other as brackets do."""
    # An event begins to be the innermost at its start; at its end its parent is it again. Where several begin or end at
    # one moment the last of these counts: first the ends, the deepest first, then the starts, which are in order.
    deepest = np.argsort(-_short(depths), kind="stable")
    ending = deepest[np.argsort(ends[deepest], kind="stable")]
    del deepest
    moments = np.concatenate((ends[ending], starts))
    innermost = np.concatenate((parents[ending], np.arange(len(starts), dtype=np.int32)))
    del ending
    # Both halves are in order already, which this sort makes use of.
    order = np.argsort(moments, kind="stable")
    moments, innermost = moments[order], innermost[order]
    del order
    some = (moments[1:] > moments[:-1]) & (innermost[:-1] >= 0)
    above = np.full(count, -1, dtype=np.int64)
    above[rows] = np.where(parents >= 0, rows[parents], -1)
    return Nesting(above, moments[:-1][some], moments[1:][some], rows[innermost[:-1][some]])


def _parents(starts: Ints, ends: Ints) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The position of the event that each began in, -1 for none, and how many are open where it begins. Right for every
    event up to the first that outlasts the one it began in."""
    # How many are open when an event begins: those before it, less those that have ended by then.
    ended = np.searchsorted(np.sort(ends, kind="stable"), starts, side="right").astype(np.int32)
    depths = np.arange(len(starts), dtype=np.int32) - ended
    del ended
    parents = np.full(len(starts), -1, dtype=np.int32)
    order = np.argsort(_short(depths), kind="stable").astype(np.int32)
    levels = np.split(order, np.flatnonzero(np.diff(depths[order])) + 1) if len(order) else []
    for outer, inner in pairwise(levels):
        # The parent is the last event one level up that began before.
        at = np.searchsorted(outer, inner) - 1
        parents[inner] = np.where(at >= 0, outer[np.maximum(at, 0)], -1)
    return parents, depths


def _short(depths: NDArray[np.int32]) -> NDArray[np.int16] | NDArray[np.int32]:
    """Numbers of 16 bits, where they fit, are sorted in a tenth of the time."""
    return depths.astype(np.int16) if depths.max(initial=0) < 2**15 else depths


def _sweep(starts: Ints, ends: Ints, rows: Ints) -> Nesting:
    """How these rows nest, one event after the other, however they overlap."""
    parents = np.full(len(starts), -1, dtype=np.int64)
    found: list[tuple[int, int, int]] = []
    open_: list[tuple[int, int]] = []
    cursor = 0
    events = zip(rows.tolist(), starts[rows].tolist(), ends[rows].tolist(), strict=True)
    for row, start, end in (*events, (-1, NEVER, NEVER)):
        # All until this start is written out, and what has ended by then is closed.
        while open_:
            over, innermost = open_[-1]
            if (until := min(over, start)) > cursor:
                found.append((cursor, until, innermost))
                cursor = until
            if over > start:
                parents[row] = innermost
                break
            open_.pop()
        cursor = max(cursor, start)
        open_.append((end, row))
    flat = np.array(found, dtype=np.int64).reshape(-1, 3)
    return Nesting(parents, flat[:, 0], flat[:, 1], flat[:, 2])


class Line(Struct, frozen=True, eq=False):
    """Each lane (a thread, say) has a stretch of this length on the line, in the order of the lanes' numbers."""

    lanes: Ints
    length_ns: int

    def place(self, lanes: Ints, moments: Ints) -> Ints:
        """Where on the line these moments of these lanes are; -1, which is before everything, for lanes it has not."""
        at = np.searchsorted(self.lanes, lanes)
        return np.where(np.append(self.lanes, NEVER)[at] == lanes, at * self.length_ns + moments, -1)


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
