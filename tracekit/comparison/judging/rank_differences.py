"""What did some ranks of a job do that others did not? Ranks with the same work compile alike and hold as much."""

from collections.abc import Iterator

from tracekit.comparison.judging.accuracy import SEVEREST
from tracekit.errors import TracekitError
from tracekit.model.comparison import Side
from tracekit.model.compilation import FailedGuard
from tracekit.model.note import Note, Noted, distinct
from tracekit.model.numerics import Accuracy
from tracekit.names import clipped
from tracekit.statements import rank_differences as differences
from tracekit.statements.guards import check_of
from tracekit.statements.notes.ranks import RankBroke, RankMemory, RankOutputs, RankRanEager, RankRecompiled


def note_rank_differences(a: Side, b: Side) -> Iterator[Note]:
    """A note for each thing that some ranks of a side did and others did not, with these ranks. Raises TracekitError
    for what no rank's run says."""
    for side in (a, b):
        of_ranks = list(_noted_of_ranks(side))
        for noted in distinct(noted for noted, _ in of_ranks):
            who = (side.label, [rank for other, rank in of_ranks if other == noted], len(side.ranks))
            match noted:
                case differences.RankRecompiled():
                    check = check_of(FailedGuard("", noted.guard))
                    counts = noted.times, noted.least, noted.timed
                    yield RankRecompiled(*who, noted.function, noted.where, *counts, check)
                case differences.RankBroke():
                    yield RankBroke(*who, noted.where, noted.function, noted.reason)
                case differences.RankRanEager():
                    yield RankRanEager(*who, noted.where, noted.function, noted.reason)
                case differences.RankMemory():
                    yield RankMemory(*who, noted.peak_bytes, noted.least_bytes)
                case differences.RankOutputs():
                    yield RankOutputs(*who, Accuracy(noted.result, noted.basis, noted.reason))
                case _:
                    code = clipped(noted.written().code, 60)
                    raise TracekitError(f'a note "{code}" on a rank of the run cannot be read; record the run again')


def _noted_of_ranks(side: Side) -> Iterator[tuple[Noted, int]]:
    """What a rank did in the side's form that others did not, and which rank."""
    for rank in side.ranks:
        for form in rank.forms:
            if side.form is not None and form.name == side.form.name:
                yield from ((noted, rank.rank) for noted in form.differs)


def with_worst_rank(accuracy: Accuracy | None, side: Side) -> Accuracy | None:
    """What may be said of the outputs of all ranks, of which `accuracy` is the side's rank's."""
    worst = accuracy
    for noted, rank in _noted_of_ranks(side):
        if worst is not None and rank != side.rank and isinstance(noted, differences.RankOutputs):
            found = Accuracy(noted.result, noted.basis, noted.reason, rank)
            worst = found if severity_of(found) < severity_of(worst) else worst
    return worst


def severity_of(accuracy: Accuracy) -> int:
    """0 is the worst."""
    return SEVEREST.index(accuracy.result)
