"""What must be known of a sweep's folder before its figures are relied on: what is unreadable, old, or of another
version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tracekit.model.sweep import Asked, CellResult
from tracekit.walks.sweep_folder import CELLS, SweepFolder, is_outdated
from tracekit.walks.sweeping import changed_sources
from tracekit.workloads.sources import has_sources


def find_doubts(folder: SweepFolder, asked: Asked | None, results: Sequence[CellResult]) -> tuple[str, ...]:
    """A sentence each. `results` are all that the folder holds, and were just read from it."""
    return tuple(_doubts(folder, asked, results))


def _doubts(folder: SweepFolder, asked: Asked | None, results: Sequence[CellResult]) -> Iterator[str]:
    yield from unreadable(folder)
    since = asked.anew_since if asked else {}
    if old := [found for found in results if is_outdated(found, since.get(found.cell.key))]:
        begun = min(since[found.cell.key] for found in old)
        yield (
            f"{cells_word(len(old))} of {len(results)} were measured before --again began ({begun[:16]} UTC) and are"
            " not measured anew yet: --resume goes on with it."
        )
    yield from of_other_versions(results)
    seeds = sorted({found.cell.request.seed for found in results})
    if len(seeds) > 1:
        yield f"Cells were made with several seeds ({', '.join(map(str, seeds))}): their weights and inputs differ."


def unreadable(folder: SweepFolder) -> Iterator[str]:
    """Of each file that cannot be read, that it counts as missing."""
    for name, why in folder.unreadable.items():
        yield f"{folder.path / CELLS / name} cannot be read ({why}): its cell counts as missing, and is run again."


def of_other_versions(results: Sequence[CellResult]) -> Iterator[str]:
    """Which cells were made of files that are otherwise now, and of which nobody knows."""
    changed = Counter((found.cell.request.workload, names) for found in results if (names := changed_sources(found)))
    for (workload, names), number in changed.items():
        yield (
            f"{cells_word(number)} of {workload} {'is' if number == 1 else 'are'} of another version:"
            f" {', '.join(names)} changed since; the sweep's command runs {'it' if number == 1 else 'them'} anew."
        )
    unknown = Counter(found.cell.request.workload for found in results if _is_unknown(found))
    for workload, number in unknown.items():
        yield f"Of {cells_word(number)} of {workload} nobody noted which version of the model it was."


def _is_unknown(found: CellResult) -> bool:
    return found.run is not None and found.run.sources is None and has_sources(found.cell.request.workload)


def cells_word(number: int) -> str:
    """`1 cell`, `2 cells`."""
    return f"{number} cell{'' if number == 1 else 's'}"
