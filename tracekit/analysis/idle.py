"""When was the GPU idle, and why?

A gap that an activity ends is divided at the moment its launch call returned: after it the GPU itself is the cause;
before it, whatever the launching thread was doing, and where that records nothing, the thread that launched what ran
before. A gap that nothing ends (the end of a step) is divided by what the step's thread did. So the causes of a gap add
up to its length, in whole nanoseconds. docs/idle.md says how each cause is told.
"""

from collections import Counter

import numpy as np
from msgspec import Struct

from tracekit.analysis.gaps import (
    Gaps,
    Waits,
    cut_at,
    find_drained,
    find_gaps,
    find_waits,
    measure_syncs,
    syncing_threads,
)
from tracekit.analysis.links import launching_calls
from tracekit.analysis.timeline import CAUSE_CODES, Timeline, find_places, lay_flat
from tracekit.analysis.window import Scope, columns
from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES, CauseTime, DeviceIdle, HostWork, IdleGap, IdleSummary, Place, StepIdle
from tracekit.model.trace import Trace

LARGEST = 10

#: So many kinds of host work are named in a gap.
MOST_WORK = 4


class _Study(Struct, frozen=True):
    """The gaps of each device, their nanoseconds by cause, and the calls under which they began. `unrecorded` is the
    cause of time without any event."""

    gaps: list[Gaps]
    divided: list[Ints]
    drained: list[Ints]
    timeline: Timeline
    waits: Waits
    unrecorded: str


def explain_idle(trace: Trace, scope: Scope) -> IdleSummary:
    """Every gap of every device in the window, divided by cause."""
    study = _study(trace, scope, [find_gaps(trace, scope, device) for device in scope.windows])
    parts = np.concatenate([*study.divided, np.zeros((0, len(IDLE_CAUSES)), dtype=np.int64)])
    counts = (parts > 0).sum(axis=0)
    by_step = np.zeros((len(scope.spans), len(IDLE_CAUSES)), dtype=np.int64)
    for each in study.gaps if scope.spans else ():
        # A gap that lasts over several steps is divided between them at their edges. Where steps overlap on the GPU a
        # piece is in each of them, as it is in their idle times: a step's are those from its start to its end.
        windows = scope.step_windows[each.device]
        pieces = cut_at(each, windows.ravel())
        sums = np.cumsum(_divide(pieces, study.timeline, study.unrecorded), axis=0)
        sums = np.concatenate((np.zeros((1, len(IDLE_CAUSES)), dtype=np.int64), sums))
        first, last = (np.searchsorted(pieces.starts, windows[:, at]) for at in (0, 1))
        by_step += sums[last] - sums[first]
    causes = _as_causes(parts.sum(axis=0)).items()
    divided = zip(study.gaps, study.divided, strict=True)
    return IdleSummary(
        gap_count=len(parts),
        causes=tuple(CauseTime(cause, us, int(counts[CAUSE_CODES[cause]])) for cause, us in causes),
        syncs=measure_syncs(scope, study.timeline, study.waits, study.gaps, study.drained),
        largest=_as_gaps(scope, study, sorted(_chosen(study, LARGEST), key=lambda each: -each.length)[:LARGEST]),
        by_device=tuple(DeviceIdle(each.device, _as_causes(own.sum(axis=0))) for each, own in divided),
        by_step=tuple(StepIdle(span.index, _as_causes(own)) for span, own in zip(scope.spans, by_step, strict=True)),
    )


def list_gaps(trace: Trace, scope: Scope) -> tuple[IdleGap, ...]:
    """Every gap of every device in the window, in the order of their starts."""
    study = _study(trace, scope, [find_gaps(trace, scope, device) for device in scope.windows])
    return _as_gaps(scope, study, sorted(_chosen(study), key=lambda each: each.of(each.gaps.starts)))


def main_cause(gap: IdleGap) -> str:
    """The cause that takes most of the gap."""
    return max(gap.causes, key=lambda cause: gap.causes[cause], default="unattributed")


