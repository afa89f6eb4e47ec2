"""What did some ranks of a job do that others did not? Ranks with the same work compile alike and hold as much."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tracekit.comparison.judging.accuracy import SEVEREST
from tracekit.model.comparison import Side
from tracekit.model.compilation import FailedGuard
from tracekit.model.estimate import Statement
from tracekit.model.note import Note, Noted
from tracekit.model.numerics import Accuracy
from tracekit.model.rank_difference import HeldMemory, LeftGraph, Recompiled, WorseOutputs, read_difference
from tracekit.model.run import FormName
from tracekit.statements.notes.ranks import RankBroke, RankMemory, RankOutputs, RankRanEager, RankRecompiled


def note_rank_differences(a: Side, b: Side) -> Iterator[Note]:
    """A note for each thing that some ranks of a side did and others did not, with these ranks. Raises TracekitError
    for what no rank's run says."""
    for side in (a, b):
        found: list[tuple[Noted, list[int]]] = []
        for each in side.ranks:
            for noted in (noted for form in each.forms if _is_of(side, form.name) for noted in form.differs):
                ranks = next((ranks for other, ranks in found if other == noted), None)
                if ranks is None:
                    found.append((noted, [each.rank]))
                else:
                    ranks.append(each.rank)
        for noted, ranks in found:
            yield _note_of(noted, side, ranks)


def _note_of(noted: Noted, side: Side, ranks: Sequence[int]) -> Note:
    told, who = read_difference(noted), (side.label, ranks, len(side.ranks))
    match told:
        case Recompiled():
            counts = told.times, told.least, told.timed
            return RankRecompiled(*who, told.function, told.where, *counts, FailedGuard("", told.guard))
        case LeftGraph():
            left = RankBroke if noted.code == RankBroke.code else RankRanEager
            return left(*who, told.where, told.function, told.reason)
        case HeldMemory():
            return RankMemory(*who, told.peak_bytes, told.least_bytes)
        case WorseOutputs():
            return RankOutputs(*who, _accuracy_of(told))


def with_worst_rank(accuracy: Accuracy | None, side: Side) -> Accuracy | None:
    """What may be said of the outputs of all ranks, of which `accuracy` is the side's rank's."""
    worst = accuracy
    for rank in side.ranks:
        for told in (read_difference(each) for form in rank.forms if _is_of(side, form.name) for each in form.differs):
            if not isinstance(told, WorseOutputs) or worst is None:
                continue
            found = replace(_accuracy_of(told), rank=rank.rank)
            worst = found if rank.rank != side.rank and severity_of(found) < severity_of(worst) else worst
    return worst


def _accuracy_of(told: WorseOutputs) -> Accuracy:
    return Accuracy(told.result, told.basis, Statement(told.reason, told.because))


def _is_of(side: Side, name: FormName) -> bool:
    return side.form is not None and side.form.name == name


def severity_of(accuracy: Accuracy) -> int:
    """0 is the worst."""
    return SEVEREST.index(accuracy.result)
