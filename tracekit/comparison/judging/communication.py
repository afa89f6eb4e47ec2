"""How long a rank communicates depends on when the others come: what one recording of it cannot tell."""

from collections.abc import Iterator

from tracekit.model.comparison import Side
from tracekit.model.note import Note
from tracekit.statements.notes.ranks import CommunicationNotJudged, WaitingUntold


def find_untold_waiting(side: Side) -> Iterator[Note]:
    """A grave note where busy time may hold waiting for other ranks. Figures are per step."""
    found = side.analysis.communication
    if found and found.may_wait:
        yield WaitingUntold(
            subject=side.label,
            communication_us=found.total_us / side.steps,
            compute_us=found.compute_us / side.steps,
            exposed_us=side.exposed_us,
            rank=found.rank,
            world_size=found.world_size,
        )


def find_unjudged_communication(a: Side, b: Side) -> Iterator[Note]:
    """A grave note where the change of GPU time may be one of waiting for other ranks. Figures are per step."""
    found = [side.analysis.communication for side in (a, b)]
    if any(each and each.may_wait for each in found):
        yield CommunicationNotJudged(a.exposed_us, b.exposed_us)
