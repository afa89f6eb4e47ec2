"""When was the GPU idle, and why?

A gap that an activity ends is divided at the moment its launch call returned: after it the device itself is the cause;
before it, whatever the launching thread was doing, and where that records nothing, the thread that launched what ran
before. A gap that nothing ends (the end of a step) is divided by what the step's thread did. So the causes of a gap add
up to its length, in whole nanoseconds. docs/idle.md says how each cause is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracekit.analysis.gaps import Gaps, Ints, cut_by_steps, find_gaps
from tracekit.analysis.links import launching_calls
from tracekit.analysis.places import find_places
from tracekit.analysis.syncs import Waits, find_drained, find_waits, measure_syncs, syncing_threads
from tracekit.analysis.timeline import CAUSE_CODES, Timeline, lay_flat
from tracekit.analysis.window import Scope
from tracekit.model.analysis import (
    IDLE_CAUSES,
    CauseTime,
    DeviceIdle,
    HostWork,
    IdleGap,
    IdleSummary,
    Place,
    StepIdle,
)
from tracekit.model.trace import Trace

LARGEST = 10

#: So many kinds of host work are named in a gap.
MOST_WORK = 4


@dataclass(frozen=True, slots=True)
class _Study:
    """The gaps of each device, and what was found of them."""

    gaps: list[Gaps]
    divided: list[NDArray[np.int64]]
    drained: list[tuple[Ints, Ints]]
    timelines: dict[int, Timeline]
    waits: dict[int, Waits]
    unrecorded: str


def explain_idle(trace: Trace, scope: Scope) -> IdleSummary:
    """Every gap of every device in the window, divided by cause."""
    study = _study(trace, scope)
    return IdleSummary(
        gap_count=sum(len(each.starts) for each in study.gaps),
        causes=_sum_causes(study.divided),
        syncs=measure_syncs(scope, study.timelines, study.waits, study.gaps, study.drained),
        largest=_as_gaps(scope, study, sorted(_chosen(study, LARGEST), key=lambda each: -each.length)[:LARGEST]),
        by_device=tuple(
            DeviceIdle(each.device, _as_causes(parts.sum(axis=0)))
            for each, parts in zip(study.gaps, study.divided, strict=True)
        ),
        by_step=_by_step(scope, study.timelines, study.gaps, study.unrecorded),
    )


def list_gaps(trace: Trace, scope: Scope) -> tuple[IdleGap, ...]:
    """Every gap of every device in the window, in the order of their starts."""
    study = _study(trace, scope)
    return _as_gaps(scope, study, sorted(_chosen(study), key=lambda each: each.of(each.gaps.starts)))


def main_cause(gap: IdleGap) -> str:
    """The cause that takes most of the gap."""
    return max(gap.causes, key=lambda cause: gap.causes[cause], default="unattributed")


def _study(trace: Trace, scope: Scope) -> _Study:
    gaps = [find_gaps(trace, scope, device) for device in scope.windows]
    launching = launching_calls(scope.linked, scope.calls)
    threads = {int(thread) for each in gaps for column in (each.thread, each.other) for thread in np.unique(column)}
    threads |= syncing_threads(scope, launching)
    timelines = {thread: lay_flat(trace, thread, launching) for thread in sorted(threads) if thread >= 0}
    unrecorded = _unrecorded_cause(trace)
    waits = {thread: find_waits(timeline) for thread, timeline in timelines.items()}
    return _Study(
        gaps=gaps,
        divided=[_divide(each, timelines, unrecorded) for each in gaps],
        drained=[find_drained(each, waits) for each in gaps],
        timelines=timelines,
        waits=waits,
        unrecorded=unrecorded,
    )


def leading_causes(trace: Trace, scope: Scope, gaps: Gaps) -> list[str]:
    """For each gap the cause that most of it is due to."""
    launching = launching_calls(scope.linked, scope.calls)
    threads = {int(thread) for column in (gaps.thread, gaps.other) for thread in np.unique(column)}
    timelines = {thread: lay_flat(trace, thread, launching) for thread in sorted(threads) if thread >= 0}
    parts = _divide(gaps, timelines, _unrecorded_cause(trace))
    return [IDLE_CAUSES[code] for code in parts.argmax(axis=1).tolist()]


def _unrecorded_cause(trace: Trace) -> str:
    """What time without any event stands for: Python, if operators were recorded at all; else nobody can tell."""
    return "python" if (trace.host["kind"] == "op").any() else "unattributed"


def _divide(gaps: Gaps, timelines: dict[int, Timeline], unrecorded: str) -> NDArray[np.int64]:
    """Nanoseconds of each cause (columns) of each gap (rows); a row adds up to its gap."""
    parts = np.zeros((len(gaps.starts), len(IDLE_CAUSES)), dtype=np.int64)
    host_until = _host_until(gaps)
    unknown = (gaps.before >= 0) & (gaps.launched_ns < 0) | (gaps.thread < 0)
    for thread, timeline in timelines.items():
        own = (gaps.thread == thread) & ~unknown
        parts[own] = timeline.time_by_cause(gaps.starts[own], host_until[own])
        handed = np.flatnonzero(own & (gaps.other != thread) & (gaps.other >= 0))
        rows, starts, ends = timeline.silences(gaps.starts[handed], host_until[handed])
        _add_of_others(parts, handed[rows], gaps.other[handed[rows]], timelines, starts, ends)
    parts[:, CAUSE_CODES["device"]] += np.where(unknown, 0, gaps.ends - host_until)
    rest = (gaps.ends - gaps.starts) - parts.sum(axis=1)
    parts[unknown, CAUSE_CODES["unattributed"]] += rest[unknown]
    parts[~unknown, CAUSE_CODES[unrecorded]] += rest[~unknown]
    return parts


def _host_until(gaps: Gaps) -> Ints:
    """Until when the host is the cause: its launch call's return, or the whole gap where nothing ends it."""
    return np.where(gaps.before >= 0, np.clip(gaps.launched_ns, gaps.starts, gaps.ends), gaps.ends)


