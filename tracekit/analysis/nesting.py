"""Which event stands inside which, and which is the innermost at each moment?

Host events of one thread nest as brackets do, but for a few: the profiler's own, and clocks that are a little off. Of
two that overlap without one being inside the other, the one that began later is taken for the inner one, and goes on
when the other has ended.
"""

from itertools import pairwise

import numpy as np
from msgspec import Struct

from tracekit.interval import NEVER, Ints


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
    # How many are open when an event begins: those before it, less those that have ended by then.
    depths = np.arange(len(begun), dtype=np.int64) - np.searchsorted(np.sort(over, kind="stable"), begun, side="right")
    # Parents, by position: right for every event up to the first that outlasts the one it began in.
    parents = np.full(len(begun), -1, dtype=np.int64)
    order = np.argsort(depths, kind="stable")
    levels = np.split(order, np.flatnonzero(np.diff(depths[order])) + 1) if len(order) else []
    for outer, inner in pairwise(levels):
        # The parent is the last event one level up that began before.
        at = np.searchsorted(outer, inner) - 1
        parents[inner] = np.where(at >= 0, outer[np.maximum(at, 0)], -1)
    outlasting = over > np.where(parents >= 0, over[parents], over)
    if not outlasting.any():
        flat = _lay_flat(begun, over, parents, depths)
        above = np.full(len(starts), -1, dtype=np.int64)
        above[rows] = np.where(parents >= 0, rows[parents], -1)
        return Nesting(above, *flat[:2], rows[flat[2]])
    # Between two stretches without pause nothing is open, so what is wrong in one says nothing of the other: only
    # stretches with an event that outlasts its parent are gone through one event after the other.
    stretch = np.cumsum(np.concatenate(([True], begun[1:] >= np.maximum.accumulate(over)[:-1])))
    doubtful = rows[np.isin(stretch, stretch[outlasting])]
    others = ends.copy()
    others[doubtful] = starts[doubtful]
    sound, swept = nest(starts, others), _sweep(starts, ends, doubtful)
    both = np.stack([np.concatenate((getattr(sound, key), getattr(swept, key))) for key in ("starts", "ends", "rows")])
    # The two share no moment.
    return Nesting(np.maximum(sound.parents, swept.parents), *both[:, np.argsort(both[0], kind="stable")])


def _lay_flat(starts: Ints, ends: Ints, parents: Ints, depths: Ints) -> tuple[Ints, Ints, Ints]:
    """Starts and ends of stretches, and the position of the innermost event of each."""
    # An event begins to be the innermost at its start; at its end its parent is it again. Where several begin or end at
    # one moment the last of these counts: first the ends, the deepest first, then the starts, which are in order.
    deepest = np.argsort((-depths).astype(np.int16) if depths.max(initial=0) < 2**15 else -depths, kind="stable")
    ending = deepest[np.argsort(ends[deepest], kind="stable")]
    moments = np.concatenate((ends[ending], starts))
    innermost = np.concatenate((parents[ending], np.arange(len(starts), dtype=np.int64)))
    # Both halves are in order already, which this sort makes use of.
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    innermost = innermost[order]
    del deepest, ending, order
    some = (moments[1:] > moments[:-1]) & (innermost[:-1] >= 0)
    return moments[:-1][some], moments[1:][some], innermost[:-1][some]


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
