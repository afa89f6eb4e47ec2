"""When the GPU had nothing to run, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tracekit.model.analysis import IDLE_CAUSES, HostWork, IdleGap, SyncTime
from tracekit.model.comparison import Side
from tracekit.names import clipped, printable
from tracekit.numbers import MISSING, count, duration, duration_change, percent
from tracekit.report.document import Column, Table
from tracekit.report.sections.kernels import kernel_name
from tracekit.report.sides import Sides, side_name
from tracekit.report.words.common import CAUSES, cause_words, scope, scope_of

#: So many kinds of host work are named in a gap.
MOST_WORK = 2
#: Less than a nanosecond is rounding.
SMALLEST_US = 1e-3

Causes = Mapping[str, float]


def causes_present(sides: Sides) -> tuple[str, ...]:
    present = {cause for _, side in sides for cause in side.idle_by_cause()}
    return (*(each for each in IDLE_CAUSES if each in present), *sorted(present.difference(IDLE_CAUSES)))


def cause_table(sides: Sides) -> Table | None:
    """Idle time by cause of every side, of two their change too; None when a side has no GPU figures."""
    if any(side.analysis.idle is None for _, side in sides):
        return None
    calibrated = [side.calibrated_idle_by_cause() for _, side in sides]
    known = [each for each in calibrated if each is not None]
    return _calibrated_table(sides, known) if len(known) == len(sides) else _recorded_table(sides)


RECORDED_NOTE = "As recorded, which lengthens idle time."
CALIBRATED_NOTE = (
    "Idle time of unprofiled calls is wall time less GPU busy time. Its causes are the recorded ones without what "
    "recording added, under the assumption that it lengthened all the host's causes alike and the GPU's own not."
)
#: Of sides with both recordings.
DIVIDED_NOTE = (
    " What the light recording cannot tell apart, for want of operators (drawn moment by moment as unattributed), is "
    "divided as in the rich one."
)


def _recorded_table(sides: Sides) -> Table:
    recorded = [side.idle_by_cause() for _, side in sides]
    rows = [
        (cause_words(cause), *_shown([each.get(cause, 0.0) for each in recorded]), _meaning(cause))
        for cause in causes_present(sides)
    ]
    whole = ("all idle time", *_shown([math.fsum(each.values()) for each in recorded]), "")
    return _cause_table(sides, _labels(sides), (*rows, whole), RECORDED_NOTE)


def _calibrated_table(sides: Sides, true: Sequence[Causes]) -> Table:
    recorded = [side.idle_by_cause() for _, side in sides]
    # Of more sides a table that shows both would be too wide to read.
    shown = len(sides) if len(sides) <= 2 else 0
    rows = [
        (
            cause_words(cause),
            *_shown([each.get(cause, 0.0) for each in true]),
            *(duration(each.get(cause, 0.0)) for each in recorded[:shown]),
            _meaning(cause),
        )
        for cause in causes_present(sides)
    ]
    whole_us = [side.unprofiled_idle_us or 0.0 for _, side in sides]
    unseen = [us - math.fsum(each.values()) for us, each in zip(whole_us, true, strict=True)]
    if max(unseen) > SMALLEST_US:
        none = ("",) * shown
        rows.append(("no recording shows it", *_shown(unseen), *none, "idle in unprofiled calls alone"))
    whole = (duration(math.fsum(each.values())) for each in recorded[:shown])
    rows.append(("all idle time", *_shown(whole_us), *whole, ""))
    labels = (*_labels(sides), *(f"{letter} recorded".strip() for letter, _ in sides[:shown]))
    return _cause_table(sides, labels, tuple(rows), CALIBRATED_NOTE)


def _labels(sides: Sides) -> tuple[str, ...]:
    """A column for each side, and of two for their change."""
    return (*(letter or "Idle" for letter, _ in sides), *(("Change",) if len(sides) == 2 else ()))


def _shown(figures: list[float]) -> tuple[str, ...]:
    change = (duration_change(figures[1] - figures[0]),) if len(figures) == 2 else ()
    return (*map(duration, figures), *change)


def _cause_table(sides: Sides, labels: tuple[str, ...], rows: tuple[tuple[str, ...], ...], note: str) -> Table:
    return Table(
        caption=f"Idle time by cause, {scope_of(sides)}",
        columns=(Column("Cause", numeric=False), *map(Column, labels), Column("What it means", numeric=False)),
        rows=rows,
        note=note + (DIVIDED_NOTE if any(_is_divided(side) for _, side in sides) else ""),
    )


def _is_divided(side: Side) -> bool:
    """Whether the rich recording tells of time that the light one has no cause for."""
    light = side.analysis.idle
    grey = any(each.cause == "unattributed" and each.us for each in light.causes) if light else False
    return grey and side.host is side.rich


def _meaning(cause: str) -> str:
    return CAUSES.get(cause, ("", ""))[1]


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
        caption=f"Longest idle gaps of {side_name(letter, side)}",
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
        caption=f"Synchronising calls of {side_name(letter, side)}, {scope(side)}",
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
