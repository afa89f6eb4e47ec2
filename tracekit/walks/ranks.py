"""From the traces of many ranks to their digests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from tracekit import store
from tracekit.analysis.digest import digest_rank
from tracekit.errors import TracekitError
from tracekit.model.ranks import DigestOrigin
from tracekit.ranks.digest_file import MAGIC, footer_bytes, read_digest, read_origin, read_summary
from tracekit.ranks.summary import summarise
from tracekit.ranks.world import Recorded
from tracekit.tracefile import places as files
from tracekit.tracefile.cache import default_folder
from tracekit.tracefile.rank_files import by_rank, rank_in_name
from tracekit.tracefile.read import read_trace
from tracekit.tracefile.source import STDIN
from tracekit.walks.many_files import Found, Question, ask_each

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tracekit.model.ranks import RankDigest, RankSummary
    from tracekit.model.run import FormName

#: What `tracekit digest` writes, and what recorders call traces.
DIGEST = ".digest.parquet"
ENDINGS = (".json", ".json.gz", ".json.zst", DIGEST)
#: What `tracekit open` calls the trace that it makes of all ranks.
MERGED = "perfetto-ranks.json.gz"
#: Of more ranks summaries are read, and reduced as a fleet.
MOST_IN_FULL = 64
#: Packed JSON is so many times as large unpacked, about.
PACKED = 12
#: Digests that are fetched at once: each takes a few round trips and hardly any work.
FETCHED_AT_ONCE = 16
#: Most footers are shorter.
FOOTER_BYTES = 64_000
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
        if (kept := self._kept(place)) is not None:
            return _named(read_digest(files.content_of(kept), kept), place)
        return self.made(place)

    def summary(self, place: str) -> RankSummary:
        """The same, as a fleet needs it."""
        if (kept := self._kept(place)) is not None:
            return _named(read_summary(_footer_of(kept), kept), place)
        return summarise(self.made(place))

    def made(self, place: str) -> RankDigest:
        """The digest of a trace."""
        folder = default_folder() if self.cached else None
        trace = read_trace(place, cache_folder=folder, collectives=True)
        return _named(digest_rank(trace, window=self.window, steps=self.steps), place)

    def _kept(self, place: str) -> str | None:
        """Where the recording's digest lies, in its place or beside it; None where there is none that agrees. Raises
        TracekitError for one of another part of its recording than was asked for."""
        if _is_digest(place):
            if (asked := (self.window, self.steps)) != ("auto", None):
                made_of = read_origin(_footer_of(place))
                if made_of is None or (made_of.window, made_of.steps) != asked:
                    raise TracekitError(f"{place} was made with other --window or --steps: make it anew")
            return place
        beside = digest_beside(place) if self.cached else None
        return beside if beside and self.size_of_kept(beside, place) is not None else None

    def origin(self, place: str) -> DigestOrigin | None:
        """What a digest made of this file now is told by; None for what is no file."""
        length = files.length_of(place) if place != STDIN else None
        if length is None:
            return None
        return DigestOrigin(length, files.sum_of_ends(place, length), self.window, self.steps)

    def size_of_kept(self, digest: str, source: str) -> int | None:
        """The bytes of the digest there, if it is whole and was made of the source as it is now; else None."""
        with suppress(TracekitError):
            made_of = read_origin(_footer_of(digest))
            if made_of is not None and made_of == self.origin(source):
                return files.length_of(digest)
        return None


def _is_digest(place: str) -> bool:
    """A file is told by how it begins, what lies elsewhere by its name."""
    if files.is_url(place):
        return place.endswith(DIGEST)
    path = Path(place)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _footer_of(digest: str) -> bytes:
    length = files.length_of(digest) or 0
    end = files.part_of(digest, max(length - FOOTER_BYTES, 0), length)
    needed = footer_bytes(end)
    return end if needed <= len(end) else files.part_of(digest, max(length - needed, 0), length)


def digest_beside(place: str) -> str | None:
    """Where a digest of the recording lies, if one does in its folder; None where nobody would look."""
    if place == STDIN or place.startswith(files.WEB):
        return None
    folder, slash, name = place.rpartition("/")
    return f"{folder}{slash}{name_of(name)}{DIGEST}"


def name_of(place: str) -> str:
    """The recording's, without what its kind is told by."""
    return PurePosixPath(place).name.partition(".json")[0] or "trace"


def _named(recorded: Recorded, place: str) -> Recorded:
    """With the rank that the file's name has, where the recording itself states none."""
    if recorded.rank is not None:
        return recorded
    return replace(recorded, rank=rank_in_name(Path(place)))