def divide_and_place(
    trace: Trace, scope: Scope, gaps: Gaps, parts: Gaps, longest: int
) -> tuple[Ints, list[tuple[int, int, str, str | None]]]:
    """Nanoseconds of each cause (columns, in the order of IDLE_CAUSES) of each of the `parts` that the gaps were cut
    into; and of the longest few gaps start, end, main cause, and where in the program that was, or what the host did.
    """
    study = _study(trace, scope, [gaps, parts])
    chosen = _chosen(study, longest)[: min(longest, len(gaps.starts))]
    placed: list[tuple[int, int, str, str | None]] = []
    for each, place in zip(chosen, _places(scope, study, chosen), strict=True):
        work = _host_work(study.timeline, each) if place is None else ()
        where = place.words if place else next((one.name for one in work if one.name), None)
        placed.append((each.of(gaps.starts), each.of(gaps.ends), IDLE_CAUSES[int(each.parts.argmax())], where))
    return study.divided[1], placed


def leading_causes(trace: Trace, scope: Scope, gaps: Gaps) -> list[str]:
    """For each gap the cause that most of it is due to."""
    (parts,) = _study(trace, scope, [gaps]).divided
    return [IDLE_CAUSES[code] for code in parts.argmax(axis=1).tolist()]


def _study(trace: Trace, scope: Scope, gaps: list[Gaps]) -> _Study:
    launching = launching_calls(scope.linked, scope.calls)
    # Those that explain these gaps, and those that only wait for the GPU.
    threads = {int(thread) for each in gaps for column in (each.thread, each.other) for thread in np.unique(column)}
    threads |= syncing_threads(scope, launching)
    timeline = lay_flat(trace, threads - {-1}, launching)
    waits = find_waits(timeline)
    # Silence is Python, if operators were recorded at all; else nobody can tell.
    unrecorded = "python" if (trace.host["kind"] == "op").any() else "unattributed"
    divided = [_divide(each, timeline, unrecorded) for each in gaps]
    drained = [find_drained(each, waits, timeline) for each in gaps]
    return _Study(gaps, divided, drained, timeline, waits, unrecorded)


def _divide(gaps: Gaps, timeline: Timeline, unrecorded: str) -> Ints:
    """Nanoseconds of each cause (columns) of each gap (rows); a row adds up to its gap."""
    parts = np.zeros((len(gaps.starts), len(IDLE_CAUSES)), dtype=np.int64)
    of_host = np.stack((gaps.starts, gaps.host_until), axis=1)
    unknown = (gaps.before >= 0) & (gaps.launched_ns < 0) | (gaps.thread < 0)
    own = ~unknown
    parts[own] = timeline.time_by_cause(timeline.on_line(gaps.thread[own], of_host[own]))
    # While the launching thread records nothing, what the thread before it did is the cause.
    handed = np.flatnonzero(own & (gaps.other != gaps.thread) & (gaps.other >= 0))
    on_line = timeline.on_line(gaps.thread[handed], of_host[handed])
    silences, owner = timeline.silences(on_line)
    rows = handed[owner]
    # From the one thread to the other.
    shift = timeline.line.place(gaps.other[rows], gaps.starts[rows]) - on_line[owner, 0]
    np.add.at(parts, rows, timeline.time_by_cause(silences + shift[:, np.newaxis]))
    began = np.where(unknown, 0, gaps.ends - gaps.host_until)
    # What waited for other work waited in the GPU's queue or its graph; all else for its own launch.
    code = np.where(gaps.queued, CAUSE_CODES["device"], CAUSE_CODES["launch_latency"])
    parts[np.arange(len(parts)), code] += began
    rest = (gaps.ends - gaps.starts) - parts.sum(axis=1)
    parts[unknown, CAUSE_CODES["unattributed"]] += rest[unknown]
    parts[~unknown, CAUSE_CODES[unrecorded]] += rest[~unknown]
    return parts


