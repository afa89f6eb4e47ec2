"""From the recordings of many ranks to their digests, made now or kept beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.ranks.digest_file import MAGIC, MOST_FOOTER_BYTES, footer_bytes, read_digest, read_origin, read_summary
from tracekit.ranks.digests import DigestOrigin, RankDigest, RankSummary, Recorded
from tracekit.ranks.fault import checked
from tracekit.ranks.reading.many_files import Found, Question, ask_each
from tracekit.ranks.reading.rank_digest import digest_rank
from tracekit.ranks.reading.recordings import DIGEST, digest_beside
from tracekit.ranks.summary import summarise
from tracekit.tracefile import places as files
from tracekit.tracefile.cache import default_folder
from tracekit.tracefile.read import read_trace
from tracekit.tracefile.source import STDIN, rank_in_name

if TYPE_CHECKING:
    from concurrent.futures import Executor

Refused = Callable[[TracekitError], None]

#: Packed JSON is so many times as large unpacked, about.
UNPACKED_TO_PACKED = 12
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
        kept = self._kept(place)
        return _with_rank_of_name(read_digest(files.content_of(kept), kept), place) if kept else self.made(place)

    def summary(self, place: str) -> RankSummary:
        """What many ranks are reduced by."""
        kept = self._kept(place)
        return _with_rank_of_name(read_summary(_footer_of(kept), kept), place) if kept else summarise(self.made(place))

    def made(self, place: str) -> RankDigest:
        """The digest of a trace. Raises TracekitError for one whose figures cannot be."""
        # Digests are read in less time than this takes to load.
        folder = default_folder() if self.cached else None
        trace = read_trace(place, cache_folder=folder, collectives=True)
        digest = checked(digest_rank(trace, window=self.window, steps=self.steps), place)
        return _with_rank_of_name(digest, place)

    def _kept(self, place: str) -> str | None:
        """Where the recording's digest lies, in its place or beside it; None where there is none that agrees. Raises
        TracekitError for one of another part of its recording than was asked for."""
        if _is_digest(place):
            if (asked := (self.window, self.steps)) != ("auto", None):
                made_of = read_origin(_footer_of(place), place)
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
            made_of = read_origin(_footer_of(digest), digest)
            if made_of is not None and made_of == self.origin(source):
                return files.length_of(digest)
        return None


def _is_digest(place: str) -> bool:
    """Told by its name; a file of this machine also by how it begins."""
    if files.is_url(place):
        return place.endswith(DIGEST)
    path = Path(place)
    return path.is_file() and (place.endswith(DIGEST) or files.part_of(place, 0, len(MAGIC)) == MAGIC)


def _footer_of(digest: str) -> bytes:
    """At least the footer, if it is one: of what is none the last bytes."""
    length = files.length_of(digest) or 0
    end = files.part_of(digest, max(length - FOOTER_BYTES, 0), length)
    needed = min(footer_bytes(end), length, MOST_FOOTER_BYTES)
    return end if needed <= len(end) else files.part_of(digest, length - needed, length)


def _with_rank_of_name(recorded: Recorded, place: str) -> Recorded:
    """With the rank that the file's name has, where the recording itself states none."""
    if recorded.rank is not None:
        return recorded
    return replace(recorded, rank=rank_in_name(Path(place)))


def read_ranks(
    places: Sequence[str], reading: RanksReading, executor: Executor | None = None, refused: Refused | None = None
) -> dict[str, RankDigest]:
    """The digest of each recording by its place, in order. What cannot be read goes to `refused`, as long as anything
    can. Raises TracekitError where nothing can; without `refused` for the first one."""
    return _ask_each_place(reading.digest, places, unpacked_bytes(places), executor, refused)


def read_fleet(
    places: Sequence[str], reading: RanksReading, executor: Executor | None = None, refused: Refused | None = None
) -> dict[str, RankSummary]:
    """The same with summaries, of more ranks than can be held at once. Digests are read here: it takes no longer than
    to start a process."""
    traces = [place for place in places if not _is_digest(place)]
    return _ask_each_place(reading.summary, places, unpacked_bytes(traces), executor, refused)


def _ask_each_place(
    look: Callable[[str], Found],
    places: Sequence[str],
    unpacked_bytes: int,
    executor: Executor | None,
    refused: Refused | None,
) -> dict[str, Found]:
    errors: list[TracekitError] = []
    ask = partial(_with_place, look)
    question = Question(ask, refused=errors.append) if refused else Question(ask)
    if executor is None and len(places) > 1 and all(files.is_url(each) and each.endswith(DIGEST) for each in places):
        with ThreadPoolExecutor(FETCHED_AT_ONCE) as threads:
            found = ask_each(question, places, 0, threads)
    else:
        found = ask_each(question, places, unpacked_bytes, executor)
    if errors and not found:
        raise errors[0]
    if refused:
        for error in errors:
            refused(error)
    return dict(found)


def _with_place(look: Callable[[str], Found], place: str) -> tuple[str, Found]:
    return place, look(place)


def memory_to_read(places: Iterable[str]) -> int | None:
    """What reading the largest of these files takes, about; None where they are elsewhere."""
    largest = max((unpacked_bytes((place,)) for place in places), default=0)
    return READING_BYTES + int(largest * READING_SHARE) if largest else None


def unpacked_bytes(places: Iterable[str]) -> int:
    """Of all that are files, about."""
    total = 0
    for place in places:
        # A digest elsewhere is small. What cannot be asked for its size will say why when it is read.
        if place == STDIN or (files.is_url(place) and place.endswith(DIGEST)):
            continue
        with suppress(TracekitError):
            packed = UNPACKED_TO_PACKED if place.endswith((".gz", ".zst")) else 1
            total += (files.length_of(place) or 0) * packed
    return total
