"""What the recordings of many ranks of one job say together. Field names are those of the JSON contract
`tracekit.ranks/1`."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from tracekit.model.note import WrittenNote
from tracekit.model.statement import Severity, Statement
from tracekit.model.timeline import StepTimeline

#: How a collective of one rank was joined to those of the others, the surest first.
MatchedBy = Literal["sequence", "pair", "signature", "order", "ends"]
#: Why a collective could not be joined.
Unmatched = Literal[
    "missing_rank",
    "counts_differ",
    "ends_disagree",
    "not_at_once",
    "peers_unknown",
    "one_sided",
    "group_unknown",
    "clocks_unknown",
]
CollectiveClass = Literal["transfer", "waiting", "mixed", "inconclusive"]
ClockBasis = Literal["one_host", "aligned", "bound"]


class World(Struct, frozen=True):
    """The job that was recorded."""

    size: int | None  #: Its ranks, as the recordings state it; None where they do not.
    recorded: tuple[int, ...]
    missing: tuple[int, ...]
    hosts: int  #: How many clocks the recordings were made by.
    missing_ranges: tuple[tuple[int, int], ...] = ()  #: The missing ranks, from the first to the last of each row.


class Clock(Struct, frozen=True):
    """How the times of ranks were put on one clock."""

    basis: ClockBasis  #: `bound`: they were not, and waiting is a lower bound.
    uncertainty_us: float | None  #: By how much ends of one collective lie apart, the median; None: nothing matched.


class CauseShare(Struct, frozen=True):
    """Of lateness."""

    cause: str  #: Of idle time, or `compute`, or `communication`.
    us: float


class RankUse(Struct, frozen=True):
    """How one rank spent the window: span = compute + exposed transfer + exposed waiting + idle."""

    rank: int
    path: str
    span_us: float
    compute_us: float
    communication_us: float
    waiting_us: float | None
    transfer_us: float | None
    exposed_us: float
    exposed_waiting_us: float | None
    exposed_transfer_us: float | None
    idle_us: float
    idle_causes: tuple[CauseShare, ...]
    overlap_price_us: (
        float | None
    )  #: By how much compute took longer beside collectives than alone; of many ranks told of some.
    overlap_price_ci95: tuple[float, float] | None
    slower: float  #: Time of the kernels that all ranks ran alike, by the median rank's, less one.
    collectives: int
    last_arrivals: int
    start_skew_us: float = 0.0  #: Of its first collectives, before all ranks were recording; in no other figure.

    @property
    def seen_price_us(self) -> float | None:
        """The price of overlap; 0 where its interval holds 0, None where it is not known."""
        if self.overlap_price_us is None or self.overlap_price_ci95 is None:
            return None
        return self.overlap_price_us if self.overlap_price_ci95[0] > 0 else 0.0

    @property
    def price_of_waiting_us(self) -> float | None:
        """Of the price of overlap the part of collectives that only waited; None where the price is not known."""
        if self.seen_price_us is None:
            return None
        return self.seen_price_us * (self.waiting_us or 0.0) / max(self.communication_us, 1e-9)

    @property
    def waiting_cost_us(self) -> float:
        """What the rank's window is longer by for waiting: exposed waiting, and kernels slowed beside collectives that
        waited. Without a price the first alone."""
        return (self.exposed_waiting_us or 0.0) + (self.price_of_waiting_us or 0.0)

    @property
    def communication_cost_us(self) -> float:
        """The same of all communication, transfer too."""
        return self.exposed_us + (self.seen_price_us or 0.0)


class RankTimes(Struct, frozen=True):
    """A rank, and how often."""

    rank: int
    times: int


class RankWait(Struct, frozen=True):
    """A rank, and how long it waited."""

    rank: int
    us: float


class RankBytes(Struct, frozen=True):
    """What a rank gave to the others, and what it took."""

    rank: int
    sent: int
    received: int


class WaitedFor(Struct, frozen=True):
    """How long one rank waited for another, in all collectives."""

    rank: int
    late: int
    us: float


class CollectiveUse(Struct, frozen=True):
    """All collectives of one kind, group and size. Figures are sums over them and the ranks, unless said otherwise."""

    name: str
    group: str | None
    ranks: tuple[int, ...]
    dtype: str | None
    bytes: int | None  #: Of an all-to-all those of the rank with most; of several the median.
    count: int
    transfer_us: float | None
    arrival_spread_us: float | None  #: Between the first and the last to arrive, the median.
    late_ranks: tuple[RankTimes, ...]
    waiting_us: tuple[RankWait, ...]
    algbw_gbps: float | None  #: Bytes by the median transfer; NCCL tests' PERFORMANCE.md.
    busbw_gbps: float | None
    peak_gbps: float | None  #: Of the link, by the device's name; None where unknown, and between hosts.
    exposed_transfer_us: float  #: Transfer with no compute beside it; what overlaps another collective is in both.
    kind: CollectiveClass = field(name="class")
    matched_by: MatchedBy
    rank_bytes: tuple[RankBytes, ...]  #: Of an all-to-all, whose ranks may give and take unequally much.


class CollectivePart(Struct, frozen=True):
    """What one rank did in one collective."""

    rank: int
    start_us: float | None  #: Of its kernel, on the common clock since the job's first window began; None: unknown.
    waiting_us: float
    transfer_us: float


class OneCollective(CollectiveUse, frozen=True):
    """A single collective over ranks: its figures as those of a kind of which it is the only one, and each rank's
    part."""

    start_us: float | None  #: Of the first rank's kernel, on the common clock; None where the clocks are unknown.
    last_rank: int | None  #: The last to arrive; None where the clocks are unknown.
    parts: tuple[CollectivePart, ...]  #: Of each rank that recorded it.
    number: int  #: Its place among all that were matched, in the order in which they began; from 1.
    step: int | None
    causes: tuple[CauseShare, ...]  #: Of the last rank's lateness; they add up to the waiting.
    where: str | None = None  #: Where most of that was made; told of the worst.


class RankStretch(Struct, frozen=True):
    """What one rank did in a stretch, as `timeline`: lane 0 of its work is all but communication, lane 1 that; kinds
    are `compute`, `waiting`, `transfer`, and `communication` where neither can be told. Idle time has the kind `idle`
    and is named by its cause. The position of a bar is the number of its collective, else -1."""

    rank: int
    timeline: StepTimeline


class Stretch(Struct, frozen=True):
    """What the ranks did around one of the worst collectives, on one clock. All timelines share their labels."""

    number: int  #: Of the collective.
    begin_us: float  #: As `start_us` of the collective.
    arrival_us: float  #: When the last rank arrived, since the stretch began.
    ranks: tuple[RankStretch, ...]
    unshown: int  #: Ranks that are left out.
    together: int  #: Short kernels that are drawn together with others.


class LateRank(Struct, frozen=True):
    """A rank that others waited for, and why it was late."""

    rank: int
    waited_for_us: float  #: By all others together.
    causes: tuple[CauseShare, ...]  #: They add up to `waited_for_us`.
    where: tuple[str, ...]
    most_waited_us: float = 0.0  #: By the rank that waited longest for it.
    waiter: int | None = None  #: That rank.
    behind_us: float = 0.0  #: How far it fell behind, each time from where the ranks were level, in all.
    times_behind: int = 0  #: How often it did.
    one_gap_share: float = 0.0  #: Of `waited_for_us`: fell behind in one idle gap, not little by little.


class UnevenKernel(Struct, frozen=True):
    """A kernel that one rank ran more, or less, often than is usual among the ranks."""

    rank: int
    name: str
    count: int
    usual_count: float
    more_us: float  #: Its time, less what is usual.


class WrittenRankFinding(Struct, frozen=True):
    """What a reader should know or do, as JSON holds it."""

    code: str
    severity: Severity
    rank: int | None  #: Whom it is about; None for the job.
    facts: dict[str, Any]  #: Figures and names, with units in their keys.
    saving_us: float | None  #: Of the window at most, by estimate; None where nobody can say.
    title: str  #: The finding in words.
    evidence: str  #: What it rests on, in words.


class RankFinding(Statement):
    """What a reader should know or do."""

    as_written = WrittenRankFinding
    beside = ("rank", "saving_us")
    #: What to do, of which `rank`, why, and what shows more; empty where that depends on more than the finding.
    does = why = command = ""
    rank: int | None
    saving_us: float | None

    def title(self) -> str:
        raise NotImplementedError

    def to_do(self) -> str:
        return self.does.format(rank=self.rank)

    def written(self) -> WrittenRankFinding:
        return WrittenRankFinding(
            self.code, self.severity, self.rank, self.facts, self.saving_us, self.title(), self.long()
        )


class RankNote(Statement):
    """A fact about recordings of ranks that bears on figures. A class has a `subject` where it is about one file."""

    as_written = WrittenNote
    beside = ("subject",)
    #: What is wrong with a recording that is left out for it, as such are counted; else empty.
    fault = ""

    def written(self) -> WrittenNote:
        subject: str | None = getattr(self, "subject", None)
        return WrittenNote(self.code, self.severity, subject, self.facts, grave=False)


class UnmatchedCollectives(Struct, frozen=True):
    """Collectives of one rank that were joined to none of another."""

    rank: int
    reason: Unmatched
    count: int
    total_us: float


class StepsRead(Struct, frozen=True):
    """What of the recordings is counted."""

    kind: Literal["steps", "span", "whole"]
    count: int  #: Steps, or named spans, of the rank with most; 1 where all of it is.


class RankGroup(Struct, frozen=True):
    """Ranks that share a host, or a place on an axis of the job's parallelism; figures are medians over them."""

    axis: str  #: host, tensor, data, pipeline, expert, context, `expert data`; `groups of 16` where groups state none.
    name: str  #: The host's, or the place.
    ranks: tuple[int, ...]
    span_us: float
    compute_us: float
    exposed_transfer_us: float | None
    exposed_waiting_us: float | None
    idle_us: float
    excess: float | None  #: Of their own time, compute and idle, over the median of the axis' groups, as a share.