def _add_of_others(
    parts: NDArray[np.int64], rows: Ints, threads: Ints, timelines: dict[int, Timeline], starts: Ints, ends: Ints
) -> None:
    """While the launching thread records nothing, what the thread before it did is the cause."""
    for thread in np.unique(threads).tolist():
        own = threads == thread
        np.add.at(parts, rows[own], timelines[thread].time_by_cause(starts[own], ends[own]))


def _as_causes(parts: NDArray[np.int64]) -> dict[str, float]:
    """Microseconds of the causes that have any, in the order of IDLE_CAUSES."""
    return {cause: int(parts[code]) / 1e3 for cause, code in CAUSE_CODES.items() if parts[code]}


def _sum_causes(divided: Iterable[NDArray[np.int64]]) -> tuple[CauseTime, ...]:
    """In the order of IDLE_CAUSES; causes without time are left out."""
    parts = np.concatenate([*divided, np.zeros((0, len(IDLE_CAUSES)), dtype=np.int64)])
    counts = (parts > 0).sum(axis=0)
    return tuple(
        CauseTime(cause, us, int(counts[CAUSE_CODES[cause]])) for cause, us in _as_causes(parts.sum(axis=0)).items()
    )


def _by_step(scope: Scope, timelines: dict[int, Timeline], gaps: list[Gaps], unrecorded: str) -> tuple[StepIdle, ...]:
    """One entry a step; a gap that lasts over several is divided between them at their edges."""
    totals = np.zeros((len(scope.spans), len(IDLE_CAUSES)), dtype=np.int64)
    for each in gaps if scope.spans else ():
        pieces, steps = cut_by_steps(scope, each)
        np.add.at(totals, steps, _divide(pieces, timelines, unrecorded))
    return tuple(StepIdle(span.index, _as_causes(parts)) for span, parts in zip(scope.spans, totals, strict=True))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """One gap among those of its device, and what was found of it."""

    gaps: Gaps
    at: int
    parts: NDArray[np.int64]
    sync_thread: int
    sync_row: int

    @property
    def length(self) -> int:
        return int(self.gaps.ends[self.at] - self.gaps.starts[self.at])

    def of(self, column: Ints) -> int:
        return int(column[self.at])


def _chosen(study: _Study, longest: int | None = None) -> list[_Chosen]:
    """The gaps of each device, or the longest few of each."""
    every: list[_Chosen] = []
    for each, parts, (threads, rows) in zip(study.gaps, study.divided, study.drained, strict=True):
        order = np.argsort(each.starts - each.ends, kind="stable")[:longest].tolist()
        every += [_Chosen(each, at, parts[at], int(threads[at]), int(rows[at])) for at in order]
    return every


