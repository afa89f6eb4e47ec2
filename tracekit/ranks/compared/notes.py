"""Notes on ranks whose collectives are not those of the others."""

from collections.abc import Iterator

from tracekit.model.comparison import Side
from tracekit.model.note import Note
from tracekit.numbers import counted
from tracekit.ranks.compared.nouns import JobChange
from tracekit.statements.notes.ranks import OfSomeRanks


class RankCollectives(OfSomeRanks):
    code = "rank_collectives"
    on_first_screen = True
    collective: str
    count: int
    usual_count: int
    in_place_of: str | None

    def long(self) -> str:
        if self.in_place_of:
            return (
                f"{self.alone} issues its collectives in another order in {self.subject}: {self.collective} where other"
                f" ranks issue {self.in_place_of}."
            )
        return (
            f"{self.alone} issues {counted(self.count, self.collective)} per step in {self.subject}, other ranks"
            f" {self.usual_count:,}."
        )

    def short(self) -> str:
        issues = f"issues {counted(self.count, self.collective)}, others {self.usual_count:,}"
        if self.in_place_of:
            issues = f"issues {self.collective} where others issue {self.in_place_of}"
        return f"{self.alone.lower()} {issues}"


def note_uneven_collectives(b: Side, job: JobChange) -> Iterator[Note]:
    """A note for each rank of B whose collectives are not those of the others, and were in A."""
    for each in job.uneven:
        yield RankCollectives(
            b.label,
            ranks=[each.rank],
            of_ranks=len(b.ranks),
            collective=each.name,
            count=each.count,
            usual_count=each.usual_count,
            in_place_of=each.in_place_of,
        )
