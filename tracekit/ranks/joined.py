"""Recordings of one job, joined: what its single collectives were is all known here."""

from functools import cached_property

import numpy as np
import polars as pl
from msgspec import Struct

from tracekit.interval import Ints
from tracekit.ranks.digests import RankDigest, RankSummary
from tracekit.ranks.fleets.clocks import Clocks
from tracekit.ranks.fleets.parts import Parts
from tracekit.ranks.fleets.waits import FleetWaits
from tracekit.ranks.world import Job


class Joined(Struct, frozen=True, dict=True):
    """The ranks of one job, their clocks, and their collectives with who waited in each. `digests` are of those ranks
    that are read in full. Recordings begin when all ranks were being recorded; `skews_us` is what was cut off."""

    job: Job[RankSummary]
    digests: dict[int, RankDigest]
    skews_us: dict[int, float]
    clocks: Clocks
    parts: Parts
    waits: FleetWaits

    def rows_of(self, rank: int) -> slice:
        """Where the rank's collectives are among all parts: in the order of its digest."""
        first, last = np.searchsorted(self.waits.parts["rank"].to_numpy(), (rank, rank + 1))
        return slice(int(first), int(last))

    @cached_property
    def zero_ns(self) -> int:
        """When the first window of the job began, on the common clock."""
        begins = {rank: np.array([each.windows[0][0]]) for rank, each in self.job.digests.items()}
        return min(int(self.clocks.common(rank, begin)[0]) for rank, begin in begins.items())

    def since_zero(self, rank: int, own_ns: Ints) -> Ints:
        """Times of a rank's recording on the common clock, since the first window of the job began. Where the clocks
        are unknown each rank counts from its own."""
        if not self.clocks.known:
            return own_ns - self.job.digests[rank].windows[0][0]
        return self.clocks.common(rank, own_ns) - self.zero_ns

    def on_one_clock(self, rank: int, table: pl.DataFrame) -> pl.DataFrame:
        """A rank's table with its starts and ends so."""
        return table.with_columns(
            pl.Series(name, self.since_zero(rank, table[name].to_numpy())) for name in ("start_ns", "end_ns")
        )
