"""From the recordings of many ranks to what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracekit.errors import TracekitError
from tracekit.measure.engines import opened_engine
from tracekit.ranks.joining import hold, match_ranks
from tracekit.ranks.reading.loading import RanksReading, memory_to_read, read_fleet, read_ranks
from tracekit.ranks.telling import MOST_HELD, Reduced, choose_explained, list_collectives, reduce_ranks, tell_ranks
from tracekit.ranks.world import notes_of_unread

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tracekit.ranks.job_figures import OneCollective, Ranks
    from tracekit.ranks.joined import Joined


def tell_recordings(
    found: Sequence[str], reading: RanksReading, engine: str, *, drawn: bool, each_alone: bool
) -> tuple[Ranks, tuple[OneCollective, ...] | None]:
    """With timelines where it is to be drawn, and each collective by itself where that is asked for. What cannot be
    read is a note. Raises TracekitError where nothing can."""
    with opened_engine(engine, memory_to_read(found)) as executor:
        if len(found) <= MOST_HELD:
            joined = join_recordings(found, reading, executor)
            reduced = reduce_ranks(joined)
        else:
            joined, reduced = _join_many(found, reading, executor)
        return tell_ranks(joined, reduced, drawn=drawn), list_collectives(joined) if each_alone else None


def _join_many(found: Sequence[str], reading: RanksReading, executor: Executor | None) -> tuple[Joined, Reduced]:
    """Summaries of all, then digests of those that are explained. Whose summary alone can be read is left out too."""
    unread: list[TracekitError] = []
    read = read_fleet(found, reading, executor, unread.append)
    while True:
        joined = match_ranks([*read.values()], notes_of_unread(unread))
        reduced = reduce_ranks(joined)
        places = {(each.path, each.rank): place for place, each in read.items()}
        recorded = joined.job.digests
        chosen = {
            places.get((recorded[rank].path, rank)) or places[recorded[rank].path, None]: rank
            for rank in choose_explained(reduced)
        }
        digests = read_ranks([*chosen], reading, executor, unread.append)
        if len(digests) == len(chosen):
            return hold(joined, {chosen[place]: each for place, each in digests.items()}), reduced
        read = {place: each for place, each in read.items() if place in digests or place not in chosen}


def join_recordings(found: Sequence[str], reading: RanksReading, executor: Executor | None = None) -> Joined:
    """All ranks on one clock. What cannot be read is a note. Raises TracekitError where nothing can."""
    unread: list[TracekitError] = []
    digests = read_ranks(found, reading, executor, unread.append)
    return match_ranks([*digests.values()], notes_of_unread(unread))
