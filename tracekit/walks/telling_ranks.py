"""From the recordings of many ranks to what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.ranks.world import notes_of_unread
from tracekit.walks.engines import opened_engine
from tracekit.walks.reading_ranks import MOST_IN_FULL, RanksReading, memory_to_read, read_fleet, read_ranks

if TYPE_CHECKING:
    from tracekit.model.ranks import OneCollective, Ranks


def tell_recordings(
    found: Sequence[str], reading: RanksReading, engine: str, *, drawn: bool, each_alone: bool
) -> tuple[Ranks, tuple[OneCollective, ...] | None]:
    """With timelines where it is to be drawn, and each collective by itself where that is asked for. What cannot be
    read is a note. Raises TracekitError where nothing can, and for each collective of a fleet."""
    unread: list[TracekitError] = []
    alone = None
    with opened_engine(engine, memory_to_read(found)) as executor:
        if len(found) > MOST_IN_FULL:
            if each_alone:
                raise TracekitError(f"--collectives all is for {MOST_IN_FULL} ranks or fewer: name these")
            summaries = read_fleet(found, reading, executor, unread.append)
            from tracekit.ranks.fleets.reduce import reduce_fleet

            told = reduce_fleet(summaries)
        else:
            digests = read_ranks(found, reading, executor, unread.append)
            from tracekit.ranks.collectives import list_collectives
            from tracekit.ranks.joining import match_ranks, tell_ranks

            joined = match_ranks(digests)
            told = tell_ranks(joined, drawn=drawn)
            alone = list_collectives(joined) if each_alone else None
    return replace(told, notes=(*notes_of_unread(unread), *told.notes)), alone
