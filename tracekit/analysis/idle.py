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
from tracekit.analysis.window import Scope, columns
from tracekit.model.analysis import IDLE_CAUSES, CauseTime, IdleGap, IdleSummary, SyncTime
from tracekit.model.trace import Trace

LARGEST = 10


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of one device as columns. `thread` is the host thread that decides the causes, -1 where none is known.
    `launched_ns` is when the call that launched the ending activity returned, -1 where no such call is recorded."""

    device: int
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    thread: NDArray[np.int64]
    launched_ns: NDArray[np.int64]
    after: list[str | None]
    before: list[str | None]


def explain_idle(trace: Trace, scope: Scope) -> IdleSummary:
    """Every gap of every device in the window, divided by cause."""
    gaps = [_find_gaps(trace, scope, device) for device in scope.windows]
    threads = {int(thread) for each in gaps for thread in np.unique(each.thread) if thread >= 0}
    threads |= _syncing_threads(scope)
    launching = set(scope.activities["call"].drop_nulls().to_list())
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
    return "python" if trace.host.filter(pl.col("kind") == "op").height else "unattributed"


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
    names = joined["name"].to_list()
    return Gaps(
        device=device,
        starts=holes[:, 0],
        ends=holes[:, 1],
        thread=np.where(ended, threads[at] if len(at) else -1, _threads_of_steps(scope, holes)),
        launched_ns=np.where(ended, launched[at], -1),
        after=_names_before(names, ends, holes[:, 0]),
        before=[names[i] if there else None for i, there in zip(following, ended, strict=True)],
    )


def _names_before(names: list[str], ends: NDArray[np.int64], moments: NDArray[np.int64]) -> list[str | None]:
    """The activity that ended when each gap began; None where the window itself began there."""
    order = np.argsort(ends, kind="stable")
    at = np.searchsorted(ends[order], moments, side="left")
    found = [
        order[i] if i < len(order) and ends[order[i]] == moment else None for i, moment in zip(at, moments, strict=True)
    ]
    return [names[i] if i is not None else None for i in found]


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
    by_activity = np.array([name is not None for name in gaps.before], dtype=bool)
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
    waits = pl.Series([is_sync_call(name) for name in scope.calls["name"]], dtype=pl.Boolean)
    return set(scope.calls.filter(waits)["thread"].to_list())


def _measure_syncs(scope: Scope, gaps: list[Gaps], timelines: dict[int, Timeline]) -> tuple[SyncTime, ...]:
    """Per name: the calls in the window, and the gaps that began while such a call waited."""
    counts: Counter[str] = Counter()
    idle: Counter[str] = Counter()
    where: dict[str, Counter[str]] = {}
    for thread, timeline in timelines.items():
        syncs = timeline.table.with_row_index("row").filter(
            (pl.col("kind") == "call")
            & pl.Series([is_sync_call(name) for name in timeline.table["name"]], dtype=pl.Boolean)
        )
        syncs = syncs.filter(pl.Series(_inside(scope, syncs["start_ns"].to_numpy()), dtype=pl.Boolean))
        names, rows = syncs["name"].to_list(), syncs["row"].to_list()
        counts.update(names)
        for name, row in zip(names, rows, strict=True):
            where.setdefault(name, Counter()).update(filter(None, [timeline.callers.get(row)]))
        for each in gaps:
            for index, gap_ns in _drained(each, thread, *columns(syncs, "start_ns", "end_ns")):
                idle[names[index]] += gap_ns
    return tuple(
        SyncTime(name, count, idle[name] / 1e3, next((caller for caller, _ in where[name].most_common(1)), None))
        for name, count in counts.most_common()
    )


def _inside(scope: Scope, moments: NDArray[np.int64]) -> NDArray[np.bool_]:
    inside = np.zeros(len(moments), dtype=bool)
    for window in scope.windows.values():
        for begin, end in window:
            inside |= (moments >= begin) & (moments < end)
    return inside


def _drained(gaps: Gaps, thread: int, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Iterable[tuple[int, int]]:
    """For each gap of the thread that began inside one of these calls: the call's position and the gap's length."""
    own = gaps.thread == thread
    begins, lengths = gaps.starts[own], (gaps.ends - gaps.starts)[own]
    at = np.searchsorted(starts, begins, side="right") - 1
    for index, begin, gap_ns in zip(at, begins, lengths, strict=True):
        if index >= 0 and begin <= ends[index]:
            yield int(index), int(gap_ns)


def _largest(scope: Scope, gaps: list[Gaps], divided: list[NDArray[np.int64]]) -> tuple[IdleGap, ...]:
    every = [(each, parts, i) for each, parts in zip(gaps, divided, strict=True) for i in range(len(each.starts))]
    every.sort(key=lambda item: -int(item[0].ends[item[2]] - item[0].starts[item[2]]))
    origin = min((int(window[0, 0]) for window in scope.windows.values() if len(window)), default=0)
    return tuple(_as_gap(each, parts[i], i, origin) for each, parts, i in every[:LARGEST])


def _as_gap(gaps: Gaps, parts: NDArray[np.int64], i: int, origin_ns: int) -> IdleGap:
    return IdleGap(
        device=gaps.device,
        start_us=(int(gaps.starts[i]) - origin_ns) / 1e3,
        duration_us=int(gaps.ends[i] - gaps.starts[i]) / 1e3,
        causes={cause: int(parts[code]) / 1e3 for cause, code in CAUSE_CODES.items() if parts[code]},
        after=gaps.after[i],
        before=gaps.before[i],
    )
