"""Two forms of runs over ranks, of one run or of two: all ranks' recordings, joined, and what changed on each."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracekit import store
from tracekit.analysis import holds_window
from tracekit.errors import TracekitError
from tracekit.model.comparison import Side
from tracekit.ranks.compared.changes import KINDS, RankSides, compare_ranks
from tracekit.ranks.fault import checked
from tracekit.ranks.reading.loading import UNPACKED_TO_PACKED
from tracekit.ranks.reading.many_files import Question, ask_each
from tracekit.ranks.reading.rank_digest import digest_rank
from tracekit.ranks.telling import join_ranks
from tracekit.ranks.uneven_collectives import find_uneven_collectives
from tracekit.tracefile.cache import default_folder
from tracekit.tracefile.read import read_trace

if TYPE_CHECKING:
    from tracekit.model.analysis import Analysis
    from tracekit.model.run import FormName, RankOfRun, RecordingKind, Run
    from tracekit.ranks.compared.nouns import JobChange
    from tracekit.ranks.digests import RankDigest
    from tracekit.ranks.job_figures import Ranks
    from tracekit.reading.traces import Reading

#: A side of a comparison: a form of a run over ranks, and the run's folder.
FormOfRun = tuple[Path, "Run", "FormName"]


#: A rank's recordings of one form: its side, and what other ranks must know of it, by kind.
Form = tuple[Side, dict["RecordingKind", "RankDigest"]]


def _read_rank(
    sides: tuple[FormOfRun, FormOfRun], reading: Reading, ranks: tuple[RankOfRun, RankOfRun]
) -> tuple[Form, Form]:
    a, b = (_read_form(side, rank, reading) for side, rank in zip(sides, ranks, strict=True))
    return a, b


def _read_form(side: FormOfRun, rank: RankOfRun, reading: Reading) -> Form:
    folder, _, name = side
    place = store.rank_folder(folder, rank)
    run = store.load(place)
    form = run.form(name)
    if form is None:
        raise TracekitError(f"{place} has no {name} variant, which other ranks have")
    analyses: dict[RecordingKind, Analysis] = {}
    digests: dict[RecordingKind, RankDigest] = {}
    for kind in KINDS:
        if not any(each.kind == kind for each in form.recordings):
            continue
        path = store.recording_path(place, form, kind)
        trace = read_trace(path, cache_folder=default_folder() if reading.cached else None, collectives=True)
        # The first that holds what is asked for is what figures are of, the other beside it.
        window, steps = reading.window, None if analyses else reading.steps
        if not holds_window(trace, window):
            if kind == "light":
                continue
            window = "auto"
        analyses[kind] = replace(reading, window=window, steps=steps).analyze(trace)
        if trace.activities.height:
            digest = checked(digest_rank(trace, window=window, steps=steps), str(path))
            digests[kind] = digest if digest.rank is not None else replace(digest, rank=rank.rank)
    if not analyses:
        raise TracekitError(f"{place} has no recording of {name}")
    first, *others = analyses
    path = store.recording_path(place, form, first)
    rich = analyses["rich"] if others else None
    return Side(name, str(path), analyses[first], form, run.settings, run.environment, rich=rich), digests


def compare_job(a: FormOfRun, b: FormOfRun, reading: Reading) -> JobChange:
    """What changed over all ranks, of which both sides have as many. Raises TracekitError where a rank's recording
    cannot be read."""
    both = list(zip(a[1].ranks, b[1].ranks, strict=True))
    question = Question(partial(_read_rank, (a, b), reading), named=lambda pair: f"rank {pair[0].rank}")
    looked = ask_each(question, both, _bytes_of(a) + _bytes_of(b))
    ranks = [RankSides(rank.rank, one, other) for (rank, _), ((one, _), (other, _)) in zip(both, looked, strict=True)]
    of_a, of_b = [one for one, _ in looked], [other for _, other in looked]
    # What is uneven anyway is no doing of the compiler's.
    known = {(each.rank, each.name) for each in find_uneven_collectives(_of_kind(of_a, "rich"))}
    found = find_uneven_collectives(_of_kind(of_b, "rich"))
    uneven = tuple(each for each in found if (each.rank, each.name) not in known)
    return replace(compare_ranks(ranks, _joined(of_a), _joined(of_b)), uneven=uneven)


def _joined(ranks: list[Form]) -> dict[RecordingKind, Ranks]:
    """What the ranks' recordings of each kind say together, of which every rank has one with GPU work."""
    return {kind: join_ranks(digests) for kind in KINDS if (digests := _of_kind(ranks, kind))}


def _of_kind(ranks: list[Form], kind: RecordingKind) -> list[RankDigest]:
    """Empty where a rank has none."""
    found = [digests[kind] for _, digests in ranks if kind in digests]
    return found if len(found) == len(ranks) else []


def _bytes_of(side: FormOfRun) -> int:
    """Of all ranks, unpacked: each records about as much."""
    _, run, name = side
    own = (each.bytes for form in run.forms if form.name == name for each in form.recordings)
    return UNPACKED_TO_PACKED * len(run.ranks) * sum(own)
