"""What must be known of a sweep's folder before its figures are relied on: what is unreadable, old, or of another
version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tracekit.model.note import Note
from tracekit.model.sweep import Asked, CellResult
from tracekit.walks.sweep_folder import CELLS, SweepFolder, is_outdated
from tracekit.walks.sweeping import changed_sources
from tracekit.workloads.sources import has_sources


def find_doubts(folder: SweepFolder, asked: Asked | None, results: Sequence[CellResult]) -> tuple[Note, ...]:
    """A note each. `results` are all that the folder holds, and were just read from it."""
    return tuple(_doubts(folder, asked, results))


def _doubts(folder: SweepFolder, asked: Asked | None, results: Sequence[CellResult]) -> Iterator[Note]:
    yield from unreadable(folder)
    since = asked.anew_since if asked else {}
    if old := [found for found in results if is_outdated(found, since.get(found.cell.key))]:
        begun = min(since[found.cell.key] for found in old)
        yield Note("cells_outdated", facts={"cells": len(old), "of_cells": len(results), "since": begun})
    yield from of_other_versions(results)
    seeds = sorted({found.cell.request.seed for found in results})
    if len(seeds) > 1:
        yield Note("several_seeds", facts={"seeds": seeds})


def unreadable(folder: SweepFolder) -> Iterator[Note]:
    """Of each file that cannot be read, that it counts as missing."""
    for name, why in folder.unreadable.items():
        yield Note("cell_unreadable", facts={"path": str(folder.path / CELLS / name), "reason": why})


def of_other_versions(results: Sequence[CellResult]) -> Iterator[Note]:
    """Which cells were made of files that are otherwise now, and of which nobody knows."""
    changed = Counter((found.cell.request.workload, names) for found in results if (names := changed_sources(found)))
    for (workload, names), number in changed.items():
        facts = {"cells": number, "workload": workload, "files": list(names)}
        yield Note("cells_of_another_version", facts=facts)
    unknown = Counter(found.cell.request.workload for found in results if _is_unknown(found))
    for workload, number in unknown.items():
        yield Note("cells_of_unknown_version", facts={"cells": number, "workload": workload})


def _is_unknown(found: CellResult) -> bool:
    return found.run is not None and found.run.sources is None and has_sources(found.cell.request.workload)
