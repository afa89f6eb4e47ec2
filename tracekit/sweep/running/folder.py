"""A sweep's folder: `sweep.json` says what was asked, `cells/KEY.json` what came of each cell, `cells/KEY.2.json` in
its second process, `cells/KEY.confirm.json` in one more that measured the best of a work again, and how far that
counts.

Several commands may fill one folder: a process of a cell belongs to whoever holds its lock, files are written whole,
and what is shown is made of whatever cells are there.
"""

import datetime
import errno
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from glob import escape
from itertools import count
from pathlib import Path
from typing import TypeVar

import msgspec
from filelock import FileLock, Timeout
from msgspec.structs import replace

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.files import read_bounded, write_replaced
from tracekit.model.note import Note
from tracekit.shell import quoted
from tracekit.sweep.cells import CONFIRMING, Asked, AskedCall, Cell, CellResult
from tracekit.sweep.statements import notes as statements
from tracekit.wire import decode, encode
from tracekit.workloads.unlisted import find_changed

ASKED = "sweep.json"
CELLS = "cells"
#: Ends the name of what measured the best of a work again.
AGAIN = ".confirm"
#: Locks lie with what they lock: whoever sees the cells sees them, whatever its folder for temporary files.
LOCKS = ".locks"
#: What a file system says that has no locks, as some that are mounted over a network.
NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
#: What reading a file says that is not whole, not ours, or not to be read.
UNREADABLE = (*store.UNDECODABLE, TracekitError, OSError)
Noun = TypeVar("Noun", Asked, CellResult)


