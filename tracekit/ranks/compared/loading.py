"""Two forms of runs over ranks, of one run or of two: all ranks' recordings, joined, and what changed on each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tracekit import store
from tracekit.analysis import holds_window
from tracekit.errors import TracekitError
from tracekit.model.comparison import Side
from tracekit.ranks.compared.changes import RankSides, compare_ranks
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

KINDS: tuple[RecordingKind, ...] = ("light", "rich")


class FormOfRun(Struct, frozen=True):
    """A side of a comparison: a form of a run over ranks."""

    folder: Path
    run: Run
    form: FormName


class _Form(Struct, frozen=True):
    """A rank's recordings of one form: its side, and what other ranks must know of it, by kind."""

    side: Side
    digests: Mapping[RecordingKind, RankDigest]


class _Look(Struct, frozen=True):
    """What is read of each rank of the two sides."""

    sides: tuple[FormOfRun, FormOfRun]
    reading: Reading

    def at(self, ranks: tuple[RankOfRun, RankOfRun]) -> tuple[_Form, _Form]:
        a, b = (self._of_rank(side, rank) for side, rank in zip(self.sides, ranks, strict=True))
        return a, b

    def _of_rank(self, side: FormOfRun, rank: RankOfRun) -> _Form:
        place = store.rank_folder(side.folder, rank)
        run, name = store.load(place), side.form
        form = run.form(name)
        if form is None:
            raise TracekitError(f"{place} has no {name} variant, which other ranks have")
        analyses: dict[RecordingKind, Analysis] = {}
        digests: dict[RecordingKind, RankDigest] = {}
        for kind in KINDS:
            if not any(each.kind == kind for each in form.recordings):
                continue
            path = store.recording_path(place, form, kind)
            trace = read_trace(path, cache_folder=default_folder() if self.reading.cached else None, collectives=True)
            # The first that holds what is asked for is what figures are of, the other beside it.
            window, steps = self.reading.window, None if analyses else self.reading.steps
            if not holds_window(trace, window):
                if kind == "light":
                    continue
                window = "auto"
            analyses[kind] = replace(self.reading, window=window, steps=steps).analyze(trace)
            if trace.activities.height:
                digest = checked(digest_rank(trace, window=window, steps=steps), str(path))
                digests[kind] = digest if digest.rank is not None else replace(digest, rank=rank.rank)
        first = next((kind for kind in KINDS if kind in analyses), None)
        if first is None:
            raise TracekitError(f"{place} has no recording of {name}")
        path = store.recording_path(place, form, first)
        rich = analyses.get("rich") if first == "light" else None
        return _Form(Side(name, str(path), analyses[first], form, run.settings, run.environment, rich=rich), digests)


def compare_job(of_a: tuple[Path, Run, FormName], of_b: tuple[Path, Run, FormName], reading: Reading) -> JobChange:
    """What changed over all ranks, of which both sides have as many. Raises TracekitError where a rank's recording
    cannot be read."""
    a, b = FormOfRun(*of_a), FormOfRun(*of_b)
    both = list(zip(a.run.ranks, b.run.ranks, strict=True))
    question = Question(_Look((a, b), reading).at, named=lambda pair: f"rank {pair[0].rank}")
    looked = ask_each(question, both, _bytes_of(a) + _bytes_of(b))
    ranks = [RankSides(rank.rank, one.side, other.side) for (rank, _), (one, other) in zip(both, looked, strict=True)]
    joined = [_joined([each[at] for each in looked]) for at in (0, 1)]
    one, other = (find_uneven_collectives(_rich([each[at] for each in looked])) for at in (0, 1))
    # What is uneven anyway is no doing of the compiler's.
    known = {(each.rank, each.name) for each in one}
    uneven = tuple(each for each in other if (each.rank, each.name) not in known)
    return replace(compare_ranks(ranks, joined[0], joined[1]), uneven=uneven)


def _rich(ranks: list[_Form]) -> list[RankDigest]:
    """Those that say what a collective was; empty where a rank has none."""
    found = [each.digests["rich"] for each in ranks if "rich" in each.digests]
    return found if len(found) == len(ranks) else []


def _joined(ranks: list[_Form]) -> dict[RecordingKind, Ranks]:
    """What the ranks' recordings of each kind say together, of which every rank has one with GPU work."""
    return {
        kind: join_ranks([each.digests[kind] for each in ranks])
        for kind in KINDS
        if all(kind in each.digests for each in ranks)
    }


def _bytes_of(side: FormOfRun) -> int:
    """Of all ranks, unpacked: each records about as much."""
    own = (each.bytes for form in side.run.forms if form.name == side.form for each in form.recordings)
    return UNPACKED_TO_PACKED * len(side.run.ranks) * sum(own)
