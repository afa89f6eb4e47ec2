"""When had a GPU nothing to run, which launch ended that, and which synchronising call had let it run dry?"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import astuple, replace

from tracekit import interval
from tracekit.analysis.devices import busy_intervals
from tracekit.analysis.timeline import CAUSE_CODES, Timeline, find_places, is_sync_call
from tracekit.analysis.window import Scope, columns, touching
from tracekit.interval import NEVER, Bools, Ints
from tracekit.model.analysis import Place, SyncTime
from tracekit.model.trace import Trace


class Gaps(Struct, frozen=True):
    """Gaps as columns, or parts of them: `queued` says whether what ended the gap waited for other work. `thread` is
    the host thread that decides the causes, -1 where none is known: the one that launched what ended the gap, else that
    of the step. `other` is the thread that launched what ran before the gap, else that of the step; it is looked at
    where `thread` records nothing.

    `call` is the row of the call that launched the ending activity, `called_ns` and `launched_ns` are when it began and
    returned; -1 where no such call is recorded or nothing ends the gap. Between two activities of one call (a CUDA
    graph's) the gap counts as launched when it began. `after` and `before` are the activities around a gap by their row
    in `Scope.linked`, -1 at the window's edges."""

    device: Ints
    starts: Ints
    ends: Ints
    queued: Bools
    thread: Ints
    other: Ints
    call: Ints
    called_ns: Ints
    launched_ns: Ints
    after: Ints
    before: Ints

    @property
    def host_until(self) -> Ints:
        """Until when the host is the cause: its launch call's return, or the whole gap where nothing ends it."""
        return np.where(self.before >= 0, np.clip(self.launched_ns, self.starts, self.ends), self.ends)

    def at(self, rows: Ints) -> Gaps:
        """The gaps at these positions."""
        return Gaps(*(column[rows] for column in astuple(self)))

    def within(self, rows: Ints, starts: Ints, ends: Ints) -> Gaps:
        """Parts of the gaps at these positions, each from its start to its end."""
        return replace(self.at(rows), starts=starts, ends=ends)


def join_gaps(every: list[Gaps]) -> Gaps:
    """All of them, in this order."""
    nothing = [np.zeros(0, dtype=np.int64)] * len(Gaps.__struct_fields__)
    return Gaps(*(np.concatenate(column) for column in zip(nothing, *map(astuple, every), strict=True)))


def find_gaps(trace: Trace, scope: Scope, device: int) -> Gaps:
    """The maximal idle stretches of the device in its window, in order."""
    holes = interval.complement(busy_intervals(trace, device), scope.windows[device])
    # The trace's own activities, not the window's: what ends a gap may have been launched before the step.
    rows = np.flatnonzero(scope.linked["device"].to_numpy() == device)
    own = scope.linked[rows]
    starts, ends = columns(own, "start_ns", "end_ns")
    before, after = _positions(starts, holes[:, 1]), _positions(ends, holes[:, 0])
    calls, called, launched, threads = columns(own, "call", "called_ns", "returned_ns", "launched_on")
    steps = np.array([(span.start_ns, span.thread) for span in scope.spans], dtype=np.int64).reshape(-1, 2)
    of_step = _at(steps[:, 1], np.maximum(np.searchsorted(steps[:, 0], holes[:, 0], side="right") - 1, 0))
    call, previous = _at(calls, before), _at(threads, after)
    within_one_call = (call >= 0) & (call == _at(calls, after))
    return Gaps(
        device=np.full(len(holes), device),
        starts=holes[:, 0],
        ends=holes[:, 1],
        queued=(before >= 0) & np.append(own["queued"].to_numpy(), False)[before],
        thread=np.where(before >= 0, _at(threads, before), of_step),
        other=np.where(previous >= 0, previous, of_step),
        call=call,
        called_ns=_at(called, before),
        launched_ns=np.where(within_one_call, holes[:, 0], _at(launched, before)),
        after=_at(rows, after),
        before=_at(rows, before),
    )


def _at(values: Ints, positions: Ints) -> Ints:
    """The values at these positions; -1 for the position -1, and for any where there are no values."""
    return np.concatenate((values, [-1]))[positions]


def _positions(values: Ints, moments: Ints) -> Ints:
    """The first activity whose start or end is just at the moment; -1 where the window itself begins or ends there."""
    order = np.argsort(values, kind="stable")
    at = np.searchsorted(values[order], moments, side="left")
    found = _at(order, np.where(at < len(values), at, -1))
    return np.where(_at(values, found) == moments, found, -1)


def cut_at(gaps: Gaps, moments: Ints) -> Gaps:
    """The gaps, cut at each of these moments that lies in one."""
    edges = np.concatenate(([-NEVER], np.unique(moments), [NEVER]))
    pieces = np.stack((edges[:-1], edges[1:]), axis=1)
    at, rows = interval.overlaps(pieces, np.stack((gaps.starts, gaps.ends), axis=1))
    starts, ends = np.maximum(pieces[at, 0], gaps.starts[rows]), np.minimum(pieces[at, 1], gaps.ends[rows])
    return gaps.within(rows, starts, ends)


class Waits(Struct, frozen=True):
    """The calls that wait for the GPU, in order: `rows` of the timeline's table, and where on its line they are."""

    rows: Ints
    starts: Ints
    ends: Ints


def syncing_threads(scope: Scope, launching: pl.DataFrame) -> set[int]:
    """The threads that wait for the GPU, among them those that explain no gap: their waits are counted all the same."""
    waiting = [name for name in scope.calls["name"].unique() if is_sync_call(name)]
    held = launching.filter(pl.col("waits_from_ns").is_not_null())["call"]
    some = scope.calls.filter(pl.col("name").is_in(waiting) | pl.col("call").is_in(held.implode()))
    return set(some["thread"].unique())


def find_waits(timeline: Timeline) -> Waits:
    """A wait inside another (a driver's call inside the runtime's) is none of its own."""
    rows = np.flatnonzero(timeline.table["code"].to_numpy() == CAUSE_CODES["sync_wait"])
    starts = timeline.begins[rows]
    ends = starts + np.subtract(*columns(timeline.table[rows], "end_ns", "start_ns"))
    outer = np.ones(len(rows), dtype=bool)
    outer[1:] = ends[1:] > np.maximum.accumulate(ends)[:-1]
    return Waits(rows[outer], starts[outer], ends[outer])


def find_drained(gaps: Gaps, waits: Waits, timeline: Timeline) -> Ints:
    """For each gap the row of the call under which the GPU ran dry, -1 where none did.

    The gap began while the call waited, and what ended it was launched only when the call had returned: work that was
    launched before needs no host. The launching thread's own calls come first, then those of the thread that launched
    what ran before. At the end of a step nothing is launched any more, so no call is to blame.
    """
    row = np.full(len(gaps.starts), -1, dtype=np.int64)
    for asked in (gaps.thread, gaps.other):
        mine = np.flatnonzero((asked >= 0) & (row < 0) & (gaps.before >= 0))
        begun, called = (timeline.line.place(asked[mine], each[mine]) for each in (gaps.starts, gaps.called_ns))
        # One of an earlier thread has ended before.
        at = np.searchsorted(waits.starts, begun, side="right") - 1
        found = np.flatnonzero(at >= 0)
        ends = waits.ends[at[found]]
        found = found[(begun[found] <= ends) & (called[found] >= ends)]
        row[mine[found]] = waits.rows[at[found]]
    return row


def measure_syncs(scope: Scope, timeline: Timeline, waits: Waits, gaps: Gaps, drained: Ints) -> tuple[SyncTime, ...]:
    """Per name: the calls in the window, and the gaps they exposed; the most frequent first."""
    counts, exposed, idle_ns = Counter[str](), Counter[str](), Counter[str]()
    places: dict[str, Counter[Place]] = defaultdict(Counter)
    (starts,) = columns(timeline.table[waits.rows], "start_ns")
    rows = waits.rows[touching(scope, starts, starts + 1)]
    names = timeline.table["name"].gather(rows)
    counts.update(names)
    for name, place in zip(names, find_places(timeline, rows), strict=True):
        places[name].update([place] if place else [])
    under = np.flatnonzero(drained >= 0)
    lengths = (gaps.ends - gaps.starts)[under].tolist()
    for name, ns in zip(timeline.table["name"].gather(drained[under]), lengths, strict=True):
        # The call itself may have begun before the window.
        counts[name] += 0
        exposed[name] += 1
        idle_ns[name] += ns
    return tuple(
        SyncTime(
            name, count, idle_ns[name] / 1e3, max(own := places[name], key=own.__getitem__, default=None), exposed[name]
        )
        for name, count in counts.most_common()
    )