class SweepFolder:
    """One sweep on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: Files of cells that could not be read, by name, and why: as good as not there.
        self.unreadable: dict[str, str] = {}
        self._no_locks: str | None = None

    @property
    def name(self) -> str:
        return self.path.resolve().name

    def check_content(self) -> None:
        """Raises TracekitError for a folder that holds something else."""
        if self.path.exists() and not self.path.is_dir():
            raise TracekitError(f"{self.path} is a file: pass a folder to --out")
        there = self.path.is_dir() and any(self.path.iterdir())
        if there and not (self.path / ASKED).is_file() and not (self.path / CELLS).is_dir():
            raise TracekitError(f"{self.path} exists and is not a sweep folder; pass another path to --out")
        if links := [name for name in (CELLS, LOCKS) if (self.path / name).is_symlink()]:
            # A sweep that came from elsewhere would have its cells written wherever its maker wished.
            raise TracekitError(f"{self.path / links[0]} is a link: replace it by its target")

    def check(self) -> None:
        """The same, and where nothing can be written."""
        self.check_content()
        try:
            (self.path / CELLS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TracekitError(f"cannot write to {self.path}: {error.strerror}; pass another path to --out") from None
        if not os.access(self.path / CELLS, os.W_OK):
            raise TracekitError(f"cannot write to {self.path / CELLS}; pass another path to --out")

    def asked(self) -> Asked | None:
        """What was asked for until now; None where nobody did (cells that were copied together)."""
        path = self.path / ASKED
        try:
            return self._decoded(ASKED, Asked) if path.is_file() else None
        except UNREADABLE as error:
            raise TracekitError(
                f"{path} cannot be read ({error}); remove it: the sweep's command writes it again, and cells are kept"
            ) from None

    def ask(
        self,
        name_of_suite: str | None,
        cells: tuple[Cell, ...],
        call: AskedCall,
        anew: Collection[str] = (),
        processes: Mapping[str, int] | None = None,
    ) -> Asked:
        """Adds these cells and this call to what was asked for: the cells' order is that of the table. The cells of the
        keys `anew` are to be measured anew from now on. Those that were to be before and are not done yet go on from
        when that began: the same command again, or on another GPU, does not begin once more. `processes` is in how many
        cells are to be measured, by key; of others that stays."""
        with self._lock(ASKED, blocking=True):
            before = self.asked() or Asked("tracekit.sweep-asked/1", self.name, name_of_suite, (), ())
            known, since = {cell.key for cell in before.cells}, before.anew_since
            begun = {since[key] for key in anew if key in since and self._is_begun(key, before)}
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
            asked = replace(
                before,
                suite=before.suite or name_of_suite,
                cells=(*before.cells, *(cell for cell in cells if cell.key not in known)),
                calls=(*before.calls, call),
                anew_since={**since, **{key: now for key in anew if since.get(key) not in begun}},
                processes={**before.processes, **(processes or {})},
            )
            write_replaced(self.path / ASKED, _encoded(asked))
        return asked

    def _is_begun(self, key: str, before: Asked) -> bool:
        """Whether a process of the cell is still to be measured since it was asked for anew."""
        found = self.load_processes(key, before.processes.get(key, 1)).values()
        return any(is_outdated(each, before.anew_since[key]) for each in found)

    def load_processes(self, key: str, asked: int) -> dict[int, CellResult | None]:
        """What came of each process of the cell, by number: of so many asked for, and of others that are there."""
        rest = (path.name[len(key) + 1 : -len(".json")] for path in (self.path / CELLS).glob(f"{escape(key)}.*.json"))
        there = {int(each) for each in rest if each.isascii() and each.isdecimal()}
        return {number: self.load(key, number) for number in sorted({*range(1, asked + 1), *there})}

    def load(self, key: str, process: int = 1) -> CellResult | None:
        """What came of the cell in that process; None where nothing did yet, or nothing that can be read."""
        return self._load(f"{_name_of(key, process)}.json")

    def _load(self, name: str) -> CellResult | None:
        try:
            there = os.path.lexists(self.path / CELLS / name)
            found = self._decoded(f"{CELLS}/{name}", CellResult) if there else None
        except UNREADABLE as error:
            self.unreadable[name] = str(error)
            return None
        self.unreadable.pop(name, None)
        return found

    def load_all(self) -> tuple[CellResult, ...]:
        """Every cell that is there: in the order asked for, then those nobody asked for here, by name."""
        asked = self.asked()
        order = {cell.key: number for number, cell in enumerate(asked.cells if asked else ())}
        return tuple(
            sorted(
                self._load_by_name(again=False),
                key=lambda each: (order.get(each.cell.key, len(order)), each.cell.key, each.process),
            )
        )

    def load_again(self) -> tuple[CellResult, ...]:
        """What came of each cell that was measured again as the best of its work, by name."""
        return tuple(self._load_by_name(again=True))

    def _load_by_name(self, *, again: bool) -> Iterator[CellResult]:
        for name in sorted(path.name for path in (self.path / CELLS).glob("[!.]*.json")):
            if name.endswith(f"{AGAIN}.json") == again and (result := self._load(name)):
                yield result

    def _decoded(self, name: str, kind: type[Noun]) -> Noun:
        """A file of the folder, which may come from anybody. Raises what UNREADABLE names."""
        content = read_bounded(store.inside(self.path, name), store.MOST_MANIFEST_BYTES)
        return decode(content, kind)

    def save(self, result: CellResult) -> None:
        name = _name_of(result.cell.key, result.process)
        write_replaced(self.path / CELLS / f"{name}.json", _encoded(result))

    def unlocked(self) -> str | None:
        """Why nothing can be locked here, in the file system's words; None where it can."""
        with self._lock("probe", blocking=False):
            return self._no_locks

    def claimed(self, key: str, process: int = 1) -> AbstractContextManager[bool]:
        """Whether that process of the cell is this command's as long as the block lasts; False while another one works
        on it."""
        return self._lock(_name_of(key, process), blocking=False)

    @contextmanager
    def turn(self, *, alone: bool) -> Iterator[None]:
        """Waits until a cell may run: one that runs alone until all others of the folder have ended, and none begins
        before it has ended."""
        with ExitStack() as held:
            with self._lock("queue", blocking=True):
                if alone:
                    for path in (self.path / LOCKS).glob("running.*.lock"):
                        with self._lock(path.stem, blocking=True):
                            pass
                    yield
                    return
                numbers = count()
                while not held.enter_context(self._lock(f"running.{next(numbers)}", blocking=False)):
                    pass
            yield

    @contextmanager
    def _lock(self, what: str, *, blocking: bool) -> Iterator[bool]:
        """Whether it is this block's alone; with `blocking` that is waited for. Where there are no locks everything is
        everybody's (`unlocked`)."""
        place = self.path / LOCKS
        with ExitStack() as held:
            ours = True
            try:
                place.mkdir(parents=True, exist_ok=True)
                # It goes with the process that holds it. A file whose mere existence locks would stay where that one
                # was killed, and hold a cell for ever.
                lock = FileLock(place / f"{what}.lock", fallback_to_soft=False)
                held.enter_context(lock.acquire(blocking=blocking, poll_interval=1.0))
            except Timeout:
                ours = False
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    why = f"cannot lock {self.path}: {error.strerror}; remove {place}, or name another place"
                    raise TracekitError(why) from None
                self._no_locks = error.strerror
            yield ours


