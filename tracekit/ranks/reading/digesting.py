"""From many recordings to a digest of each, near the files: who reads one writes its digest too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.files import write_replaced
from tracekit.ranks.digest_file import digest_bytes
from tracekit.ranks.digests import DigestsMade
from tracekit.ranks.reading.loading import RanksReading, unpacked_bytes
from tracekit.ranks.reading.many_files import Question, ask_each
from tracekit.ranks.reading.recordings import DIGEST, digest_beside, find_recordings, recording_name
from tracekit.tracefile.places import is_url, put

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor


class UnwritableError(TracekitError):
    """A destination that takes no digest, and would take no other."""


class ToDigest(Struct, frozen=True):
    """A recording, and where its digest goes."""

    source: str
    place: str


def find_traces(places: Sequence[str]) -> tuple[str, ...]:
    """What `find_recordings` finds but digests. Raises TracekitError where nothing is left."""
    found = tuple(each for each in find_recordings(places) if not each.endswith(DIGEST))
    if not found:
        raise TracekitError(f"{places[0]} has digests only: `tracekit ranks` reads them")
    return found


def plan_digests(sources: Sequence[str], folder: str) -> list[ToDigest]:
    """Each recording's digest is called like it; where names clash, with the folders in front that tell them apart."""
    depth = dict.fromkeys(sources, 1)
    while True:
        names = {}
        for source in sources:
            *folders, name = Path(source).parts[-depth[source] :]
            # Of two files that differ in their ending alone it is a part of the name.
            name = recording_name(name) if depth[source] <= len(Path(source).parts) else name
            names[source] = "-".join((*folders, name)) + DIGEST
        counts = Counter(names.values())
        clashing = [source for source in depth if counts[names[source]] > 1]
        if not clashing:
            slashed = f"{folder.rstrip('/')}/" if is_url(folder) else str(Path(folder, " "))[:-1]
            return [ToDigest(source, slashed + name) for source, name in names.items()]
        for source in clashing:
            depth[source] += 1


def _digest(reading: RanksReading, task: ToDigest) -> tuple[int, bool]:
    """Writes the recording's digest, unless it is there and agrees with the recording as it is now. Its bytes, and
    whether it was made. Raises TracekitError for a recording that cannot be read, or is cut off."""
    if (kept := reading.size_of_kept(task.place, task.source)) is not None:
        return kept, False
    # Before it is read: of a recording that grows meanwhile the digest is no longer current.
    origin = reading.origin(task.source)
    digest = reading.made(task.source)
    if digest.truncated:
        raise TracekitError(
            f"{task.source} is cut off: copy it again, or digest what there is of it alone: --out NAME{DIGEST}"
        )
    content = digest_bytes(digest, origin)
    try:
        put(task.place, content)
    except TracekitError as error:
        raise UnwritableError(str(error)) from error
    return len(content), True


def make_digest(source: str, reading: RanksReading) -> bytes:
    """The content of one recording's digest, as far as the recording goes."""
    origin = reading.origin(source)
    return digest_bytes(reading.made(source), origin)


def write_beside(trace: Path) -> None:
    """The digest of a trace that was just recorded, where it is looked for. Raises TracekitError or OSError where it
    cannot be."""
    place = Path(digest_beside(str(trace)) or "")
    write_replaced(place, make_digest(str(trace), RanksReading(cached=False)))


def make_digests(
    tasks: Sequence[ToDigest],
    reading: RanksReading,
    refused: Callable[[TracekitError], None],
    executor: Executor | None = None,
) -> DigestsMade:
    """A digest of each recording. What cannot be read goes to `refused`, one by one. Raises TracekitError where the
    destination takes nothing."""
    failed = 0

    def refuse(error: TracekitError) -> None:
        nonlocal failed
        if isinstance(error, UnwritableError):
            raise error
        failed += 1
        refused(error)

    question = Question(partial(_digest, reading), lambda each: each.source, refuse, "digesting")
    answers = ask_each(question, tasks, unpacked_bytes(each.source for each in tasks), executor)
    made = sum(made for _, made in answers)
    return DigestsMade(made, len(answers) - made, failed, sum(length for length, _ in answers))
