"""What a reader must know of the recordings themselves."""

from __future__ import annotations

from tracekit.model.comparison import Comparison, Side
from tracekit.numbers import MISSING, count, duration, size, times
from tracekit.report.names import clipped, printable
from tracekit.report.table import Column, Table
from tracekit.report.words import extent


def recording_table(comparison: Comparison) -> Table:
    """The two traces: how large, over what window they were read, what of them could not be."""
    a, b = comparison.a, comparison.b
    rows = [
        ("Read over", *(extent(side) for side in (a, b))),
        ("Steps or spans", *(count(side.analysis.window.steps) for side in (a, b))),
        ("Window", *(duration(side.analysis.window.span_us) for side in (a, b))),
        ("Against an unprofiled call", *(_slowdown(side) for side in (a, b))),
        ("Events", *(count(side.analysis.trace.events) for side in (a, b))),
        ("File size", *(size(side.analysis.trace.bytes) for side in (a, b))),
        ("Events skipped", *(_skipped(side.analysis.trace.skipped) for side in (a, b))),
    ]
    labels = [Column(f"{letter}: {side.label}") for letter, side in (("A", a), ("B", b))]
    return Table("The recordings", (Column("Recording", numeric=False), *labels), tuple(rows))


def _slowdown(side: Side) -> str:
    return f"{times(side.recorded_ratio)} as long" if side.recorded_ratio is not None else MISSING


def _skipped(skipped: dict[str, int]) -> str:
    found = [f"{number:,} {printable(reason)}" for reason, number in skipped.items() if number]
    return clipped(", ".join(found), 200) if found else "none"


def health_table(comparison: Comparison) -> Table | None:
    """What was noticed about the recordings; None when nothing was."""
    rows = tuple(
        (letter, finding.severity, clipped(printable(finding.message), 300), count(finding.count))
        for letter, side in (("A", comparison.a), ("B", comparison.b))
        for finding in side.health
    )
    if not rows:
        return None
    texts = ("Side", "Severity", "What was noticed")
    return Table("Health of the recordings", (*(Column(each, numeric=False) for each in texts), Column("Events")), rows)