class Straggler(Struct, frozen=True):
    """A rank, a host or a link that is slower than its peers beyond chance."""

    kind: Literal["rank", "host", "link"]
    name: str | None  #: The host's, or the process group's.
    ranks: tuple[int, ...]
    excess: float  #: Of a step's own time, compute and idle; of a link's transfer; over the median of its peers.
    ci95: tuple[float, float]
    beyond: float  #: The same in deviations of the peers' excesses.
    chance: float  #: Of a false alarm, corrected for all that were tested.
    lost_us: float  #: In all steps; of a link in all its collectives, by a rank.
    causes: tuple[CauseShare, ...]  #: Of what is lost; none of a link.
    waited_us: float | None  #: By other ranks for these, all together; None of a link.
    steps: int  #: That were compared; of a link, collectives.
    steps_slower: int  #: Those in which it was slower than the median of its peers.
    collective: str | None = None  #: Of a link.
    bytes: int | None = None
    busbw_gbps: float | None = None
    usual_gbps: float | None = None


class StragglerRule(Struct, frozen=True):
    """When something is called a straggler."""

    false_alarms: float  #: The probability of even one in a job in which nothing is slow, at most.
    correction: Literal["holm"]
    tested: int  #: Ranks, hosts and links.
    least_excess: float  #: Less is not told, of ranks and hosts, and of links.
    least_excess_of_link: float


