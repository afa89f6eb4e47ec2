"""When was the GPU idle, and why?

A gap that an activity ends is divided at the moment its launch call returned: after it the GPU itself is the cause;
before it, whatever the launching thread was doing, and where that records nothing, the thread that launched what ran
before. A gap that nothing ends (the end of a step) is divided by what the step's thread did. So the causes of a gap add
up to its length, in whole nanoseconds. docs/idle.md says how each cause is told.
"""

from collections import Counter

import numpy as np
from msgspec import Struct

from tracekit import interval
from tracekit.analysis.gaps import (
    Gaps,
    Waits,
    cut_at,
    find_drained,
    find_gaps,
    find_waits,
    join_gaps,
    measure_syncs,
    syncing_threads,
)
from tracekit.analysis.links import launching_calls
from tracekit.analysis.timeline import CAUSE_CODES, Timeline, find_places, lay_flat, names_at
from tracekit.analysis.window import Scope, columns
from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES, CauseTime, DeviceIdle, HostWork, IdleGap, IdleSummary, Place, StepIdle
from tracekit.model.trace import Trace

LARGEST = 10
#: So many kinds of host work are named in a gap.
MOST_WORK = 4


class _Study(Struct, frozen=True):
    """Gaps, their nanoseconds by cause, and the calls under which they began. `unrecorded` is the cause of time without
    any event."""

    gaps: Gaps
    divided: Ints
    drained: Ints
    timeline: Timeline
    waits: Waits
    unrecorded: str


def explain_idle(trace: Trace, scope: Scope) -> IdleSummary:
    """Every gap of every device in the window, divided by cause."""
    gaps = join_gaps([find_gaps(trace, scope, device) for device in scope.windows])
    study = _study(trace, scope, gaps)
    counts = (study.divided > 0).sum(axis=0)
    by_step = np.zeros((len(scope.spans), len(IDLE_CAUSES)), dtype=np.int64)
    for device, windows in scope.step_windows.items():
        # A gap that lasts over several steps is divided between them at their edges. Where steps overlap on the GPU a
        # piece is in each of them, as it is in their idle times: a step's are those from its start to its end.
        own = np.flatnonzero(gaps.device == device)
        pieces = cut_at(gaps.at(own), windows.ravel())
        whole = len(pieces.starts) == len(own)
        divided = study.divided[own] if whole else _divide(pieces, study.timeline, study.unrecorded)
        sums = np.cumsum(divided, axis=0)
        sums = np.concatenate((np.zeros((1, len(IDLE_CAUSES)), dtype=np.int64), sums))
        first, last = (np.searchsorted(pieces.starts, windows[:, at]) for at in (0, 1))
        by_step += sums[last] - sums[first]
    causes = _as_causes(study.divided.sum(axis=0)).items()
    by_device = {device: study.divided[gaps.device == device].sum(axis=0) for device in scope.windows}
    return IdleSummary(
        gap_count=len(gaps.starts),
        causes=tuple(CauseTime(cause, us, int(counts[CAUSE_CODES[cause]])) for cause, us in causes),
        syncs=measure_syncs(scope, study.timeline, study.waits, gaps, study.drained),
        largest=_as_gaps(scope, study, _longest(gaps, LARGEST)),
        by_device=tuple(DeviceIdle(device, _as_causes(own)) for device, own in by_device.items()),
        by_step=tuple(StepIdle(span.index, _as_causes(own)) for span, own in zip(scope.spans, by_step, strict=True)),
    )


def list_gaps(trace: Trace, scope: Scope) -> tuple[IdleGap, ...]:
    """Every gap of every device in the window, in the order of their starts."""
    gaps = join_gaps([find_gaps(trace, scope, device) for device in scope.windows])
    return _as_gaps(scope, _study(trace, scope, gaps), np.argsort(gaps.starts, kind="stable"))


def main_cause(gap: IdleGap) -> str:
    """The cause that takes most of the gap."""
    return max(gap.causes, key=lambda cause: gap.causes[cause], default="unattributed")


