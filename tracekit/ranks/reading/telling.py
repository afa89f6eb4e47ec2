"""From the recordings of many ranks to what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracekit.errors import TracekitError
from tracekit.measure.engines import opened_engine
from tracekit.ranks.collectives import list_collectives
from tracekit.ranks.joining import match_ranks, tell_ranks
from tracekit.ranks.reading.loading import MOST_IN_FULL, RanksReading, memory_to_read, read_fleet, read_ranks
from tracekit.ranks.world import notes_of_unread

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tracekit.ranks.job_figures import OneCollective, Ranks
    from tracekit.ranks.joined import Joined


def tell_recordings(
    found: Sequence[str], reading: RanksReading, engine: str, *, drawn: bool, each_alone: bool
) -> tuple[Ranks, tuple[OneCollective, ...] | None]:
    """With timelines where it is to be drawn, and each collective by itself where that is asked for. What cannot be
    read is a note. Raises TracekitError where nothing can, and for each collective of a fleet."""
    with opened_engine(engine, memory_to_read(found)) as executor:
        if len(found) > MOST_IN_FULL:
            if each_alone:
                raise TracekitError(f"--collectives all is for {MOST_IN_FULL} ranks or fewer: name these")
            unread: list[TracekitError] = []
            summaries = read_fleet(found, reading, executor, unread.append)
            from tracekit.ranks.fleets.reduce import reduce_fleet

            return reduce_fleet(summaries, notes_of_unread(unread)), None
        joined = join_recordings(found, reading, executor)
    return tell_ranks(joined, drawn=drawn), list_collectives(joined) if each_alone else None


def join_recordings(found: Sequence[str], reading: RanksReading, executor: Executor | None = None) -> Joined:
    """All ranks on one clock. What cannot be read is a note. Raises TracekitError where nothing can."""
    unread: list[TracekitError] = []
    digests = read_ranks(found, reading, executor, unread.append)
    return match_ranks(digests, notes_of_unread(unread))