def _name_of(key: str, process: int) -> str:
    if process == CONFIRMING:
        return f"{key}{AGAIN}"
    return key if process == 1 else f"{key}.{process}"


def is_sweep(path: Path) -> bool:
    """Whether the folder holds a sweep's cells."""
    return (path / CELLS).is_dir()


def why_no_traces(place: str) -> str | None:
    """Of a sweep's folder, whose cells have times and no traces, what shows it; None of any other place."""
    path = Path(place)
    if not is_sweep(path) or not (path / ASKED).is_file():
        return None
    return f"{place} is a sweep folder and holds no traces: run tracekit sweep --show {quoted(place)}"


def is_outdated(found: CellResult | None, since: str | None) -> bool:
    """Whether the cell is to be measured since then, and was not: it is missing, or older."""
    if found is None or since is None:
        return since is not None
    return datetime.datetime.fromisoformat(found.started) < datetime.datetime.fromisoformat(since)


def changed_sources(found: CellResult) -> tuple[str, ...]:
    """What of the files that the cell's model was made of is otherwise now."""
    sources = found.run.sources if found.run else ()
    return find_changed(found.cell.request.workload, sources) if sources else ()


def find_doubts(folder: SweepFolder, asked: Asked | None, results: Sequence[CellResult]) -> tuple[Note, ...]:
    """What must be known before the figures are relied on: what is unreadable, old, or of another version. `results`
    are all that the folder holds, and were just read from it."""
    notes: list[Note] = [*unreadable_cells(folder)]
    since = asked.anew_since if asked else {}
    if old := [found for found in results if is_outdated(found, since.get(found.cell.key))]:
        begun = min(since[found.cell.key] for found in old)
        cells, of_cells = (len({found.cell.key for found in some}) for some in (old, results))
        notes.append(statements.CellsOutdated(cells=cells, of_cells=of_cells, since=begun))
    notes += cells_of_other_versions(results)
    seeds = sorted({found.cell.request.seed for found in results})
    if len(seeds) > 1:
        notes.append(statements.SeveralSeeds(seeds=seeds))
    return tuple(notes)


def unreadable_cells(folder: SweepFolder) -> Iterator[Note]:
    """Of each file that cannot be read, that it counts as missing."""
    for name, why in folder.unreadable.items():
        yield statements.CellUnreadable(path=str(folder.path / CELLS / name), reason=why)


def cells_of_other_versions(results: Sequence[CellResult]) -> Iterator[Note]:
    """Which cells were made of files that are otherwise now."""
    cells: dict[str, list[CellResult]] = {}
    for found in results:
        cells.setdefault(found.cell.key, []).append(found)
    changed = Counter[tuple[str, tuple[str, ...]]]()
    for processes in cells.values():
        workload = processes[0].cell.request.workload
        changed.update((workload, names) for names in set(map(changed_sources, processes)) if names)
    for (workload, names), number in changed.items():
        yield statements.CellsOfAnotherVersion(cells=number, workload=workload, files=list(names))


def _encoded(noun: Asked | CellResult) -> bytes:
    return msgspec.json.format(encode(noun), indent=0) + b"\n"