def _as_gaps(scope: Scope, study: _Study, every: list[_Chosen]) -> tuple[IdleGap, ...]:
    origin = min((int(window[0, 0]) for window in scope.windows.values() if len(window)), default=0)
    places = _places(study.timelines, [_row_to_name(study.timelines, chosen) for chosen in every])
    return tuple(
        _as_gap(scope, study.timelines, chosen, place, origin) for chosen, place in zip(every, places, strict=True)
    )


def _as_gap(
    scope: Scope, timelines: dict[int, Timeline], chosen: _Chosen, place: Place | None, origin_ns: int
) -> IdleGap:
    gaps, call = chosen.gaps, chosen.of(chosen.gaps.call)
    sync = timelines[chosen.sync_thread].table["name"][chosen.sync_row] if chosen.sync_row >= 0 else None
    return IdleGap(
        device=gaps.device,
        start_us=(chosen.of(gaps.starts) - origin_ns) / 1e3,
        duration_us=chosen.length / 1e3,
        causes=_as_causes(chosen.parts),
        after=_name(gaps, chosen.of(gaps.after)),
        before=_name(gaps, chosen.of(gaps.before)),
        launched_by=str(scope.calls["name"][call]) if call >= 0 else None,
        sync=sync,
        host=_host_work(timelines, chosen),
        where=place,
    )


def _name(gaps: Gaps, activity: int) -> str | None:
    return str(gaps.names[activity]) if activity >= 0 else None


def _host_work(timelines: dict[int, Timeline], chosen: _Chosen) -> tuple[HostWork, ...]:
    """What the host did until the launch had returned, by the name of the innermost event; the largest few."""
    gaps = chosen.gaps
    start, end = chosen.of(gaps.starts), chosen.of(gaps.ends)
    if chosen.of(gaps.before) >= 0:
        # As in `_host_until`.
        end = min(max(chosen.of(gaps.launched_ns), start), end)
    timeline = timelines.get(chosen.of(gaps.thread))
    if timeline is None or end <= start:
        return ()
    spent: Counter[str | None] = Counter()
    pieces = [(timeline, start, end)]
    other = timelines.get(chosen.of(gaps.other))
    if other is not None and other is not timeline:
        _, starts, ends = timeline.silences(np.array([start], dtype=np.int64), np.array([end], dtype=np.int64))
        pieces += [(other, begun, over) for begun, over in zip(starts.tolist(), ends.tolist(), strict=True)]
    for each, begun, over in pieces:
        for row, ns in each.innermost_within(begun, over):
            spent[each.table["name"][row]] += ns
    silent = end - start - spent.total()
    if silent:
        spent[None] = silent
    return tuple(HostWork(name, ns / 1e3) for name, ns in spent.most_common(MOST_WORK))


def _row_to_name(timelines: dict[int, Timeline], chosen: _Chosen) -> tuple[int, int] | None:
    """Thread and row of the call that let the GPU run dry, else of the launch that ended the gap."""
    if chosen.sync_row >= 0:
        return chosen.sync_thread, chosen.sync_row
    thread, call = chosen.of(chosen.gaps.thread), chosen.of(chosen.gaps.call)
    if thread not in timelines or call < 0:
        return None
    table, moment = timelines[thread].table, chosen.of(chosen.gaps.called_ns)
    starts = table["start_ns"].to_numpy()
    first, last = int(np.searchsorted(starts, moment, "left")), int(np.searchsorted(starts, moment, "right"))
    at_once = table["call"].slice(first, last - first).to_list()
    return (thread, first + at_once.index(call)) if call in at_once else None


def _places(timelines: dict[int, Timeline], rows: list[tuple[int, int] | None]) -> list[Place | None]:
    """Where each of these calls was made; a thread's table is looked through once."""
    places: dict[tuple[int, int], Place | None] = {}
    for thread in {each[0] for each in rows if each}:
        own = [each[1] for each in rows if each and each[0] == thread]
        found = find_places(timelines[thread], np.array(own, dtype=np.int64))
        places |= {(thread, row): place for row, place in zip(own, found, strict=True)}
    return [places[each] if each else None for each in rows]
