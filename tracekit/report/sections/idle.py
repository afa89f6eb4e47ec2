"""When the GPU had nothing to run, and why."""

from __future__ import annotations

from tracekit.model.analysis import IDLE_CAUSES, HostWork, IdleGap
from tracekit.model.comparison import Comparison, Side
from tracekit.report.names import clipped, printable
from tracekit.report.numbers import MISSING, count, duration, duration_change, percent
from tracekit.report.sections.kernels import kernel_name
from tracekit.report.table import Column, Table
from tracekit.report.words import CAUSES, cause_words, scope, shared_scope

#: So many kinds of host work are named in a gap.
MOST_WORK = 2


def causes_present(comparison: Comparison) -> tuple[str, ...]:
    present = {*comparison.a.idle_by_cause(), *comparison.b.idle_by_cause()}
    return (*(each for each in IDLE_CAUSES if each in present), *sorted(present.difference(IDLE_CAUSES)))


def cause_table(comparison: Comparison) -> Table | None:
    """Idle time by cause on both sides; None when a side has no GPU figures."""
    if comparison.a.analysis.idle is None or comparison.b.analysis.idle is None:
        return None
    a, b = comparison.a.idle_by_cause(), comparison.b.idle_by_cause()
    rows = [
        (cause_words(cause), *_change(a.get(cause, 0.0), b.get(cause, 0.0)), CAUSES.get(cause, ("", ""))[1])
        for cause in causes_present(comparison)
    ]
    rows += _sums(comparison, sum(a.values()), sum(b.values()))
    return Table(
        caption=f"Idle time by cause, {shared_scope(comparison)}",
        columns=(
            Column("Cause", numeric=False),
            *map(Column, ("A", "B", "Change")),
            Column("What it means", numeric=False),
        ),
        rows=tuple(rows),
        note=(
            "Causes are as recorded, which lengthens idle time. What the light recording cannot tell apart, for want "
            "of operators, is divided as in the rich one."
        ),
    )


Row = tuple[str, str, str, str, str]


def _sums(comparison: Comparison, a_us: float, b_us: float) -> list[Row]:
    """All idle time as recorded, and what of it unprofiled calls have too where that is known of both sides."""
    whole = ("all idle time, as recorded", *_change(a_us, b_us), "")
    ends = [(side.lengthened_idle_us, side.unprofiled_idle_us) for side in (comparison.a, comparison.b)]
    (a_longer, a_true), (b_longer, b_true) = ends
    if a_longer is None or b_longer is None or a_true is None or b_true is None:
        return [whole]
    return [
        whole,
        ("less what recording added", *_change(-a_longer, -b_longer), "to which causes it added is not known"),
        ("idle time of unprofiled calls", *_change(a_true, b_true), "unprofiled wall time less GPU busy time"),
    ]


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
            clipped(printable(sync.where), 80) if sync.where else "not recorded",
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