def find_recordings(places: Sequence[str], form: FormName | None = None) -> tuple[str, ...]:
    """The traces of a folder by name, those of one form of a run, or the files and URLs that are named. Raises
    TracekitError for a folder that has none."""
    found: list[str] = []
    for place in map(files.plain, places):
        path = Path(place)
        if files.is_url(place):
            inside = files.files_at(place) if files.is_pattern(place) or _is_folder(place) else None
            found += [place] if inside is None else _recordings_among(inside, place)
        elif not path.exists() and files.is_pattern(place):
            matching = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))) or [_none_at(place)]
            found += find_recordings([str(each) for each in matching if each.is_dir()], form)
            named = [str(each) for each in matching if not each.is_dir()]
            found += _recordings_among(named, place) if named else []
        elif not path.is_dir():
            found.append(str(path))
        elif store.is_run(path):
            found += _of_run(path, form)
        else:
            if form is not None:
                raise TracekitError(f"--form is for run folders: {place} is none, leave it out")
            found += _recordings_among(map(str, path.iterdir()), place)
    return tuple(dict.fromkeys(found))


def _is_folder(url: str) -> bool:
    return not url.endswith(ENDINGS) and files.is_folder_url(url)


def _recordings_among(paths: Iterable[str], place: str) -> list[str]:
    """What of a folder's content, or a pattern's, is called like a trace or a digest, in the order of ranks. A digest
    of a trace that is there too is left out: whoever reads the trace looks for it. Raises TracekitError for none."""
    inside = [each for each in paths if each.endswith(ENDINGS) and PurePosixPath(each).name != MERGED]
    inside = sorted((each for each in inside if files.is_url(each) or Path(each).is_file()), key=_by_numbers)
    # A folder may hold what else was written beside the traces; what states a rank is one, and of another job it is
    # said to be left out.
    named = [each for each in inside if rank_in_name(Path(each)) is not None]
    others = [Path(each) for each in inside if named and not files.is_url(each) and rank_in_name(Path(each)) is None]
    stated = [str(path) for paths in by_rank(others).values() for path in paths]
    found = [*named, *stated] or inside or [_none_at(place)]
    digested = {digest_beside(each) for each in found if not each.endswith(DIGEST)}
    return [each for each in found if each not in digested]


def _none_at(place: str) -> NoReturn:
    raise TracekitError(f"{place} has no traces (.json, .json.gz, .json.zst); name the folder that has")


def _by_numbers(place: str) -> tuple[list[int], str]:
    name = PurePosixPath(place).name
    return [int(number) for number in re.findall(r"\d{1,9}", name)], name


def are_ranks(places: Sequence[str]) -> bool:
    """Whether the places are recordings of several ranks, not a run or two sides to compare: a folder of more than one
    rank's, more than two files, or two of different ranks."""
    if len(places) == 1:
        folder = Path(places[0])
        if not folder.is_dir() or store.is_run(folder):
            return False
        inside = (each for each in folder.iterdir() if each.name.endswith(ENDINGS) and each.name != MERGED)
        return len(by_rank(each for each in inside if each.is_file())) > 1
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
    return _ask(Question(reading.digest), places, unpacked_bytes(places), executor)


def read_fleet(places: Sequence[str], reading: RanksReading, executor: Executor | None = None) -> list[RankSummary]:
    """The same of more ranks than can be held at once. Digests are read here: it takes no longer than to start a
    process."""
    traces = [place for place in places if not _is_digest(place)]
    return _ask(Question(reading.summary), places, unpacked_bytes(traces), executor)


def _ask(
    question: Question[str, Found], places: Sequence[str], unpacked_bytes: int, executor: Executor | None
) -> list[Found]:
    if executor is None and len(places) > 1 and all(files.is_url(each) and each.endswith(DIGEST) for each in places):
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(FETCHED_AT_ONCE) as threads:
            return ask_each(question, places, 0, threads)
    return ask_each(question, places, unpacked_bytes, executor)


def memory_to_read(places: Iterable[str]) -> int | None:
    """What reading the largest of these files takes, about; None where they are elsewhere."""
    largest = max((unpacked_bytes((place,)) for place in places), default=0)
    return READING_BYTES + int(largest * READING_SHARE) if largest else None


def unpacked_bytes(places: Iterable[str]) -> int:
    """Of all that are files, about."""
    return sum(map(_unpacked, places))


def _unpacked(place: str) -> int:
    length = None
    # A digest elsewhere is small. What cannot be asked for its size will say why when it is read.
    if files.is_url(place) and place.endswith(DIGEST):
        return 0
    with suppress(TracekitError):
        length = files.length_of(place) if place != STDIN else None
    return (length or 0) * (PACKED if place.endswith((".gz", ".zst")) else 1)
