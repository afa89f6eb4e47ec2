"""How long a rank communicates depends on when the others come: what one recording of it cannot tell."""

from collections.abc import Iterator

from tracekit.model.comparison import Side
from tracekit.model.note import Note, NoteStruct


def find_untold_waiting(side: Side) -> Iterator[Note]:
    """A grave note where busy time may hold waiting for other ranks. Figures are per step."""
    found = side.analysis.communication
    if found and found.may_wait:
        facts = {
            "communication_us": found.total_us / side.steps,
            "compute_us": side.compute_us,
            "exposed_us": side.exposed_us,
            "rank": found.rank,
            "world_size": found.world_size,
        }
        yield NoteStruct("waiting_untold", subject=side.label, facts=facts, grave=True)


def find_unjudged_communication(a: Side, b: Side) -> Iterator[Note]:
    """A grave note where the change of GPU time may be one of waiting for other ranks. Figures are per step."""
    found = [side.analysis.communication for side in (a, b)]
    if any(each and each.may_wait for each in found):
        exposed = {"a_exposed_us": a.exposed_us, "b_exposed_us": b.exposed_us}
        yield NoteStruct("communication_not_judged", facts=exposed, grave=True)