def _as_causes(parts: Ints) -> dict[str, float]:
    """Microseconds of the causes that have any, in the order of IDLE_CAUSES."""
    return {cause: int(parts[code]) / 1e3 for cause, code in CAUSE_CODES.items() if parts[code]}


class _Chosen(Struct, frozen=True):
    """One gap among those of its device, and what was found of it."""

    gaps: Gaps
    at: int
    host_until: int
    parts: Ints
    sync_row: int

    @property
    def length(self) -> int:
        return int(self.gaps.ends[self.at] - self.gaps.starts[self.at])

    def of(self, column: Ints) -> int:
        return int(column[self.at])


def _chosen(study: _Study, longest: int | None = None) -> list[_Chosen]:
    """The gaps of each device, or the longest few of each."""
    every: list[_Chosen] = []
    for each, parts, rows in zip(study.gaps, study.divided, study.drained, strict=True):
        until = each.host_until
        order = np.argsort(each.starts - each.ends, kind="stable")[:longest].tolist()
        every += [_Chosen(each, at, int(until[at]), parts[at], int(rows[at])) for at in order]
    return every


def _as_gaps(scope: Scope, study: _Study, every: list[_Chosen]) -> tuple[IdleGap, ...]:
    origin, calls = scope.origin_ns, scope.calls["name"]
    return tuple(
        IdleGap(
            device=each.gaps.device,
            start_us=(each.of(each.gaps.starts) - origin) / 1e3,
            duration_us=each.length / 1e3,
            causes=_as_causes(each.parts),
            after=each.gaps.name_of(each.of(each.gaps.after)),
            before=each.gaps.name_of(each.of(each.gaps.before)),
            launched_by=str(calls[call]) if (call := each.of(each.gaps.call)) >= 0 else None,
            sync=study.timeline.table["name"][each.sync_row] if each.sync_row >= 0 else None,
            host=_host_work(study.timeline, each),
            where=place,
        )
        for each, place in zip(every, _places(scope, study, every), strict=True)
    )


def _places(scope: Scope, study: _Study, every: list[_Chosen]) -> list[Place | None]:
    """Of each gap where the call stood that let the GPU run dry, else the launch that ended the gap."""
    found: list[Place | None] = [None] * len(every)
    # The first row of each call, for a second one is its wait; the last place is that of none.
    (calls,) = columns(study.timeline.table, "call")
    row_of = np.full(scope.calls.height + 1, -1, dtype=np.int64)
    row_of[calls[::-1]] = np.arange(len(calls))[::-1]
    row_of[-1] = -1
    named = [each.sync_row if each.sync_row >= 0 else int(row_of[each.of(each.gaps.call)]) for each in every]
    rows = {at: row for at, row in enumerate(named) if row >= 0}
    places = find_places(study.timeline, np.array([*rows.values()], dtype=np.int64))
    for at, place in zip(rows, places, strict=True):
        found[at] = place
    return found


def _host_work(timeline: Timeline, chosen: _Chosen) -> tuple[HostWork, ...]:
    """What the host did until the launch had returned, by the name of the innermost event; the largest few."""
    gaps = chosen.gaps
    start, end = chosen.of(gaps.starts), chosen.host_until
    thread, other = chosen.of(gaps.thread), chosen.of(gaps.other)
    if thread < 0 or end <= start:
        return ()
    of_thread, of_other = timeline.line.place(np.array([thread, other]), np.array([start, start])).tolist()
    pieces = [(of_thread, of_thread + end - start)]
    if other not in (-1, thread):
        pieces += [(of_other + begun, of_other + over) for begun, over in timeline.silent_within(*pieces[0])]
    spent: Counter[str | None] = Counter()
    for begun, over in pieces:
        rows, lengths = timeline.innermost_within(begun, over)
        for name, ns in zip(timeline.table["name"].gather(rows), lengths.tolist(), strict=True):
            spent[name] += ns
    if silent := end - start - spent.total():
        spent[None] = silent
    return tuple(HostWork(name, ns / 1e3) for name, ns in spent.most_common(MOST_WORK))
