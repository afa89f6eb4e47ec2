"""Which files are the recordings of a job's ranks: of a folder, a run, a pattern or an object store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NoReturn

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.tracefile import places as files
from tracekit.tracefile.source import STDIN, by_rank, rank_in_name

if TYPE_CHECKING:
    from tracekit.model.run import FormName

#: What `tracekit digest` writes, and what recorders call traces.
DIGEST = ".digest"
ENDINGS = (".json", ".json.gz", ".json.zst", DIGEST)
#: What `tracekit open` calls the trace that it makes of all ranks.
MERGED = "perfetto-ranks.json.gz"


def find_recordings(places: Sequence[str], form: FormName | None = None) -> tuple[str, ...]:
    """The traces of a folder by name, those of one form of a run, or the files and URLs that are named. Raises
    TracekitError for a folder that has none."""
    found: list[str] = []
    for place in map(files.plain, places):
        path = Path(place)
        if files.is_url(place):
            several = files.is_pattern(place) or (not place.endswith(ENDINGS) and files.is_folder_url(place))
            found += _recordings_among(files.files_at(place), place) if several else [place]
        elif not path.exists() and files.is_pattern(place):
            matching = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))) or [_none_at(place)]
            found += find_recordings([str(each) for each in matching if each.is_dir()], form)
            named = [str(each) for each in matching if not each.is_dir()]
            found += _recordings_among(named, place) if named else []
        elif not path.is_dir():
            found.append(str(path))
        elif store.is_run(path):
            found += _recordings_of_run(path, form)
        else:
            if form is not None:
                raise TracekitError(f"--form is for run folders: {place} is none, leave it out")
            found += _recordings_among(map(str, path.iterdir()), place)
    return tuple(dict.fromkeys(found))


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


def _recordings_of_run(folder: Path, form: FormName | None) -> list[str]:
    """The recordings of all ranks of a run: of the compiled form, if nothing is said and there is one."""
    run = store.load(folder)
    if not run.ranks:
        raise TracekitError(f"{folder} is a run of one process: `tracekit analyze` reads it")
    name = form or run.forms[-1].name
    found: list[str] = []
    for each in run.ranks:
        place = store.rank_folder(folder, each)
        own = store.load(place).form(name)
        if own is None:
            raise TracekitError(f"{folder} has no {name} form: it has {run.forms[0].name}")
        found.append(str(store.recording_path(place, own, "rich")))
    return found


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


def digest_beside(place: str) -> str | None:
    """Where a digest of the recording lies, if one does in its folder; None where nobody would look."""
    if place == STDIN or place.startswith(files.WEB):
        return None
    folder, slash, name = place.rpartition("/")
    return f"{folder}{slash}{recording_name(name)}{DIGEST}"


def recording_name(place: str) -> str:
    """The file's, without what its kind is told by."""
    return PurePosixPath(place).name.partition(".json")[0] or "trace"
