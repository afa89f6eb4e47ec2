"""When was the GPU idle, and why?

A gap that an activity ends is divided at the moment its launch call returned: after it the device itself is the cause;
before it, whatever the launching thread was doing. A gap that nothing ends (the end of a step) is divided by what the
step's thread did. So the causes of a gap add up to its length, in whole nanoseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.analysis import interval
from tracekit.analysis.devices import busy_intervals
from tracekit.analysis.timeline import CAUSE_CODES, Timeline, is_sync_call, lay_flat
from tracekit.analysis.window import Scope, columns, touching
from tracekit.model.analysis import IDLE_CAUSES, CauseTime, IdleGap, IdleSummary, SyncTime
from tracekit.model.trace import Trace

LARGEST = 10


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of one device as columns. `thread` is the host thread that decides the causes, -1 where none is known.
    `launched_ns` is when the call that launched the ending activity returned, -1 where no such call is recorded.
    `after` and `before` are the activities around a gap by their position in `names`, -1 at the window's edges."""

    device: int
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    thread: NDArray[np.int64]
    launched_ns: NDArray[np.int64]
    after: NDArray[np.int64]
    before: NDArray[np.int64]
    names: pl.Series


def explain_idle(trace: Trace, scope: Scope) -> IdleSummary:
    """Every gap of every device in the window, divided by cause."""
    gaps = [_find_gaps(trace, scope, device) for device in scope.windows]
    threads = {int(thread) for each in gaps for thread in np.unique(each.thread) if thread >= 0}
    threads |= _syncing_threads(scope)
    launching = scope.linked["call"].drop_nulls().unique()
    timelines = {thread: lay_flat(trace, thread, launching) for thread in threads}
    unrecorded = _unrecorded_cause(trace)
    divided = [_divide(each, timelines, unrecorded) for each in gaps]
    return IdleSummary(
        gap_count=sum(len(each.starts) for each in gaps),
        causes=_sum_causes(divided),
        syncs=_measure_syncs(scope, gaps, timelines),
        largest=_largest(scope, gaps, divided),
    )


def _unrecorded_cause(trace: Trace) -> str:
    """What time without any event stands for: Python, if operators were recorded at all; else nobody can tell."""
    return "python" if (trace.host["kind"] == "op").any() else "unattributed"


def _find_gaps(trace: Trace, scope: Scope, device: int) -> Gaps:
    holes = interval.complement(busy_intervals(trace, device), scope.windows[device])
    # The trace's own activities, not the window's: what ends a gap may have been launched before the step.
    joined = scope.linked.filter(pl.col("device") == device).join(
        scope.calls.select("call", launched_ns="end_ns", launched_on="thread"),
        on="call",
        how="left",
        maintain_order="left",
    )
    starts, ends, launched, threads = columns(joined, "start_ns", "end_ns", "launched_ns", "launched_on")
    # The activity that ends a gap starts where the gap does end; a window's own end is no activity's start.
    following = np.searchsorted(starts, holes[:, 1], side="left")
    ended = following < len(starts)
    ended[ended] = starts[following[ended]] == holes[ended, 1]
    at = np.where(ended, following, 0)
    return Gaps(
        device=device,
        starts=holes[:, 0],
        ends=holes[:, 1],
        thread=np.where(ended, threads[at] if len(at) else -1, _threads_of_steps(scope, holes)),
        launched_ns=np.where(ended, launched[at], -1),
        after=_ending_at(ends, holes[:, 0]),
        before=np.where(ended, following, -1),
        names=joined["name"],
    )


def _ending_at(ends: NDArray[np.int64], moments: NDArray[np.int64]) -> NDArray[np.int64]:
    """The activity that ended when each gap began; -1 where the window itself began there."""
    if not len(ends):
        return np.full(len(moments), -1, dtype=np.int64)
    order = np.argsort(ends, kind="stable")
    at = np.minimum(np.searchsorted(ends[order], moments, side="left"), len(ends) - 1)
    return np.where(ends[order][at] == moments, order[at], -1)


def _threads_of_steps(scope: Scope, holes: interval.Intervals) -> NDArray[np.int64]:
    """The thread of the step in which each gap begins, -1 without steps."""
    if not scope.spans:
        return np.full(len(holes), -1, dtype=np.int64)
    starts = np.array([span.start_ns for span in scope.spans], dtype=np.int64)
    threads = np.array([span.thread for span in scope.spans], dtype=np.int64)
    return threads[np.maximum(np.searchsorted(starts, holes[:, 0], side="right") - 1, 0)]


