"""From the traces of many ranks to their digests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tracekit import store
from tracekit.analysis.digest import digest_rank
from tracekit.errors import TracekitError
from tracekit.ranks.digest_file import MAGIC, read_digest, read_summary
from tracekit.ranks.summary import summarise
from tracekit.ranks.world import Recorded
from tracekit.tracefile.cache import default_folder
from tracekit.tracefile.rank_files import by_rank, rank_in_name
from tracekit.tracefile.read import read_trace
from tracekit.walks.many_files import Question, ask_each

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tracekit.model.ranks import RankDigest, RankSummary
    from tracekit.model.run import FormName

#: What recorders call traces, and what `tracekit digest` writes.
ENDINGS = (".json", ".json.gz", ".json.zst", ".digest.parquet")
#: What `tracekit open` calls the trace that it makes of all ranks.
MERGED = "perfetto-ranks.json.gz"
#: Of more ranks summaries are read, and reduced as a fleet.
MOST_IN_FULL = 64
#: Packed JSON is so many times as large unpacked, about.
PACKED = 12
#: Memory that reading takes: Python with its libraries, and a share of the JSON's size.
READING_BYTES = 200 << 20
READING_SHARE = 0.75


class RanksReading(Struct, frozen=True):
    """What of each recording is to be read, as the options of `ranks` say it."""

    window: str = "auto"
    steps: tuple[int, int] | None = None
    cached: bool = True

    def digest(self, place: str) -> RankDigest:
        """The digest of one recording, read or made. Raises TracekitError where it is neither."""
        if _is_digest(Path(place)):
            return _named(read_digest(Path(place).read_bytes(), place), place)
        folder = default_folder() if self.cached else None
        trace = read_trace(place, cache_folder=folder, collectives=True)
        return _named(digest_rank(trace, window=self.window, steps=self.steps), place)

    def summary(self, place: str) -> RankSummary:
        """The same, as a fleet needs it."""
        if _is_digest(Path(place)):
            return _named(read_summary(place), place)
        return summarise(self.digest(place))


def _is_digest(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _named(recorded: Recorded, place: str) -> Recorded:
    """With the rank that the file's name has, where the recording itself states none."""
    if recorded.rank is not None:
        return recorded
    return replace(recorded, rank=rank_in_name(Path(place)))


def find_recordings(places: Sequence[str], form: FormName | None = None) -> tuple[str, ...]:
    """The traces of a folder by name, those of one form of a run, or the files and URLs that are named. Raises
    TracekitError for a folder that has none."""
    found: list[str] = []
    for place in places:
        path = Path(place)
        if not path.is_dir():
            found.append(place)
            continue
        if store.is_run(path):
            found += _of_run(path, form)
            continue
        if form is not None:
            raise TracekitError(f"--form is for run folders: {place} is none, leave it out")
        inside = _recordings_in(path)
        inside.sort(key=lambda each: ([int(number) for number in re.findall(r"\d{1,9}", each.name)], each.name))
        # A folder may hold what else was written beside the traces; what states a rank is one, and of another job it
        # is said to be left out.
        named = [each for each in inside if rank_in_name(each) is not None]
        stated = by_rank(each for each in inside if each not in named) if named else {}
        traces = [*named, *(path for paths in stated.values() for path in paths)] or inside
        if not traces:
            raise TracekitError(f"{place} has no traces (.json, .json.gz, .json.zst); name the folder that has")
        found += map(str, traces)
    return tuple(dict.fromkeys(found))


def _recordings_in(folder: Path) -> list[Path]:
    """Whatever is called like a trace or a digest."""
    inside = (each for each in folder.iterdir() if each.name.endswith(ENDINGS) and each.name != MERGED)
    return [each for each in inside if each.is_file()]


def are_ranks(places: Sequence[str]) -> bool:
    """Whether the places are recordings of several ranks, not a run or two sides to compare: a folder of more than one
    rank's, more than two files, or two of different ranks."""
    if len(places) == 1:
        folder = Path(places[0])
        if not folder.is_dir() or store.is_run(folder):
            return False
        return len(by_rank(_recordings_in(folder))) > 1
    if any(Path(place).is_dir() for place in places):
        return False
    return len(places) > 2 or len(by_rank(map(Path, places))) == len(places)


def is_run_of_ranks(places: Sequence[str]) -> bool:
    """Whether it is one folder of a run of several ranks."""
    return len(places) == 1 and store.is_run(Path(places[0])) and bool(store.load(Path(places[0])).ranks)


def with_operators(places: Sequence[str], form: FormName | None) -> bool:
    """Whether a run's recordings with operators are read where it has others too, which slow the host less."""
    if not is_run_of_ranks(places):
        return False
    run = store.load(Path(places[0]))
    chosen = run.form(form) if form else run.forms[-1]
    return chosen is not None and {each.kind for each in chosen.recordings} >= {"light", "rich"}


def _of_run(folder: Path, form: FormName | None) -> list[str]:
    """The recordings of all ranks of a run: of the compiled form, if nothing is said and there is one."""
    run = store.load(folder)
    if not run.ranks:
        raise TracekitError(f"{folder} is a run of one process: `tracekit analyze` reads it")
    name = form or run.forms[-1].name
    found: list[str] = []
    for each in run.ranks:
        place = folder / each.folder if each.folder else folder
        own = store.load(place).form(name)
        if own is None:
            raise TracekitError(f"{folder} has no {name} form: it has {run.forms[0].name}")
        found.append(str(store.recording_path(place, own, "rich")))
    return found


def read_ranks(places: Sequence[str], reading: RanksReading, executor: Executor | None = None) -> list[RankDigest]:
    """The digest of each recording, in the order of `places`. Raises TracekitError for one that cannot be read, and
    names it."""
    return ask_each(Question(reading.digest), places, unpacked_bytes(places), executor)


def read_fleet(places: Sequence[str], reading: RanksReading, executor: Executor | None = None) -> list[RankSummary]:
    """The same of more ranks than can be held at once. Digests are read here: it takes no longer than to start a
    process."""
    traces = [place for place in places if not _is_digest(Path(place))]
    return ask_each(Question(reading.summary), places, unpacked_bytes(traces), executor)


def memory_to_read(places: Iterable[str]) -> int | None:
    """What reading the largest of these files takes, about; None where they are elsewhere."""
    largest = max((unpacked_bytes((place,)) for place in places), default=0)
    return READING_BYTES + int(largest * READING_SHARE) if largest else None


def unpacked_bytes(places: Iterable[str]) -> int:
    """Of all files of this machine, about."""
    paths = (path for path in map(Path, places) if path.is_file())
    return sum(path.stat().st_size * (PACKED if path.suffix in (".gz", ".zst") else 1) for path in paths)
