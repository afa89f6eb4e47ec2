"""When the GPU had nothing to run, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tracekit.model.analysis import IDLE_CAUSES, HostWork, IdleGap, SyncTime
from tracekit.model.comparison import Comparison, Side
from tracekit.numbers import MISSING, count, duration, duration_change, percent
from tracekit.report.names import clipped, printable
from tracekit.report.sections.kernels import kernel_name
from tracekit.report.table import Column, Table
from tracekit.report.words import CAUSES, cause_words, scope, shared_scope

#: So many kinds of host work are named in a gap.
MOST_WORK = 2
#: Less than a nanosecond is rounding.
SMALLEST_US = 1e-3

Causes = Mapping[str, float]


def causes_present(comparison: Comparison) -> tuple[str, ...]:
    present = {*comparison.a.idle_by_cause(), *comparison.b.idle_by_cause()}
    return (*(each for each in IDLE_CAUSES if each in present), *sorted(present.difference(IDLE_CAUSES)))


def cause_table(comparison: Comparison) -> Table | None:
    """Idle time by cause on both sides; None when a side has no GPU figures."""
    a, b = comparison.a, comparison.b
    if a.analysis.idle is None or b.analysis.idle is None:
        return None
    true_a, true_b = a.calibrated_idle_by_cause(), b.calibrated_idle_by_cause()
    if true_a is None or true_b is None:
        return _recorded_table(comparison)
    return _calibrated_table(comparison, true_a, true_b)


RECORDED_NOTE = (
    "As recorded, which lengthens idle time. What the light recording cannot tell apart, for want of operators, is "
    "divided as in the rich one."
)
CALIBRATED_NOTE = (
    "Idle time of unprofiled calls is wall time less GPU busy time. A and B are the recorded causes without what "
    "recording added, under the assumption that it lengthened all the host's causes alike and the GPU's own not. What "
    "the light recording cannot tell apart, for want of operators, is divided as in the rich one."
)


def _recorded_table(comparison: Comparison) -> Table:
    a, b = comparison.a.idle_by_cause(), comparison.b.idle_by_cause()
    rows = [
        (cause_words(cause), *_change(a.get(cause, 0.0), b.get(cause, 0.0)), _meaning(cause))
        for cause in causes_present(comparison)
    ]
    whole = ("all idle time", *_change(math.fsum(a.values()), math.fsum(b.values())), "")
    columns = (*map(Column, ("A", "B", "Change")), Column("What it means", numeric=False))
    return _cause_table(comparison, columns, (*rows, whole), RECORDED_NOTE)


def _calibrated_table(comparison: Comparison, true_a: Causes, true_b: Causes) -> Table:
    a, b = comparison.a.idle_by_cause(), comparison.b.idle_by_cause()
    rows = [
        (
            cause_words(cause),
            *_change(true_a.get(cause, 0.0), true_b.get(cause, 0.0)),
            duration(a.get(cause, 0.0)),
            duration(b.get(cause, 0.0)),
            _meaning(cause),
        )
        for cause in causes_present(comparison)
    ]
    a_us, b_us = (side.unprofiled_idle_us or 0.0 for side in (comparison.a, comparison.b))
    unseen = [us - math.fsum(true.values()) for us, true in ((a_us, true_a), (b_us, true_b))]
    if max(unseen) > SMALLEST_US:
        rows.append(("no recording shows it", *_change(*unseen), "", "", "idle in unprofiled calls alone"))
    whole = (duration(math.fsum(a.values())), duration(math.fsum(b.values())))
    rows.append(("all idle time", *_change(a_us, b_us), *whole, ""))
    columns = (
        *map(Column, ("A", "B", "Change", "A recorded", "B recorded")),
        Column("What it means", numeric=False),
    )
    return _cause_table(comparison, columns, tuple(rows), CALIBRATED_NOTE)


def _cause_table(
    comparison: Comparison, columns: tuple[Column, ...], rows: tuple[tuple[str, ...], ...], note: str
) -> Table:
    return Table(
        caption=f"Idle time by cause, {shared_scope(comparison)}",
        columns=(Column("Cause", numeric=False), *columns),
        rows=rows,
        note=note,
    )


def _meaning(cause: str) -> str:
    return CAUSES.get(cause, ("", ""))[1]


def _change(a_us: float, b_us: float) -> tuple[str, str, str]:
    return duration(a_us), duration(b_us), duration_change(b_us - a_us)


def gap_table(side: Side, letter: str, limit: int = 8) -> Table | None:
    """The longest idle gaps; None when there are none."""
    idle = side.host.idle
    if idle is None or not idle.largest:
        return None
    rows = tuple(
        (
            duration(gap.start_us),
            duration(gap.duration_us),
            _leading_cause(gap.causes),
            _host_work(gap),
            kernel_name(gap.after, 40) if gap.after else "start of the window",
            kernel_name(gap.before, 40) if gap.before else "end of the window",
            _launch(gap),
        )
        for gap in idle.largest[:limit]
    )
    return Table(
        caption=f"Longest idle gaps of {letter}: {side.label}",
        columns=(
            Column("Starts at"),
            Column("Lasts"),
            Column("Mostly", numeric=False),
            Column("The host meanwhile", numeric=False),
            Column("After", numeric=False),
            Column("Before", numeric=False),
            Column("Ended by", numeric=False),
        ),
        rows=rows,
        note=f"{len(rows)} of {idle.gap_count:,} gaps, as recorded{_in_which(side)}.",
    )


def _host_work(gap: IdleGap) -> str:
    """What the launching thread did, the largest first, as far as it is told."""
    told = [f"{_event_name(work)} {duration(work.us)}" for work in gap.host[:MOST_WORK]]
    return ", ".join(told) or MISSING


def _event_name(work: HostWork) -> str:
    return clipped(printable(work.name), 40) if work.name else "nothing recorded"


def _launch(gap: IdleGap) -> str:
    """The launch that ended the gap, the call that let the GPU run dry, and where that was made."""
    told = [gap.launched_by, f"after {gap.sync}" if gap.sync else None, gap.where.words if gap.where else None]
    return clipped(printable("; ".join(each for each in told if each)), 120) or MISSING


def _in_which(side: Side) -> str:
    """Of two recordings of a form the rich one tells what the host did, and lengthens it more."""
    return " in the rich recording, which lengthens them" if side.host is side.rich else ""


def _leading_cause(causes: dict[str, float]) -> str:
    total = sum(causes.values())
    if not total:
        return MISSING
    cause = max(causes, key=lambda each: causes[each])
    return f"{cause_words(cause)} ({percent(causes[cause] / total, 0)})"


def _made_at(side: Side, sync: SyncTime) -> str:
    """Where the call was made; tracekit's own wait ends each step that it records."""
    if sync.where:
        return clipped(printable(sync.where), 240)
    own = side.form is not None and "DeviceSynchronize" in sync.call and not (sync.drained or sync.idle_after_us)
    return "the end of a recorded step, where tracekit waits" if own else "not recorded"


def sync_table(side: Side, letter: str, limit: int = 8) -> Table | None:
    """Synchronising calls after which the GPU ran dry; None when there are none."""
    idle = side.host.idle
    if idle is None or not idle.syncs:
        return None
    steps = max(side.host.window.steps, 1)
    rows = tuple(
        (
            printable(sync.call),
            count(sync.count / steps),
            count(sync.drained / steps),
            duration(sync.idle_after_us / steps),
            _made_at(side, sync),
        )
        for sync in idle.syncs[:limit]
    )
    return Table(
        caption=f"Synchronising calls of {letter}: {side.label}, {scope(side)}",
        columns=(
            Column("Call", numeric=False),
            Column("Count"),
            Column("GPU ran dry"),
            Column("Idle behind it"),
            Column("Where", numeric=False),
        ),
        rows=rows,
        note=f"Idle time as recorded{_in_which(side)}.",
    )
