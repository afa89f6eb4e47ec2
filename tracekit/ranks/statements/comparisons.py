"""What is noted of the ranks of a comparison."""

from collections.abc import Sequence

from tracekit.model.note import Note
from tracekit.numbers import counted
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