def divide_and_place(
    trace: Trace, scope: Scope, gaps: Gaps, parts: Gaps, longest: int
) -> tuple[Ints, list[tuple[int, int, str, str | None]]]:
    """Nanoseconds of each cause (columns, in the order of IDLE_CAUSES) of each of the `parts` that the gaps were cut
    into; and of the longest few gaps start, end, main cause, and where in the program that was, or what the host did.
    """
    study = _study(trace, scope, join_gaps([gaps, parts]))
    rows, until = _longest(gaps, longest), gaps.host_until
    placed: list[tuple[int, int, str, str | None]] = []
    for at, place in zip(rows.tolist(), _places(scope, study, rows), strict=True):
        work = _host_work(study.timeline, gaps, until, at) if place is None else ()
        where = place.words if place else next((one.name for one in work if one.name), None)
        cause = IDLE_CAUSES[int(study.divided[at].argmax())]
        placed.append((int(gaps.starts[at]), int(gaps.ends[at]), cause, where))
    return study.divided[len(gaps.starts) :], placed


def leading_causes(trace: Trace, timeline: Timeline, gaps: Gaps) -> list[str]:
    """For each gap the cause that most of it is due to, by what its threads did."""
    return [IDLE_CAUSES[code] for code in _divide(gaps, timeline, _unrecorded(trace)).argmax(axis=1).tolist()]


def _study(trace: Trace, scope: Scope, gaps: Gaps) -> _Study:
    launching = launching_calls(scope.linked, scope.calls)
    # Those that explain these gaps, and those that only wait for the GPU.
    threads = {*np.unique(gaps.thread).tolist(), *np.unique(gaps.other).tolist()} - {-1}
    timeline = lay_flat(trace, threads | syncing_threads(scope, launching), launching)
    waits = find_waits(timeline)
    unrecorded = _unrecorded(trace)
    divided, drained = _divide(gaps, timeline, unrecorded), find_drained(gaps, waits, timeline)
    return _Study(gaps, divided, drained, timeline, waits, unrecorded)


def _unrecorded(trace: Trace) -> str:
    """Silence is Python, if operators were recorded at all; else nobody can tell."""
    return "python" if (trace.host["kind"] == "op").any() else "unattributed"


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
    silences, owner = interval.holes(np.stack((timeline.starts, timeline.ends), axis=1), on_line)
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


def _longest(gaps: Gaps, most: int) -> Ints:
    return np.argsort(gaps.starts - gaps.ends, kind="stable")[:most]


def _as_gaps(scope: Scope, study: _Study, rows: Ints) -> tuple[IdleGap, ...]:
    gaps, timeline = study.gaps.at(rows), study.timeline
    after, before = (names_at(scope.linked["name"], each) for each in (gaps.after, gaps.before))
    launched_by = names_at(scope.calls["name"], gaps.call)
    syncs = names_at(timeline.table["name"], study.drained[rows])
    until, origin = gaps.host_until, scope.origin_ns
    return tuple(
        IdleGap(
            device=int(gaps.device[at]),
            start_us=(int(gaps.starts[at]) - origin) / 1e3,
            duration_us=int(gaps.ends[at] - gaps.starts[at]) / 1e3,
            causes=_as_causes(study.divided[row]),
            after=after[at],
            before=before[at],
            launched_by=launched_by[at],
            sync=syncs[at],
            host=_host_work(timeline, gaps, until, at),
            where=place,
        )
        for at, (row, place) in enumerate(zip(rows.tolist(), _places(scope, study, rows), strict=True))
    )


def _places(scope: Scope, study: _Study, rows: Ints) -> list[Place | None]:
    """Of each gap where the call stood that let the GPU run dry, else the launch that ended the gap."""
    # The first row of each call, for a second one is its wait; the last place is that of none.
    (calls,) = columns(study.timeline.table, "call")
    row_of = np.full(scope.calls.height + 1, -1, dtype=np.int64)
    row_of[calls[::-1]] = np.arange(len(calls))[::-1]
    row_of[-1] = -1
    asked = np.where(study.drained[rows] >= 0, study.drained[rows], row_of[study.gaps.call[rows]])
    named = np.flatnonzero(asked >= 0)
    found: list[Place | None] = [None] * len(rows)
    for at, place in zip(named.tolist(), find_places(study.timeline, asked[named]), strict=True):
        found[at] = place
    return found


def _host_work(timeline: Timeline, gaps: Gaps, until: Ints, at: int) -> tuple[HostWork, ...]:
    """What the host did in one of the gaps until the launch had returned, by the name of the innermost event; the
    largest few."""
    start, end, thread, other = (int(each[at]) for each in (gaps.starts, until, gaps.thread, gaps.other))
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
