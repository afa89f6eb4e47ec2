"""What is to be known of several ranks: what some did and others did not, and how long they may wait for each other."""

from collections.abc import Sequence

from tracekit.model.note import Note
from tracekit.model.numerics import Accuracy
from tracekit.model.statement import builtins_of
from tracekit.numbers import counted, duration, size
from tracekit.statements.guards import Check

#: What the outputs of one rank are.
OUTPUTS = {"less_accurate": "differ by more than rounding", "undecided": "are inconclusive"}


class OfRanks(Note):
    code = "of_ranks"
    usual_severity = "info"
    subject: str
    ranks: int
    rank: int
    times: int
    calls: int
    shown: int | None
    says = (
        "A call of {subject} ends with the slowest of {ranks} ranks: rank {rank} in"
        " {times:,} of {calls:,} calls. The recordings shown are rank {shown}'s."
    )


class FirstRankAlone(Note):
    code = "first_rank_alone"
    usual_severity = "info"
    says = "Of runs over several ranks rank 0 alone is shown: `tracekit compare RUN` tells of all."


class RanksDiffer(Note):
    code = "ranks_differ"
    grave = True
    a: int
    b: int

    def long(self) -> str:
        return f"{self.short()}."

    def short(self) -> str:
        return f"A is of {counted(self.a, 'rank')}, B of {self.b}: only rank 0 of each is compared"


class WaitingUntold(Note):
    code = "waiting_untold"
    grave = True
    subject: str
    communication_us: float
    compute_us: float
    exposed_us: float
    rank: int | None
    world_size: int | None

    def long(self) -> str:
        return (
            f"{self.subject} is {self._rank()}. GPU busy: compute {duration(self.compute_us)}, exposed communication"
            f" {duration(self.exposed_us)} (communication kernels {duration(self.communication_us)} in all). How much"
            " of that is waiting for other ranks, one rank cannot tell: `tracekit ranks FOLDER` reads all of them."
        )

    def short(self) -> str:
        return (
            f"{self._rank()}: {duration(self.communication_us)} of communication include waiting for others"
            " (tracekit ranks FOLDER)"
        )

    def _rank(self) -> str:
        of = f" of {self.world_size:,}" if self.world_size else ""
        return f"{'one rank' if self.rank is None else f'rank {self.rank}'}{of}"


class CommunicationNotJudged(Note):
    code = "communication_not_judged"
    grave = True
    a_exposed_us: float
    b_exposed_us: float
    says_short = "communication includes waiting: its change is neither gain nor loss (tracekit ranks FOLDER)"

    def long(self) -> str:
        return (
            "Communication includes waiting for other ranks: its change (exposed"
            f" {duration(self.a_exposed_us)} -> {duration(self.b_exposed_us)}) is neither gain nor loss of kernels."
            " Kernels that run beside it take longer. `tracekit ranks FOLDER` reads all ranks of a job and tells"
            " waiting from transfer."
        )


class OfSomeRanks(Note):
    """What some ranks of a side did, and others did not."""

    subject: str
    ranks: Sequence[int]
    of_ranks: int

    @property
    def alone(self) -> str:
        """`Rank 1 alone`, `Ranks 1, 3 of 8`."""
        named = ", ".join(map(str, self.ranks))
        return f"Rank {named} alone" if len(self.ranks) == 1 else f"Ranks {named} of {self.of_ranks}"


class RankRecompiled(OfSomeRanks):
    code = "rank_recompiled"
    function: str | None
    where: str | None
    times: int
    least: int  #: How often the rank did so that did least.
    timed: int  #: How often in timed calls.
    failed_check: Check

    def long(self) -> str:
        least = f", the rank with fewest {counted(self.least, 'time')}" if self.least else ""
        timed = f" {counted(self.timed, 'recompile')} in timed calls." if self.timed else ""
        return (
            f"{self.alone} recompiled {self.function or 'a frame'}{f' ({self.where})' if self.where else ''}"
            f" {counted(self.times, 'time')} in {self.subject}{least}: {self.failed_check.long()}."
            f"{timed} Other ranks wait meanwhile."
        )

    def short(self) -> str:
        return (
            f"{self.alone.lower()} recompiled {self.function or self.where or 'a frame'}"
            f"{' in timed calls' if self.timed else ''}: {self.failed_check.long()}"
        )


class RankBroke(OfSomeRanks):
    code = "rank_broke"
    where: str | None
    function: str | None
    reason: str

    def long(self) -> str:
        return f"{self.alone} has a graph break at {self._place()} in {self.subject}: {self.reason.rstrip('.')}."

    def short(self) -> str:
        return f"{self.alone.lower()} has a graph break at {self._place()}"

    def _place(self) -> str:
        return self.where or self.function or "an unknown line"


class RankRanEager(OfSomeRanks):
    code = "rank_ran_eager"
    where: str | None
    function: str | None
    reason: str

    def long(self) -> str:
        return (
            f"{self.alone} ran {self.function or 'a frame'}{f' ({self.where})' if self.where else ''} eager in"
            f" {self.subject}: {self.reason.rstrip('.')}."
        )

    def short(self) -> str:
        what = self.function or self.where or "a frame"
        return f"{self.alone.lower()} ran {what} eager: {self.reason}"


class RankMemory(OfSomeRanks):
    code = "rank_memory"
    usual_severity = "info"
    peak_bytes: int
    least_bytes: int

    def long(self) -> str:
        return (
            f"{self.alone}: peak memory of {self.subject} {size(self.peak_bytes)}, of the rank with least"
            f" {size(self.least_bytes)}."
        )

    def short(self) -> str:
        return (
            f"{self.alone.lower()} holds {size(self.peak_bytes)} in {self.subject}, the rank with least"
            f" {size(self.least_bytes)}"
        )


class RankDidMore(OfSomeRanks):
    """What another version of tracekit says of the ranks, by its code."""

    code = "rank_did_more"
    usual_severity = "info"
    what: str

    def long(self) -> str:
        return f'{self.alone}, in {self.subject}: "{self.what}" was noted by another version of tracekit.'


class RankOutputs(OfSomeRanks):
    """Among its facts are those of why its outputs are so."""

    code = "rank_outputs"
    accuracy: Accuracy

    @property
    def facts(self) -> dict[str, object]:
        told = self.accuracy
        judged = {"result": told.result, "basis": told.basis, "reason": told.reason.code}
        return {"ranks": list(self.ranks), "of_ranks": self.of_ranks, **judged, **builtins_of(told.reason.facts)}

    def long(self) -> str:
        return (
            f"{self.alone}: outputs of {self.subject} {OUTPUTS[self.accuracy.result]}, those of"
            f" other ranks are better. {self.accuracy.reason.long()}"
        )

    def short(self) -> str:
        return f"outputs of {self.alone.lower()} {OUTPUTS[self.accuracy.result]}"
