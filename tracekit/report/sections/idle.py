"""When the GPU had nothing to run and why, and how far the host ran ahead of it."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from tracekit.model.analysis import IDLE_CAUSES, DeviceQueue, Percentiles
from tracekit.model.comparison import Side
from tracekit.model.idle_estimate import MOST_SLOWED, NOTHING, Between, change_between
from tracekit.names import clipped
from tracekit.numbers import MISSING, count, duration, duration_within, percent
from tracekit.report.document import Cell, Table, columns, filled_table
from tracekit.report.sections.kernels import kernel_name
from tracekit.report.words.common import CAUSES, Sides, cause_words, scope, scope_of, side_name

#: So many kinds of host work are named in a gap.
MOST_WORK = 2
#: Less than a nanosecond is rounding.
SMALLEST_US = 1e-3
#: What follows calls that waited, and what has the causes of a whole step, is told from these shares of idle time on.
LEAST_AFTER_SYNC, LEAST_UNALIGNED = 0.1, 0.01
RECORDED_NOTE = "Profiled, so overstated."
CALIBRATED_NOTE = (
    "Idle is unprofiled wall time minus GPU busy time. Its causes are the trace's without profiler overhead (host"
    " causes scaled alike, est.)."
)
#: Of sides with both recordings.
DIVIDED_NOTE = " The full trace divides what the kernel-only trace leaves unattributed."
#: Of sides whose gaps were replayed, and of those with both recordings.
ESTIMATED_NOTE = (
    "Idle is unprofiled wall time minus GPU busy time. Each gap's length is the kernel-only trace's without what"
    " recording adds ({cost})."
)
ALIGNED_NOTE = " Its causes are the same gap's in the full trace."
MEASURED, ASSUMED = "measured in this run", "assumed: 2 to 22 µs a launch"
#: Of sides whose recorded causes have a range.
ALONE_NOTE = (
    " In parentheses: what each may be without what recording adds at most (assumed: 22 µs a launch and 4 µs an"
    f" operator, or a call {MOST_SLOWED:g} times as long)."
)

#: Of sides that communicate.
NOT_IDLE = " Communication that waits for other ranks counts as busy."
#: What causes leave of idle time.
UNEXPLAINED, UNEXPLAINED_MEANING = "not explained", "idle less all causes; below 0 they exceed it"


def idle_causes(side: Side, *, profiled: bool) -> dict[str, Between]:
    """Idle time by cause: as recorded, or of the unprofiled call. What has no known range is as if it were exact."""
    if not profiled and (ranges := side.idle_ranges()) is not None:
        return ranges
    causes = side.idle_by_cause() if profiled else side.calibrated_idle_by_cause() or {}
    return {cause: Between(us, us, us) for cause, us in causes.items()}


def ranged_idle_causes(side: Side, *, profiled: bool) -> dict[str, Between]:
    """The same, and of one trace alone what each may be without what recording adds."""
    return (side.recorded_idle_ranges() if profiled else None) or idle_causes(side, profiled=profiled)


def causes_present(sides: Sides) -> tuple[str, ...]:
    present = {
        cause
        for _, side in sides
        for cause in (*side.idle_by_cause(), *(side.idle_ranges() or side.recorded_idle_ranges() or ()))
    }
    return (*(each for each in IDLE_CAUSES if each in present), *sorted(present.difference(IDLE_CAUSES)))


def cause_table(sides: Sides) -> Table | None:
    """Idle time by cause of every side, of two their change too; None when a side has no GPU figures."""
    if any(side.analysis.idle is None for _, side in sides):
        return None
    is_calibrated = all(side.unprofiled_idle_us is not None for _, side in sides)
    causes = [ranged_idle_causes(side, profiled=not is_calibrated) for _, side in sides]
    # Calibrated figures stand beside the recorded ones; of more sides such a table would be too wide to read.
    beside = [side.idle_by_cause() for _, side in sides] if is_calibrated and len(sides) <= 2 else []
    rows = [
        (
            cause_words(cause),
            *_shown([each.get(cause, NOTHING) for each in causes], exact=not is_calibrated),
            *(duration(each.get(cause, 0.0)) for each in beside),
            CAUSES.get(cause, ("", ""))[1],
        )
        for cause in causes_present(sides)
    ]
    whole = [math.fsum(part.us for part in each.values()) for each in causes]
    if is_calibrated:
        unexplained = [side.idle_residual_us or 0.0 for _, side in sides]
        if max(map(abs, unexplained)) > SMALLEST_US:
            rows.append((UNEXPLAINED, *_shown(_exact(unexplained)), *[""] * len(beside), UNEXPLAINED_MEANING))
        whole = [side.unprofiled_idle_us or 0.0 for _, side in sides]
    recorded = (duration(math.fsum(each.values())) for each in beside)
    rows.append(("all idle time", *_shown(_exact(whole)), *recorded, ""))
    labels = [letter or "Idle" for letter, _ in sides] + (["Change"] if len(sides) == 2 else [])
    labels += [f"{letter} profiled".strip() for letter, _ in sides] if beside else []
    heads = (*columns("Cause", figures=labels), *columns("What it means"))
    note = _cause_note(sides, is_calibrated=is_calibrated)
    return Table(f"Idle time by cause, {scope_of(sides)}", heads, tuple(rows), note)


def _exact(figures: Iterable[float]) -> list[Between]:
    return [Between(us, us, us) for us in figures]


def _shown(figures: Sequence[Between], *, exact: bool = False) -> tuple[str, ...]:
    """The figures, and of two their change; of more without their ends, for which there is no room. `exact` ones are
    known beside what they may be."""
    ends = len(figures) <= 2
    change = [change_between(*figures)] if len(figures) == 2 else []
    return (
        *(duration_within(each.us, each.low_us, each.high_us, ends=ends, exact=exact) for each in figures),
        *(duration_within(each.us, each.low_us, each.high_us, signed=True, exact=exact) for each in change),
    )


def _cause_note(sides: Sides, *, is_calibrated: bool) -> str:
    estimates = [side.idle_estimate for _, side in sides if side.idle_estimate is not None]
    if is_calibrated and len(estimates) == len(sides):
        note = ESTIMATED_NOTE.format(cost=MEASURED if all(each.cost_measured for each in estimates) else ASSUMED)
        note += ALIGNED_NOTE if any(side.rich for _, side in sides) else ""
        note += "".join(f" {each}" for letter, side in sides for each in _told_of_estimate(letter, side))
    else:
        # Whether a rich recording tells of time that the light one has no cause for.
        light = [side.analysis.idle for _, side in sides if side.analysis.idle and side.host is side.rich]
        divided = any(each.cause == "unattributed" and each.us for idle in light for each in idle.causes)
        note = (CALIBRATED_NOTE if is_calibrated else RECORDED_NOTE) + (DIVIDED_NOTE if divided else "")
        alone = not is_calibrated and len(sides) <= 2 and any(side.recorded_idle_estimate for _, side in sides)
        note += ALONE_NOTE if alone else ""
    return note + (NOT_IDLE if any(side.analysis.communication for _, side in sides) else "")


def _told_of_estimate(letter: str, side: Side) -> Iterator[str]:
    """`Of A's Python 1.00 ms follow a synchronising call (cudaStreamSynchronize, aten::item, at model.py:12).`
    And how much has no gap of its own in the full trace."""
    estimate, idle_us = side.idle_estimate, side.unprofiled_idle_us
    if estimate is None or not idle_us:
        return
    of = f"Of {letter}'s" if letter else "Of"
    drained = [sync for sync in (side.host.idle.syncs if side.host.idle else ()) if sync.idle_after_us]
    longest = max(drained, key=lambda sync: sync.idle_after_us, default=None)
    made_at = ""
    if longest:
        made_at = f" ({clipped(', '.join(filter(None, (longest.call, longest.where))), 240)})"
    for cause, us in estimate.after_sync_us.items():
        if us >= LEAST_AFTER_SYNC * idle_us:
            yield f"{of} {cause_words(cause)} {duration(us)} follow a synchronising call{made_at}."
    if estimate.unaligned_us >= LEAST_UNALIGNED * idle_us:
        yield (
            f"{of} idle time {duration(estimate.unaligned_us)} have the causes of the whole call: the traces' launches"
            " differ there."
        )


def gap_table(side: Side, letter: str, limit: int = 8) -> Table | None:
    """The longest idle gaps; None when there are none."""
    if (idle := side.host.idle) is None:
        return None
    rows: list[tuple[Cell, ...]] = []
    for gap in idle.largest[:limit]:
        # Its largest cause, what the launching thread did meanwhile, and the launch that ended it, with the call that
        # let the GPU run dry and where that was made.
        whole_us = sum(gap.causes.values())
        cause = max(gap.causes, key=gap.causes.__getitem__) if whole_us else None
        work = ", ".join(
            f"{clipped(each.name, 40) if each.name else 'nothing recorded'} {duration(each.us)}"
            for each in gap.host[:MOST_WORK]
        )
        ended = (gap.launched_by, f"after {gap.sync}" if gap.sync else None, gap.where.words if gap.where else None)
        told: tuple[Cell, ...] = (
            f"{cause_words(cause)} ({percent(gap.causes[cause] / whole_us, 0)})" if cause else MISSING,
            work or MISSING,
            kernel_name(gap.after, 40) if gap.after else "start of the window",
            kernel_name(gap.before, 40) if gap.before else "end of the window",
            clipped("; ".join(filter(None, ended)), 120) or MISSING,
        )
        rows.append((duration(gap.start_us), duration(gap.duration_us), *told))
    words = columns("Cause", "Host meanwhile", "After", "Before", "Ended by")
    heads = (*columns(figures=("Start", "Duration")), *words)
    note = f"{len(rows)} of {idle.gap_count:,} gaps, profiled{_in_which(side)}."
    return filled_table(f"Longest idle gaps of {side_name(letter, side)}", heads, rows, note)


def _in_which(side: Side) -> str:
    """Of two recordings of a form the rich one tells what the host did, and lengthens it more."""
    return " in the full trace" if side.host is side.rich else ""


def sync_table(side: Side, letter: str, limit: int = 8) -> Table | None:
    """Synchronising calls that drained the GPU's queue; None when there are none."""
    if (idle := side.host.idle) is None:
        return None
    steps, rows = max(side.host.window.steps, 1), []
    for sync in idle.syncs[:limit]:
        # tracekit's own wait ends each step that it records.
        own = side.form is not None and "DeviceSynchronize" in sync.call and not (sync.drained or sync.idle_after_us)
        where = clipped(sync.where or "", 240) or ("end of a step, by tracekit" if own else "not recorded")
        figures = (count(sync.count / steps), count(sync.drained / steps), duration(sync.idle_after_us / steps))
        rows.append((sync.call, *figures, where))
    heads = (*columns("Call", figures=("Count", "Queue drained", "Idle behind it")), *columns("Where"))
    caption = f"Synchronising calls of {side_name(letter, side)}, {scope(side)}"
    return filled_table(caption, heads, rows, f"Idle time is profiled{_in_which(side)}.")


