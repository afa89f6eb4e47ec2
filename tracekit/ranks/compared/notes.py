"""Notes on ranks whose collectives are not those of the others."""

from collections.abc import Iterator

from tracekit.model.comparison import Side
from tracekit.model.note import Note
from tracekit.ranks.compared.nouns import JobChange
from tracekit.ranks.statements.comparisons import RankCollectives


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
