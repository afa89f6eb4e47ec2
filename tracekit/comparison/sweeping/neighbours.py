"""Did cells run beside each other?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from tracekit.model.note import Note
from tracekit.model.sweep import CellResult

#: A cell that begins while the one before it is still going out meets little of it.
SHORTEST_SECONDS = 5.0


def of_neighbours(results: Sequence[CellResult]) -> Iterator[Note]:
    """A note where cells that have times were measured while others ran. On which host is not known: hosts have no
    names here."""
    spans = [(result.cell.key, *_span(result)) for result in results]
    timed = [each for each, result in zip(spans, results, strict=True) if result.outcome == "done"]
    beside = sum(sum(_beside(each, other) for other in spans) > SHORTEST_SECONDS for each in timed)
    if beside:
        yield Note("cells_side_by_side", facts={"cells": beside, "of_cells": len(timed)})


def _beside(one: tuple[str, float, float], other: tuple[str, float, float]) -> float:
    """For how many seconds both ran; a cell does not run beside itself."""
    (key, began, ended), (others_key, others_began, others_ended) = one, other
    return max(0.0, min(ended, others_ended) - max(began, others_began)) if key != others_key else 0.0


def _span(result: CellResult) -> tuple[float, float]:
    """When it began and ended, in seconds since 1970."""
    began = datetime.fromisoformat(result.started).timestamp()
    return began, began + result.seconds
