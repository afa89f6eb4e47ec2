"""Idle time that waiting for the GPU exposes: which lines of the program wait, where in a recording, and what it is
worth.

A recording of a GPU tells the call and at most the operator around it; the pass that tags eager operators knows the
line of each, and what it launched. Copies to or from the host wait: on an H200 one step of Qwen2.5-VL had 139 calls of
`cudaStreamSynchronize`, and the operators of 139 such copies.
"""

import math
from collections import Counter
from collections.abc import Callable
from statistics import median

from msgspec.structs import replace

from tracekit.model.analysis import Analysis, IdleGap, SyncTime
from tracekit.model.comparison import Side, TracePlace
from tracekit.model.provenance import EagerOps

#: The ends of a copy for which the host waits; of pinned memory it waits in a call of its own.
TO_HOST, PAGEABLE = "Memcpy DtoH", "Pageable"
#: Calls that wait for a copy.
COPYING, WAITING = "memcpy", "streamsynchronize"
#: So many gaps are named.
NAMED = 3


def with_waiting_lines(a: Side, b: Side) -> tuple[Side, Side]:
    """Both sides with `SyncTime.lines`, where one of them is an eager form whose operators were tagged."""
    eager = next((side.provenance for side in (a, b) if isinstance(side.provenance, EagerOps)), None)
    return (a, b) if eager is None else (_with_lines(a, eager), _with_lines(b, eager))


def _with_lines(side: Side, eager: EagerOps) -> Side:
    if side.form is None:
        return side
    recordings = []
    for analysis in (side.analysis, side.rich):
        if analysis is not None and analysis.idle is not None:
            syncs = []
            for sync in analysis.idle.syncs:
                copies = COPYING in sync.call.lower()
                waits = copies or WAITING in sync.call.lower()
                lines = dict(waiting_lines(eager, pageable=copies).most_common()) if waits else {}
                in_eager_code = side.form.name != "eager"
                syncs.append(replace(sync, lines=lines, in_eager_code=in_eager_code) if lines else sync)
            analysis = replace(analysis, idle=replace(analysis.idle, syncs=tuple(syncs)))
        recordings.append(analysis)
    return replace(side, analysis=recordings[0] or side.analysis, rich=recordings[1])


def waiting_lines(eager: EagerOps, *, pageable: bool) -> Counter[str]:
    """How often each line of one eager call waits for a copy; `pageable`: from or to pageable memory alone."""
    found: Counter[str] = Counter()
    for each in eager.activities:
        waits = "Memcpy" in each.name and (PAGEABLE in each.name or (not pageable and each.name.startswith(TO_HOST)))
        if waits and each.op is not None and (line := eager.ops[each.op].line):
            found[line] += 1
    return found


def idle_saving(side: Side, recorded_us: float) -> float:
    """What doing without so much recorded idle time behind synchronising calls (per step, microseconds, all GPUs) saves
    of a call at most.

    Recording lengthens idle time: of the unprofiled call's it is no more than follows calls that waited. Where that is
    not known, the part shrinks with the whole. Idle time of several GPUs is taken for that of one on average. It is
    never more than the call.
    """
    saving = most_slowed(side) * recorded_us / max(len(side.analysis.devices), 1)
    true_us, whole_us = side.unprofiled_idle_us, side.recorded_idle_us
    if true_us is not None and side.idle_estimate is not None:
        # All that a cause may be more may follow such calls.
        causes, after = side.idle_estimate.causes, side.idle_estimate.after_sync_us
        more_us = {cause: us + causes[cause].high_us - causes[cause].us for cause, us in after.items()}
        after_us = math.fsum(us for cause, us in more_us.items() if cause != "sync_wait")
        saving = min(saving, after_us + (idle_at_most(side, ("sync_wait",)) or 0.0), true_us)
    elif true_us is not None and whole_us:
        saving = min(saving * min(true_us / whole_us, 1.0), true_us)
    call_us = side.wall_us or side.span_us
    return saving if call_us is None else min(saving, call_us)


def most_slowed(side: Side) -> float:
    """How many times as long as around a recording the host took for the same work around timed calls, at most; 1 where
    it took less, or where that is not known. What was recorded of the host took so many times as long in a call."""
    form = side.form
    recorded = [median(each.host_us) for each in form.recordings if each.host_us] if form else []
    return max(form.host.high / min(recorded), 1.0) if form and form.host and recorded else 1.0


def idle_at_most(side: Side, causes: tuple[str, ...]) -> float | None:
    """Idle time per step that these causes have at most: the high ends of what each may be, with what nothing explains,
    or what the low ends of the others leave of all, whichever is more, and never more than all. As recorded where the
    unprofiled call's is not known; None without a GPU."""
    whole_us = side.recorded_idle_us if side.unprofiled_idle_us is None else side.unprofiled_idle_us
    if whole_us is None:
        return None
    found = side.calibrated_idle_by_cause()
    us = {**(side.idle_by_cause() if found is None else found)}
    ranges = side.idle_ranges() or {}
    us |= {cause: each.high_us for cause, each in ranges.items()}
    most_us = math.fsum(us.get(cause, 0.0) for cause in causes) + max(side.idle_residual_us or 0.0, 0.0)
    if ranges:
        most_us = max(most_us, whole_us - math.fsum(each.low_us for of, each in ranges.items() if of not in causes))
    return min(most_us, whole_us)


def exposing(side: Side) -> list[SyncTime]:
    """The synchronising calls of the light recording behind which the GPU ran dry."""
    idle = side.analysis.idle
    return [sync for sync in idle.syncs if sync.drained and sync.idle_after_us > 0] if idle else []


def longest_gaps(analysis: Analysis, fits: Callable[[IdleGap], bool]) -> tuple[TracePlace, ...]:
    """The longest gaps of a recording that fit."""
    some = [gap for gap in analysis.idle.largest if fits(gap)] if analysis.idle else []
    return tuple(TracePlace(analysis.trace.path, gap.start_us, gap.duration_us) for gap in some[:NAMED])
