"""What a run of one form found besides its recording: other processes, starting up, what was compiled too late."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from tracekit.model.comparison import Side
from tracekit.numbers import counted, duration
from tracekit.report.sections.startup import KINDS

EAGER = "eager"


def process_rows(side: Side) -> Iterator[tuple[str, str]]:
    """The median call of each process beside the run's own, and each start; nothing where there was none."""
    form = side.form
    if form is None:
        return
    walls = [each.wall_us for each in form.timing.processes] if form.timing else []
    for number, wall_us in enumerate(walls, 1):
        yield f"The same in process {number} of {len(walls)}", duration(median(wall_us) if wall_us else None)
    for start in form.startups:
        kind = EAGER if start.kind == "eager" else KINDS[start.kind]
        yield f"Starting up {kind}: first call", duration(start.calls_us[0])


def compiled_too_late(side: Side) -> str | None:
    """A warning where timed calls compiled: their median is not what a warm form takes."""
    form = side.form
    facts = form.compilation if form else None
    if form is None or facts is None or not facts.during_timing:
        return None
    return (
        f"{side.label}: {counted(facts.during_timing, 'compilation')} ran inside its"
        f" {counted(len(form.wall_us), 'timed call')}: their times are not of compiled code alone."
    )