class StepSpread(Struct, frozen=True):
    """One step over all ranks: own time is compute and idle."""

    step: int
    usual_us: float  #: Own time of the median rank.
    most_us: float
    rank: int  #: That had most.
    waiting: float | None  #: Share of the step that is exposed communication, of the median rank.


class StepRow(Struct, frozen=True):
    """How much longer a rank's own time is than its peers', step by step, as a share; of several ranks the median."""

    name: str
    ranks: tuple[int, ...]
    excess: tuple[float | None, ...]


class RanksFigures(Struct, frozen=True):
    """What the recordings of many ranks say together."""

    world: World
    clock: Clock
    steps: StepsRead
    ranks: tuple[RankUse, ...]
    collectives: tuple[CollectiveUse, ...]  #: A row for each kind, group and size; or each one alone, as in `worst`.
    late: tuple[LateRank, ...]
    unmatched: tuple[UnmatchedCollectives, ...]
    waits: tuple[WaitedFor, ...] = ()
    uneven: tuple[UnevenKernel, ...] = ()
    findings: tuple[RankFinding, ...] = ()
    notes: tuple[RankNote, ...] = ()
    worst: tuple[OneCollective, ...] = ()  #: The single collectives with most waiting, the most first.
    groups: tuple[RankGroup, ...] = ()  #: By host, and by each axis of parallelism.
    stragglers: tuple[Straggler, ...] = ()  #: Those that lose most first.
    straggler_rule: StragglerRule | None = None  #: None where too few ranks are alike to compare them.
    by_step: tuple[StepSpread, ...] = ()
    step_rows: tuple[StepRow, ...] = ()  #: Stragglers, and the others by neighbouring ranks.


class Ranks(RanksFigures, frozen=True):
    """The same with what is drawn of it: every activity one by one is the traces over again."""

    stretches: tuple[Stretch, ...] = ()  #: Around the worst collectives, where somebody will look at them.

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(each.long() for each in self.notes)
