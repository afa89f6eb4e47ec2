"""What did some ranks of a job do that others did not? Ranks with the same work compile alike and hold as much."""

from collections.abc import Iterator

from tracekit.comparison.judging.accuracy import SEVEREST
from tracekit.model.comparison import Side
from tracekit.model.compilation import FailedGuard
from tracekit.model.note import Note, Noted, Severity
from tracekit.model.numerics import Accuracy
from tracekit.model.rank_difference import JUDGED, OUTPUTS, facts_of
from tracekit.model.run import FormName
from tracekit.statements.accuracy import read_reason


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
            facts = {"ranks": ranks, "of_ranks": len(side.ranks), **facts_of(noted)}
            if "guard" in facts:
                facts["failed_check"] = FailedGuard("", facts.pop("guard")).facts
            severity: Severity = "info" if noted.code == "rank_memory" else "warning"
            yield Note(noted.code, severity, side.label, facts)


def with_worst_rank(accuracy: Accuracy | None, side: Side) -> Accuracy | None:
    """What may be said of the outputs of all ranks, of which `accuracy` is the side's rank's."""
    worst = accuracy
    for rank in side.ranks:
        for noted in (noted for form in rank.forms if _is_of(side, form.name) for noted in form.differs):
            if noted.code != OUTPUTS or worst is None:
                continue
            facts = facts_of(noted)
            result, basis, reason = (facts.pop(name) for name in JUDGED)
            found = Accuracy(result, basis, read_reason(reason, facts), rank.rank)
            worst = found if rank.rank != side.rank and severity_of(found) < severity_of(worst) else worst
    return worst


def _is_of(side: Side, name: FormName) -> bool:
    return side.form is not None and side.form.name == name


def severity_of(accuracy: Accuracy) -> int:
    """0 is the worst."""
    return SEVEREST.index(accuracy.result)
