"""What is noted of a sweep, its folder and its cells."""

from collections.abc import Sequence

from tracekit.model.note import Note
from tracekit.numbers import counted, percent
from tracekit.report.words.common import cached_words
from tracekit.sweep.cells import CellOutcome


class CellUnreadable(Note):
    code = "cell_unreadable"
    path: str
    reason: str

    def long(self) -> str:
        return f"{self.path} cannot be read ({self.reason}): it counts as missing and will be run again."


class CellsOutdated(Note):
    code = "cells_outdated"
    cells: int
    of_cells: int
    since: str

    def long(self) -> str:
        again = "it" if self.cells == 1 else "them"
        return (
            f"{counted(self.cells, 'cell')} of {self.of_cells} predate --again ({self.since:.16} UTC); --resume"
            f" measures {again} again."
        )


class CellsOfAnotherVersion(Note):
    code = "cells_of_another_version"
    cells: int
    workload: str
    files: Sequence[str]

    def long(self) -> str:
        are, them = ("is", "it") if self.cells == 1 else ("are", "them")
        return (
            f"{counted(self.cells, 'cell')} of {self.workload} {are} of another version"
            f" ({', '.join(self.files)} changed); the sweep's command runs {them} again."
        )


class SeveralSeeds(Note):
    code = "several_seeds"
    seeds: Sequence[int]

    def long(self) -> str:
        return f"Cells have several seeds ({', '.join(map(str, self.seeds))}): weights and inputs differ."


class SeveralMachines(Note):
    code = "several_machines"
    machines: Sequence[str]

    def long(self) -> str:
        return f"Cells are of several machines ({', '.join(self.machines)}): one row each."


class SeveralTorches(Note):
    code = "several_torches"
    versions: Sequence[str]

    def long(self) -> str:
        return f"Cells are of several torch versions ({', '.join(self.versions)}): one row each."


class SeveralTimingRules(Note):
    code = "several_timing_rules"

    def long(self) -> str:
        return (
            "Cells were timed by different rules (--iterations, --target, --time-budget); the table has their call"
            " counts."
        )

    def short(self) -> str:
        return "cells were timed by different rules (--iterations, --target, --time-budget)"


class SeveralTracekits(Note):
    code = "several_tracekits"
    versions: Sequence[str]

    def long(self) -> str:
        return f"Cells are of several tracekit versions ({', '.join(self.versions)})."


class SameCellInFiles(Note):
    code = "same_cell_in_files"
    key: str
    files: int

    def long(self) -> str:
        return f"{self.files} files hold cell {self.key}: the one started last counts."


class MachinesOfAWorkDiffer(Note):
    code = "machines_of_a_work_differ"
    differences: Sequence[str]
    works: int
    of_works: int

    def long(self) -> str:
        return (
            f"Machines differ within {self.works} of {counted(self.of_works, 'workload')}"
            f" ({'; '.join(self.differences)}): compare speed-ups, not times."
        )

    def short(self) -> str:
        return f"{self.works} of {counted(self.of_works, 'workload')} ran on different machines"


class ProcessesNotPooled(Note):
    code = "processes_not_pooled"
    cells: int
    of_cells: int
    differences: Sequence[str]

    def long(self) -> str:
        return (
            f"Processes of {self.cells} of {counted(self.of_cells, 'cell')} ran on machines that differ"
            f" ({'; '.join(self.differences)}): not pooled, one row each."
        )

    def short(self) -> str:
        return f"processes of {self.cells} of {counted(self.of_cells, 'cell')} ran on unlike machines: not pooled"


class ProcessesShareHosts(Note):
    code = "processes_share_hosts"
    usual_severity = "info"
    cells: int
    of_cells: int

    def long(self) -> str:
        return (
            f"In {self.cells} of {counted(self.of_cells, 'cell')} some processes share a host: the spread between hosts"
            " counts for less."
        )

    def short(self) -> str:
        return f"some processes of {self.cells} of {counted(self.of_cells, 'cell')} share a host"


class ProcessWithoutTimes(Note):
    code = "process_without_times"
    process: int
    outcome: CellOutcome
    message: str

    def long(self) -> str:
        return f"Process {self.process} has no times ({self.message}): it counts nowhere."


class CellsSideBySide(Note):
    code = "cells_side_by_side"
    cells: int
    of_cells: int

    def long(self) -> str:
        return (
            f"{self.cells} of {counted(self.of_cells, 'timed cell')} ran concurrently with another of this sweep. On a"
            " shared host host-bound calls can be slower and speed-ups larger. The conditions table has the host load."
        )

    def short(self) -> str:
        return f"{self.cells} of {counted(self.of_cells, 'cell')} ran concurrently: eager may be too slow"


class CellsThrottled(Note):
    code = "cells_throttled"
    cells: int
    of_cells: int

    def long(self) -> str:
        return (
            f"The GPU was throttled in {self.cells} of {counted(self.of_cells, 'cell')}; the conditions table has the"
            " reasons."
        )

    def short(self) -> str:
        return f"the GPU was throttled in {self.cells} of {counted(self.of_cells, 'cell')}"


class GraphsFromCache(Note):
    code = "graphs_from_cache"
    hits: int
    graphs: int
    cache_was_empty: bool | None

    def long(self) -> str:
        told = cached_words(self.hits, self.graphs)
        if self.hits <= self.graphs:
            told = f"{self.hits} of {counted(self.graphs, 'graph')} came from a compile cache"
        if self.cache_was_empty is not False and self.hits < self.graphs:
            # A graph may be like an earlier one of the same process.
            told += " (of this process, or a remote cache)"
        return f"{told}: a cold compile takes longer."


class CacheNotEmpty(Note):
    code = "cache_not_empty"

    def long(self) -> str:
        return "Inductor's cache was not empty: a cold compile may take longer."


class EagerProcessSpread(Note):
    code = "eager_process_spread"
    work: str
    spread: float

    def long(self) -> str:
        return (
            f"Eager process spread up to {percent(self.spread)} ({self.work}): --repeat-process 4 measures each cell in"
            " four."
        )

    def short(self) -> str:
        return f"eager moved by up to {percent(self.spread)} between processes ({self.work})"
