"""Which event stands inside which, and which is the innermost at each moment?

Host events of one thread nest as brackets do, but for a few: the profiler's own, and clocks that are a little off. Of
two that overlap without one being inside the other, the one that began later is taken for the inner one, and goes on
when the other has ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tracekit.analysis.interval import Ints

#: Events that outlast the one they began in are cut in two there, and again, as long as this few rounds suffice. Where
#: they do not, or where it makes too many parts, one event is looked at after the other.
MOST_ROUNDS = 8
MOST_PARTS = 2


@dataclass(frozen=True)
class Nesting:
    """`parents` is, for each event, the row of the one it began in; -1 for none, and for events of no length. The
    stretches from `starts` to `ends` do not overlap and are in order; `rows` is the innermost event of each."""

    parents: Ints
    starts: Ints
    ends: Ints
    rows: Ints


@dataclass(frozen=True)
class _Parts:
    """Events, some of them in parts, each wholly inside its parent (a position in these arrays, -1 for none)."""

    starts: Ints
    ends: Ints
    rows: Ints
    parents: Ints
    depths: Ints

    def limits(self) -> Ints:
        """Where each event must have ended: with its parent."""
        return np.where(self.parents >= 0, self.ends[self.parents], self.ends)


def nest(starts: Ints, ends: Ints) -> Nesting:
    """How events nest that are in order of their start, the longer first where two begin together. Nanoseconds."""
    count = len(starts)
    rows = np.flatnonzero(ends > starts)
    found = _with_parents(starts[rows], ends[rows], rows)
    outlasting = found.ends > found.limits()
    if not outlasting.any():
        return _lay_flat(found, count)
    # Between two stretches without pause nothing is open, so what is wrong in one says nothing of the other: only
    # stretches with an event that outlasts its parent are cut to fit.
    reach = np.maximum.accumulate(found.ends)
    stretch = np.cumsum(np.concatenate(([True], found.starts[1:] >= reach[:-1])))
    doubtful = np.isin(stretch, stretch[outlasting])
    keep, position = ~doubtful, np.cumsum(~doubtful) - 1
    parents = np.where(found.parents[keep] >= 0, position[found.parents[keep]], -1)
    sound = _lay_flat(
        _Parts(found.starts[keep], found.ends[keep], found.rows[keep], parents, found.depths[keep]), count
    )
    parts = _cut_to_fit(found.starts[doubtful], found.ends[doubtful], found.rows[doubtful])
    mended = _lay_flat(parts, count) if parts else _sweep(starts, ends, found.rows[doubtful])
    flat = (np.concatenate((getattr(sound, key), getattr(mended, key))) for key in ("starts", "ends", "rows"))
    both = np.stack(tuple(flat))
    # The two share no moment.
    return Nesting(np.maximum(sound.parents, mended.parents), *both[:, np.argsort(both[0], kind="stable")])


def _with_parents(starts: Ints, ends: Ints, rows: Ints) -> _Parts:
    """Parents and depths, right for every event up to the first that outlasts the one it began in."""
    # How many are open when an event begins: those before it, less those that have ended by then.
    depths = np.arange(len(starts), dtype=np.int64) - np.searchsorted(
        np.sort(ends, kind="stable"), starts, side="right"
    )
    parents = np.full(len(starts), -1, dtype=np.int64)
    order = np.argsort(depths, kind="stable")
    levels = np.split(order, np.flatnonzero(np.diff(depths[order])) + 1) if len(order) else []
    for above, level in pairwise(levels):
        # The parent is the last event one level up that began before.
        at = np.searchsorted(above, level) - 1
        parents[level] = np.where(at >= 0, above[np.maximum(at, 0)], -1)
    return _Parts(starts, ends, rows, parents, depths)


def _cut_to_fit(starts: Ints, ends: Ints, rows: Ints) -> _Parts | None:
    """None when that would take too long."""
    most = MOST_PARTS * len(starts) + 1000
    for _ in range(MOST_ROUNDS):
        found = _with_parents(starts, ends, rows)
        limits = found.limits()
        if not (ends > limits).any():
            return found
        # Behind the first that outlasts its parent some parents are wrong, and have ended before: another round.
        outlasting = np.flatnonzero((ends > limits) & (limits > starts))
        if len(starts) + len(outlasting) > most:
            return None
        starts, later_ends = np.concatenate((starts, limits[outlasting])), ends[outlasting]
        ends = np.concatenate((ends, later_ends))
        ends[outlasting] = limits[outlasting]
        rows = np.concatenate((rows, rows[outlasting]))
        order = np.lexsort((rows, starts))
        starts, ends, rows = starts[order], ends[order], rows[order]
    return None


def _lay_flat(parts: _Parts, count: int) -> Nesting:
    starts, ends, depths = parts.starts, parts.ends, parts.depths
    parents = np.full(count, -1, dtype=np.int64)
    inside = np.flatnonzero(parts.parents >= 0)[::-1]
    # Backwards, so that of an event in parts the first is the last to be written.
    parents[parts.rows[inside]] = parts.rows[parts.parents[inside]]
    # An event begins to be the innermost at its start; at its end its parent is it again. Where several begin or end at
    # one moment the last of these counts: first the ends, the deepest first, then the starts, the deepest last.
    deepest = np.argsort((-depths).astype(np.int16) if depths.max(initial=0) < 2**15 else -depths, kind="stable")
    ending = deepest[np.argsort(ends[deepest], kind="stable")]
    beginning = np.arange(len(starts), dtype=np.int64)
    at_once = starts[1:] == starts[:-1]
    if not ((starts[1:] >= starts[:-1]).all() and (depths[1:] > depths[:-1])[at_once].all()):
        beginning = np.lexsort((depths, starts))
    moments = np.concatenate((ends[ending], starts[beginning]))
    innermost = np.concatenate((parts.parents[ending], beginning))
    # Both halves are in order already, which this sort makes use of.
    order = np.argsort(moments, kind="stable")
    moments, innermost = moments[order], innermost[order]
    some = (moments[1:] > moments[:-1]) & (innermost[:-1] >= 0)
    return Nesting(parents, moments[:-1][some], moments[1:][some], parts.rows[innermost[:-1][some]])


def _sweep(starts: Ints, ends: Ints, rows: Ints) -> Nesting:
    """The same, one event after the other."""
    parents = np.full(len(starts), -1, dtype=np.int64)
    found: list[tuple[int, int, int]] = []
    open_: list[tuple[int, int]] = []
    cursor = 0
    for row, start, end in zip(rows.tolist(), starts[rows].tolist(), ends[rows].tolist(), strict=True):
        cursor = _advance(open_, found, cursor, start)
        if open_:
            parents[row] = open_[-1][1]
        open_.append((end, row))
    _advance(open_, found, cursor, 2**62)
    flat = np.array(found, dtype=np.int64).reshape(-1, 3)
    return Nesting(parents, flat[:, 0], flat[:, 1], flat[:, 2])


def _advance(open_: list[tuple[int, int]], found: list[tuple[int, int, int]], cursor: int, moment: int) -> int:
    """Everything from `cursor` until `moment` is written out, and what has ended by then is closed."""
    while open_:
        end, row = open_[-1]
        until = min(end, moment)
        if until > cursor:
            found.append((cursor, until, row))
            cursor = until
        if end > moment:
            return cursor
        open_.pop()
    return max(cursor, moment)