def _divide(gaps: Gaps, timelines: dict[int, Timeline], unrecorded: str) -> NDArray[np.int64]:
    """Nanoseconds of each cause (columns) of each gap (rows); a row adds up to its gap."""
    parts = np.zeros((len(gaps.starts), len(IDLE_CAUSES)), dtype=np.int64)
    # Until when the host is the cause: its launch call's return, or the whole gap where nothing ends it.
    by_activity = gaps.before >= 0
    host_until = np.where(by_activity, np.clip(gaps.launched_ns, gaps.starts, gaps.ends), gaps.ends)
    unknown = by_activity & (gaps.launched_ns < 0) | (gaps.thread < 0)
    for thread, timeline in timelines.items():
        own = (gaps.thread == thread) & ~unknown
        parts[own] = timeline.time_by_cause(gaps.starts[own], host_until[own])
    parts[:, CAUSE_CODES["device"]] += np.where(unknown, 0, gaps.ends - host_until)
    rest = (gaps.ends - gaps.starts) - parts.sum(axis=1)
    parts[unknown, CAUSE_CODES["unattributed"]] += rest[unknown]
    parts[~unknown, CAUSE_CODES[unrecorded]] += rest[~unknown]
    return parts


def _sum_causes(divided: Iterable[NDArray[np.int64]]) -> tuple[CauseTime, ...]:
    """In the order of IDLE_CAUSES; causes without time are left out."""
    parts = np.concatenate([*divided, np.zeros((0, len(IDLE_CAUSES)), dtype=np.int64)])
    totals, counts = parts.sum(axis=0), (parts > 0).sum(axis=0)
    return tuple(
        CauseTime(cause, int(totals[code]) / 1e3, int(counts[code]))
        for cause, code in CAUSE_CODES.items()
        if totals[code]
    )


def _syncing_threads(scope: Scope) -> set[int]:
    """The threads that wait for the GPU, among them those that explain no gap: their waits are counted all the same."""
    waiting = [name for name in scope.calls["name"].unique() if is_sync_call(name)]
    return set(scope.calls["thread"].filter(scope.calls["name"].is_in(waiting)).unique())


def _measure_syncs(scope: Scope, gaps: list[Gaps], timelines: dict[int, Timeline]) -> tuple[SyncTime, ...]:
    """Per name: the calls in the window, and the gaps that began while such a call waited."""
    counts: Counter[str] = Counter()
    idle: Counter[str] = Counter()
    where: dict[str, Counter[str]] = {}
    for thread, timeline in timelines.items():
        rows = np.flatnonzero(timeline.table["code"].to_numpy() == CAUSE_CODES["sync_wait"])
        (begun,) = columns(timeline.table[rows], "start_ns")
        rows = rows[touching(scope, begun, begun + 1)]
        syncs = timeline.table[rows]
        names = syncs["name"].to_list()
        counts.update(names)
        for name, row in zip(names, rows.tolist(), strict=True):
            where.setdefault(name, Counter()).update(filter(None, [timeline.caller(row)]))
        for each in gaps:
            indexes, lengths = _drained(each, thread, *columns(syncs, "start_ns", "end_ns"))
            for index, gap_ns in zip(indexes.tolist(), lengths.tolist(), strict=True):
                idle[names[index]] += gap_ns
    return tuple(
        SyncTime(name, count, idle[name] / 1e3, next((caller for caller, _ in where[name].most_common(1)), None))
        for name, count in counts.most_common()
    )


def _drained(
    gaps: Gaps, thread: int, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of the thread's gaps those that began inside one of these calls: the call's position and the gap's length."""
    own = gaps.thread == thread
    begins, lengths = gaps.starts[own], (gaps.ends - gaps.starts)[own]
    at = np.searchsorted(starts, begins, side="right") - 1
    inside = at >= 0
    inside[inside] = begins[inside] <= ends[at[inside]]
    return at[inside], lengths[inside]


def _largest(scope: Scope, gaps: list[Gaps], divided: list[NDArray[np.int64]]) -> tuple[IdleGap, ...]:
    every: list[tuple[int, Gaps, NDArray[np.int64], int]] = []
    for each, parts in zip(gaps, divided, strict=True):
        lengths = each.ends - each.starts
        every += [(int(lengths[i]), each, parts[i], i) for i in np.argsort(-lengths, kind="stable")[:LARGEST].tolist()]
    every.sort(key=lambda item: -item[0])
    origin = min((int(window[0, 0]) for window in scope.windows.values() if len(window)), default=0)
    return tuple(_as_gap(each, parts, i, origin) for _, each, parts, i in every[:LARGEST])


def _name(gaps: Gaps, activity: int) -> str | None:
    return str(gaps.names[activity]) if activity >= 0 else None


def _as_gap(gaps: Gaps, parts: NDArray[np.int64], i: int, origin_ns: int) -> IdleGap:
    return IdleGap(
        device=gaps.device,
        start_us=(int(gaps.starts[i]) - origin_ns) / 1e3,
        duration_us=int(gaps.ends[i] - gaps.starts[i]) / 1e3,
        causes={cause: int(parts[code]) / 1e3 for cause, code in CAUSE_CODES.items() if parts[code]},
        after=_name(gaps, int(gaps.after[i])),
        before=_name(gaps, int(gaps.before[i])),
    )
