"""What a reader must know of the recordings themselves."""

from __future__ import annotations

from collections.abc import Callable

from tracekit.model.comparison import Side
from tracekit.names import clipped, printable
from tracekit.numbers import MISSING, count, duration, size, times
from tracekit.report.document import Column, Table
from tracekit.report.sides import Sides, side_name
from tracekit.report.words.common import extent
from tracekit.report.words.health import health_sentence

#: What is told of each recording.
FIGURES: dict[str, Callable[[Side], str]] = {
    "Read over": extent,
    "Steps or spans": lambda side: count(side.analysis.window.steps),
    "Window": lambda side: duration(side.analysis.window.span_us),
    "Against an unprofiled call": lambda side: _slowdown(side),
    "Events": lambda side: count(side.analysis.trace.events),
    "File size": lambda side: size(side.analysis.trace.bytes),
    "Events skipped": lambda side: _skipped(side.analysis.trace.skipped),
}


def recording_table(sides: Sides) -> Table:
    """The traces: how large, over what window they were read, what of them could not be."""
    rows = tuple((label, *(figure(side) for _, side in sides)) for label, figure in FIGURES.items())
    labels = [Column(side_name(*each)) for each in sides]
    caption = "The recordings" if len(sides) > 1 else "The recording"
    return Table(caption, (Column("Recording", numeric=False), *labels), rows)


def _slowdown(side: Side) -> str:
    return f"{times(side.recorded_ratio)} as long" if side.recorded_ratio is not None else MISSING


def _skipped(skipped: dict[str, int]) -> str:
    found = [f"{number:,} {printable(reason)}" for reason, number in skipped.items() if number]
    return clipped(", ".join(found), 200) if found else "none"


def health_table(sides: Sides) -> Table | None:
    """What was noticed about the recordings; None when nothing was."""
    rows = tuple(
        (letter, finding.severity, clipped(printable(health_sentence(finding)), 300), count(finding.count))
        for letter, side in sides
        for finding in side.health
    )
    if not rows:
        return None
    texts = (Column(each, numeric=False) for each in ("Side", "Severity", "What was noticed"))
    columns = (*texts, Column("Events"))
    if len(sides) == 1:
        return Table("Health of the recording", columns[1:], tuple(row[1:] for row in rows))
    return Table("Health of the recordings", columns, rows)