def _delay(found: Percentiles | None) -> str:
    if found is None:
        return "none"
    return " · ".join(duration(us) for us in (found.p10_us, found.p50_us, found.p90_us, found.p99_us))


def _time(queue: DeviceQueue, us: float, steps: int) -> str:
    whole = queue.starved_us + queue.delayed_us + queue.hand_to_mouth_us + queue.backed_up_us
    return f"{duration(us / steps)} ({percent(us / whole if whole else None, 0)})"


#: Figures of one device's queue, for so many steps.
QUEUE: dict[str, Callable[[DeviceQueue, int], str]] = {
    "Launches, copies and memsets": lambda queue, steps: count(queue.items / steps),
    "Launches into an empty queue": lambda queue, _steps: percent(
        queue.starved_items / queue.items if queue.items else None, 0
    ),
    "Launch delay, kernels: p10 · p50 · p90 · p99": lambda queue, _steps: _delay(queue.delays),
    "Launch delay, CUDA graphs": lambda queue, _steps: _delay(queue.graph_delays),
    "Idle, queue empty": lambda queue, steps: _time(queue, queue.starved_us, steps),
    "Idle, work queued": lambda queue, steps: _time(queue, queue.delayed_us, steps),
    "Busy, queue empty": lambda queue, steps: _time(queue, queue.hand_to_mouth_us, steps),
    "Busy, work queued": lambda queue, steps: _time(queue, queue.backed_up_us, steps),
    "Mean queue depth": lambda queue, _steps: f"{queue.mean_depth:,.1f}",
    "Maximum queue depth": lambda queue, _steps: count(queue.most_depth),
}


def queue_table(sides: Sides) -> Table | None:
    """The queue of each side's GPU; None where launches were not recorded, and for several GPUs."""
    each_side = [(side.analysis.queue or (), side.steps) for _, side in sides]
    queues = [(found[0], steps) for found, steps in each_side if len(found) == 1]
    if len(queues) < len(sides):
        return None
    return Table(
        caption=f"Launch queue, {scope_of(sides)}",
        columns=columns("Figure", figures=(letter for letter, _ in sides)),
        rows=tuple((label, *(figure(*each) for each in queues)) for label, figure in QUEUE.items()),
        note="Profiled. A CUDA graph is one launch.",
    )
