"""Which synchronising calls let the GPU run dry?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from tracekit.analysis.gaps import Gaps, Ints
from tracekit.analysis.places import find_places
from tracekit.analysis.timeline import CAUSE_CODES, Timeline, is_sync_call
from tracekit.analysis.window import Scope, columns, touching
from tracekit.model.analysis import SyncTime


@dataclass(frozen=True, slots=True)
class Waits:
    """The calls of one thread that wait for the GPU, in order: `rows` of its timeline's table."""

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
    starts, ends = columns(timeline.table[rows], "start_ns", "end_ns")
    outer = np.ones(len(rows), dtype=bool)
    outer[1:] = ends[1:] > np.maximum.accumulate(ends)[:-1]
    return Waits(rows[outer], starts[outer], ends[outer])


def find_drained(gaps: Gaps, waits: dict[int, Waits]) -> tuple[Ints, Ints]:
    """For each gap the thread and the row of the call under which the GPU ran dry, -1 where none did.

    The gap began while the call waited, and what ended it was launched only when the call had returned: work that was
    launched before needs no host. The launching thread's own calls come first, then those of the thread that launched
    what ran before. At the end of a step nothing is launched any more, so no call is to blame.
    """
    thread, row = (np.full(len(gaps.starts), -1, dtype=np.int64) for _ in range(2))
    for asked in (gaps.thread, gaps.other):
        for number, each in waits.items():
            mine = np.flatnonzero((asked == number) & (row < 0) & (gaps.before >= 0))
            at = np.searchsorted(each.starts, gaps.starts[mine], side="right") - 1
            mine, at = mine[at >= 0], at[at >= 0]
            found = (gaps.starts[mine] <= each.ends[at]) & (gaps.called_ns[mine] >= each.ends[at])
            thread[mine[found]], row[mine[found]] = number, each.rows[at[found]]
    return thread, row


@dataclass(slots=True)
class _Tally:
    count: int = 0
    idle_ns: int = 0
    drained: int = 0
    places: Counter[str] = field(default_factory=Counter)


def measure_syncs(
    scope: Scope,
    timelines: dict[int, Timeline],
    waits: dict[int, Waits],
    gaps: list[Gaps],
    drained: list[tuple[Ints, Ints]],
) -> tuple[SyncTime, ...]:
    """Per name: the calls in the window, and the gaps they exposed; the most frequent first."""
    tallies: dict[str, _Tally] = {}
    for number, each in waits.items():
        _count_calls(scope, timelines[number], each, tallies)
    for some, (threads, rows) in zip(gaps, drained, strict=True):
        lengths = some.ends - some.starts
        for at in np.flatnonzero(rows >= 0).tolist():
            tally = tallies.setdefault(timelines[int(threads[at])].table["name"][int(rows[at])], _Tally())
            tally.idle_ns += int(lengths[at])
            tally.drained += 1
    ordered = sorted(tallies.items(), key=lambda item: -item[1].count)
    return tuple(
        SyncTime(
            name, tally.count, tally.idle_ns / 1e3, next(iter(dict(tally.places.most_common(1))), None), tally.drained
        )
        for name, tally in ordered
    )


def _count_calls(scope: Scope, timeline: Timeline, waits: Waits, tallies: dict[str, _Tally]) -> None:
    rows = waits.rows[touching(scope, waits.starts, waits.starts + 1)]
    for name, place in zip(timeline.table["name"].gather(rows), find_places(timeline, rows), strict=True):
        tally = tallies.setdefault(name, _Tally())
        tally.count += 1
        if place is not None:
            tally.places[place.words] += 1
