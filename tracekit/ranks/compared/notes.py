"""Notes on ranks whose collectives are not those of the others."""

from collections.abc import Iterator, Sequence

from tracekit.model.comparison import Side
from tracekit.model.note import Note
from tracekit.numbers import counted
from tracekit.ranks.compared.nouns import JobChange
from tracekit.statements.notes.ranks import alone


class RankCollectives(Note):
    code = "rank_collectives"
    on_first_screen = True
    subject: str
    ranks: Sequence[int]
    of_ranks: int
    collective: str
    count: int
    usual_count: int
    in_place_of: str | None

    def long(self) -> str:
        who = alone(self.ranks, self.of_ranks)
        if self.in_place_of:
            return (
                f"{who} issues its collectives in another order in {self.subject}: {self.collective} where other ranks"
                f" issue {self.in_place_of}."
            )
        return (
            f"{who} issues {counted(self.count, self.collective)} per step in {self.subject}, other ranks"
            f" {self.usual_count:,}."
        )

    def short(self) -> str:
        who = alone(self.ranks, self.of_ranks).lower()
        if self.in_place_of:
            return f"{who} issues {self.collective} where others issue {self.in_place_of}"
        return f"{who} issues {counted(self.count, self.collective)}, others {self.usual_count:,}"


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
