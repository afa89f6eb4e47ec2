"""Recordings of one job, joined: what its single collectives were is all known here."""

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from tracekit.interval import Ints
from tracekit.ranks.clocks import Clocks
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.matching import Matching
from tracekit.ranks.waiting import Waits
from tracekit.ranks.world import Job


class Joined(Struct, frozen=True):
    """The ranks of one job, their clocks, and their collectives with who waited in each. `digests` begin when all ranks
    were being recorded; `skews_us` is what was cut off."""

    job: Job[RankDigest]
    digests: dict[int, RankDigest]
    skews_us: dict[int, float]
    clocks: Clocks
    matching: Matching
    waits: Waits

    def since_zero(self) -> Callable[[int, Ints], Ints]:
        """Gives times of a rank's recording on the common clock, since the first window of the job began. Where the
        clocks are unknown each rank counts from its own."""
        begins = {rank: each.windows[0][0] for rank, each in self.digests.items()}
        if not self.clocks.known:
            return lambda rank, own_ns: own_ns - begins[rank]
        common = self.clocks.common
        zero = min(int(common(rank, np.array([begin]))[0]) for rank, begin in begins.items())
        return lambda rank, own_ns: common(rank, own_ns) - zero
