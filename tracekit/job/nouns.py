"""What each rank of a job is asked to do, and what became of one that failed. Both go through files as JSON."""

from pathlib import Path

import msgspec
from msgspec import Struct

from tracekit.measure.plan import RANKS_SECONDS, Plan
from tracekit.model.cell import CellJob

#: Beside a job of several ranks: what a rank says at its end, a RankFailure or null, and where one stood that was told
#: to end.
END_OF_RANK, STANDS_OF_RANK = "end-rank{}.json", "stands-rank{}.txt"


class RankFailure(Struct, frozen=True):
    """What became of one rank of a job that failed."""

    rank: int
    message: str | None = None  #: Its error in one line; None where it raised none.
    traceback: str = ""
    below: tuple[str, ...] = ()
    at: float = 0.0  #: When it failed, seconds since 1970.
    exit_code: int | None = None  #: Negative: a signal; None: it ran on until the launcher stopped it.
    out_of_memory: bool = False
    timed_out: bool = False  #: It had waited for other ranks in vain.
    waited_for: tuple[int, ...] = ()  #: For these, where that is known.
    lost_another: bool = False  #: Its connection to another rank was lost.
    stands: str = ""  #: Where it stood when it was told to end, as `faulthandler` writes it.
    seconds: float = 0.0  #: How long the job had run.


class RankJob(Struct, frozen=True):
    """What each rank is to do: to measure a run by its plan into `draft`, or to time a cell."""

    nproc: int
    timeout_seconds: float = RANKS_SECONDS
    plan: Plan | None = None
    draft: Path | None = None
    cell: CellJob | None = None


def encoded(job: RankJob) -> bytes:
    return msgspec.json.encode(job, enc_hook=str)


def decoded(content: bytes) -> RankJob:
    return msgspec.json.decode(content, type=RankJob, dec_hook=lambda kind, text: kind(text))
