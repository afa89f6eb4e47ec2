"""What compiling changed on each rank of a job. Field names are those of the JSON contract `tracekit.comparison/1`. All
figures are per step."""

from __future__ import annotations

from msgspec import Struct

from tracekit.comparison.waterfall import EXPOSED
from tracekit.model.comparison import Comparison
from tracekit.model.job import Job
from tracekit.model.run import RecordingKind
from tracekit.model.waterfall import Waterfall, WaterfallPart
from tracekit.ranks.job_figures import CauseShare, ClockBasis

#: Parts of a rank's waterfall: kernels but communication; what these took longer beside communication; transfer that
#: became less or more; the change by what of it nothing covers; and waiting for late ranks.
COMPUTE, OVERLAP_PRICE = "compute", "overlap_price"
TRANSFER, OVERLAP, WAITING = "exposed_transfer", "transfer_overlap", "exposed_waiting"


class WaitsFor(Struct, frozen=True):
    """How long a rank waits for another in all, overlapped or not, and what makes that one late."""

    rank: int  #: The one that is late.
    us: float
    causes: tuple[CauseShare, ...]  #: Of all lateness of that rank, the largest first; empty where not told.
    where: str | None  #: Where most of that was made.


class RankCall(Struct, frozen=True):
    """How one rank spends a call of one form: compute + exposed + idle are the call, as recorded where that is what its
    waterfall is of. None: nobody can tell."""

    wall_us: float | None  #: Its own unprofiled call, the median.
    compute_us: float  #: Kernels but communication.
    exposed_us: float  #: Communication with no compute beside it.
    idle_us: float | None  #: Of the unprofiled call; as recorded where that is not the basis.
    recorded_us: float | None  #: The call as recorded.
    transfer_us: float | None = None  #: Of its collectives, whatever runs beside them.
    exposed_transfer_us: float | None = None  #: Of exposed communication the part that is transfer.
    exposed_waiting_us: float | None = None  #: The rest of it: waiting for late ranks.
    overlap_price_us: float | None = None  #: By how much compute took longer beside collectives than alone.
    waits: tuple[WaitsFor, ...] = ()  #: The longest first.

    @property
    def overlapped_share(self) -> float | None:
        """Of transfer what compute covers, 0 to 1."""
        if self.exposed_transfer_us is None or not self.transfer_us:
            return None
        return min(max(1 - self.exposed_transfer_us / self.transfer_us, 0.0), 1.0)


class RankChange(Struct, frozen=True):
    """One rank: what a call takes in both forms, and which parts make the change."""

    rank: int
    a_wall_us: float | None  #: Its own unprofiled call, the median.
    b_wall_us: float | None  #: The same of B.
    a: RankCall | None  #: None without GPU figures.
    b: RankCall | None  #: None without GPU figures.
    waterfall: Waterfall | None  #: None where either is.


def exposed_parts(a: RankCall, b: RankCall) -> tuple[WaterfallPart, ...]:
    """What changed exposed communication; they add up to its change. How much is transferred and how much of it is
    exposed are held apart by the mean of both forms, so that neither is told before the other."""
    if a.exposed_transfer_us is None or b.exposed_transfer_us is None or a.transfer_us is None or b.transfer_us is None:
        return (WaterfallPart("communication", EXPOSED, b.exposed_us - a.exposed_us),)
    transfer = b.exposed_transfer_us - a.exposed_transfer_us
    waiting, overlap = b.exposed_us - a.exposed_us - transfer, 0.0
    # A form without transfer has no share of it that is exposed.
    if a.overlapped_share is not None and b.overlapped_share is not None:
        exposed = (1 - b.overlapped_share) - (1 - a.overlapped_share)
        overlap = exposed * (a.transfer_us + b.transfer_us) / 2
    return (
        WaterfallPart("communication", TRANSFER, transfer - overlap),
        WaterfallPart("communication", OVERLAP, overlap),
        WaterfallPart("communication", WAITING, waiting),
    )


class CollectiveChange(Struct, frozen=True):
    """All collectives of one kind, per rank: a mean over the ranks."""

    name: str
    a_count: float
    b_count: float
    a_bytes: float | None  #: Of all of them together; None where not recorded.
    b_bytes: float | None  #: The same of B.
    a_transfer_us: float | None  #: Of all of them together; None where it cannot be told from waiting.
    b_transfer_us: float | None  #: The same of B.
    a_exposed_transfer_us: float  #: The part with no compute beside it.
    b_exposed_transfer_us: float  #: The same of B.

    @property
    def a_each_bytes(self) -> float | None:
        return self.a_bytes / self.a_count if self.a_bytes and self.a_count else None

    @property
    def b_each_bytes(self) -> float | None:
        return self.b_bytes / self.b_count if self.b_bytes and self.b_count else None


class UnevenCollectives(Struct, frozen=True):
    """A rank whose collectives are not those of the other ranks of its group."""

    rank: int
    name: str
    count: int  #: In the recording.
    usual_count: int  #: Of the group's ranks, the middle one.
    in_place_of: str | None = None  #: What the first rank of the group issues there, where they are in another order.


class JobChange(Job, Struct, frozen=True):
    """What compiling changed over all ranks of a job."""

    slowest: int  #: The rank with most time of its own: its call of B less exposed waiting.
    ranks: tuple[RankChange, ...]
    recording: RecordingKind | None  #: What tells transfer from waiting; None where nothing does.
    clock: ClockBasis | None  #: How the ranks were put on one clock; `bound`: waiting is a lower bound.
    collectives: tuple[CollectiveChange, ...]  #: The kind with most bytes first; from the rich recordings.
    uneven: tuple[UnevenCollectives, ...] = ()  #: Of B, without what is uneven in A too; from the rich recordings.

    @property
    def of_slowest(self) -> RankChange:
        return next(each for each in self.ranks if each.rank == self.slowest)

    @property
    def told(self) -> tuple[RankCall, RankCall] | None:
        """The slowest rank's calls, where transfer is told from waiting in both."""
        a, b = self.of_slowest.a, self.of_slowest.b
        if a is None or b is None or a.exposed_transfer_us is None or b.exposed_transfer_us is None:
            return None
        return a, b

    def exposed_parts(self) -> tuple[WaterfallPart, ...]:
        return exposed_parts(*self.told) if self.told else ()

    def collective(self, name: str) -> CollectiveChange | None:
        return next((each for each in self.collectives if each.name == name), None)


def job_of(comparison: Comparison) -> JobChange | None:
    """The job of a comparison, as this wing made it."""
    assert comparison.job is None or isinstance(comparison.job, JobChange)
    return comparison.job
