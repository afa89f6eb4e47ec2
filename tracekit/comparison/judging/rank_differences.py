"""What did some ranks of a job do that others did not? Ranks with the same work compile alike and hold as much."""

from collections.abc import Iterator, Sequence

from tracekit.comparison.judging.accuracy import SEVEREST
from tracekit.errors import TracekitError
from tracekit.model.comparison import Side
from tracekit.model.compilation import FailedGuard
from tracekit.model.note import Note, Noted
from tracekit.model.numerics import Accuracy
from tracekit.model.run import FormName
from tracekit.names import clipped
from tracekit.statements import rank_differences as differences
from tracekit.statements.guards import check_of
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
    who = (side.label, ranks, len(side.ranks))
    match noted:
        case differences.RankRecompiled():
            counts = noted.times, noted.least, noted.timed
            return RankRecompiled(*who, noted.function, noted.where, *counts, check_of(FailedGuard("", noted.guard)))
        case differences.RankBroke():
            return RankBroke(*who, noted.where, noted.function, noted.reason)
        case differences.RankRanEager():
            return RankRanEager(*who, noted.where, noted.function, noted.reason)
        case differences.RankMemory():
            return RankMemory(*who, noted.peak_bytes, noted.least_bytes)
        case differences.RankOutputs():
            return RankOutputs(*who, _accuracy_of(noted))
    code = clipped(noted.written().code, 60)
    raise TracekitError(f'a note "{code}" on a rank of the run cannot be read; record the run again')


def with_worst_rank(accuracy: Accuracy | None, side: Side) -> Accuracy | None:
    """What may be said of the outputs of all ranks, of which `accuracy` is the side's rank's."""
    worst = accuracy
    for rank in side.ranks:
        for noted in (noted for form in rank.forms if _is_of(side, form.name) for noted in form.differs):
            if not isinstance(noted, differences.RankOutputs) or worst is None:
                continue
            found = _accuracy_of(noted, rank.rank)
            worst = found if rank.rank != side.rank and severity_of(found) < severity_of(worst) else worst
    return worst


def _accuracy_of(noted: differences.RankOutputs, rank: int | None = None) -> Accuracy:
    return Accuracy(noted.result, noted.basis, noted.reason, rank)


def _is_of(side: Side, name: FormName) -> bool:
    return side.form is not None and side.form.name == name


def severity_of(accuracy: Accuracy) -> int:
    """0 is the worst."""
    return SEVEREST.index(accuracy.result)
