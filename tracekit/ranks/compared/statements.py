"""What is found and noted of ranks that communicate, eager and compiled, and what is advised."""

from collections.abc import Sequence

from msgspec import Struct

from tracekit.model.advice import Advice
from tracekit.model.comparison import FindingStatement
from tracekit.model.statement import Severity
from tracekit.numbers import count, counted, duration, duration_change, percent, size, times
from tracekit.ranks.statements.words import Said, sentence
from tracekit.statements.notes.ranks import OfSomeRanks


class ShardThenCompile(Advice):
    code = "shard_then_compile"
    to_be_copied = True
    says = (
        "for block in model.blocks:\n"
        "    fully_shard(block)\n"
        "    block.compile()  # in place, not torch.compile(block)\n"
        "fully_shard(model)"
    )
    says_short = "shard blocks, then compile them in place"


class WrapThenCompile(Advice):
    code = "wrap_then_compile"
    to_be_copied = True
    says = "model = DistributedDataParallel(model, bucket_cap_mb=25)\nmodel = torch.compile(model)"
    says_short = "wrap with DDP, then compile"


class PrefetchWeights(Advice):
    code = "prefetch_weights"
    to_be_copied = True
    says = (
        "for block, following in zip(model.blocks, model.blocks[1:]):\n"
        "    block.set_modules_to_forward_prefetch([following])\n"
        "    following.set_modules_to_backward_prefetch([block])"
    )
    says_short = "prefetch weights"


class CommunicationLimits(FindingStatement):
    code = "communication_limits"
    usual_severity = "info"
    says_title = "Communication limits what compiling gains"
    rank: int
    compute_us: float
    gained_us: float
    exposed_us: float
    exposed_waiting_us: float | None
    waiting_change_us: float
    a_us: float
    b_us: float
    speedup_at_most: float

    def long(self) -> str:
        waiting = f" ({duration(self.exposed_waiting_us)} waiting)" if self.exposed_waiting_us else ""
        return (
            f"Kernels of rank {self.rank} take {duration(self.gained_us)} less, and {duration(self.exposed_us)} of"
            f" communication stays exposed, {percent(self.exposed_us / self.b_us, 0)} of the call{waiting}. Without any"
            f" compute the speed-up over eager would be {times(self.speedup_at_most)}."
        )


class DdpBuckets(FindingStatement):
    code = "ddp_buckets"
    says_title = "DDP's buckets differ in {side}"
    says_why = "buckets are reduced during backward"
    beside = ("costs_time",)
    side: str
    a_buckets: float
    b_buckets: float
    a_each_bytes: float | None
    b_each_bytes: float | None
    a_overlapped_share: float | None
    b_overlapped_share: float | None
    costs_time: bool  #: In JSON the saving tells it.

    @property
    def severity(self) -> Severity:
        return "warning" if self.costs_time else "info"

    def long(self) -> str:
        before, after = self.a_overlapped_share, self.b_overlapped_share
        text = "{a_buckets:count} all-reduces{a_each_bytes:of size} became {b_buckets:count}{b_each_bytes:of size}."
        if before is not None and after is not None:
            text += f" Compute covers {percent(before, 0)} -> {percent(after, 0)} of their transfer."
            if before > after:
                text += " If a graph is not split at DDP's buckets, all gradients are reduced after backward."
        return sentence(text, self)


class FewerGathers(Said, FindingStatement):
    code = "fewer_gathers"
    says_title = "{side} gathers weights in {b_gathers:count} pieces, not {a_gathers:count}"
    says_why = "hooks gather block by block"
    says = (
        "{a_gathers:count} all-gathers{a_each_bytes:of size} became {b_gathers:count}{b_each_bytes:of size}."
        " Their exposed transfer: {a_exposed_us:duration} -> {b_exposed_us:duration}. Hooks of fully_shard gather a"
        " block's weights before it runs. A block wrapped by torch.compile before it is sharded is called past its"
        " hooks."
    )
    side: str
    a_gathers: float
    b_gathers: float
    a_each_bytes: float | None
    b_each_bytes: float | None
    a_exposed_us: float
    b_exposed_us: float

    @property
    def severity(self) -> Severity:
        return "warning" if self.b_exposed_us > self.a_exposed_us else "info"


class LessOverlap(Said, FindingStatement):
    code = "less_overlap"
    says_title = "Less transfer is overlapped in {side}: {lost_us:duration}"
    says_why = "gathers overlap more compute"
    says = (
        "Compute of rank {rank} covers {a_overlapped_share:whole percent} -> {b_overlapped_share:whole percent} of its"
        " transfer. Compute itself: {compute_us:duration change}."
    )
    side: str
    rank: int
    a_overlapped_share: float | None
    b_overlapped_share: float | None
    compute_us: float  #: Change of it.
    call_us: float
    lost_us: float


class MovedCollective(Struct, frozen=True):
    """Collectives of one kind that B has more or fewer of, or with other amounts."""

    name: str
    a_count: float
    b_count: float
    a_bytes: float | None
    b_bytes: float | None
    same_bytes: bool

    @property
    def words(self) -> str:
        moved = ""
        if self.same_bytes and self.a_bytes:
            moved = ", as many bytes"
        elif self.a_bytes is not None and self.b_bytes is not None:
            moved = f", {size(self.a_bytes)} -> {size(self.b_bytes)}"
        return f"{self.name} {count(self.a_count)} -> {count(self.b_count)}{moved}"


class MovedCollectives(FindingStatement):
    code = "moved_collectives"
    usual_severity = "info"
    says_title = "{side} has other collectives"
    side: str
    changes: Sequence[MovedCollective]
    exposed_change_us: float

    def long(self) -> str:
        told = "; ".join(each.words for each in self.changes)
        return f"{told}. Their exposed transfer: {duration_change(self.exposed_change_us)}."


class RankCollectives(OfSomeRanks):
    code = "rank_collectives"
    on_first_screen = True
    collective: str
    count: int
    usual_count: int
    in_place_of: str | None

    def long(self) -> str:
        if self.in_place_of:
            return (
                f"{self.alone} issues its collectives in another order in {self.subject}: {self.collective} where other"
                f" ranks issue {self.in_place_of}."
            )
        return (
            f"{self.alone} issues {counted(self.count, self.collective)} per step in {self.subject}, other ranks"
            f" {self.usual_count:,}."
        )

    def short(self) -> str:
        issues = f"issues {counted(self.count, self.collective)}, others {self.usual_count:,}"
        if self.in_place_of:
            issues = f"issues {self.collective} where others issue {self.in_place_of}"
        return f"{self.alone.lower()} {issues}"
