"""What a reader of many ranks should know or do: what it is, on what it rests, and what to do about it."""

from tracekit.model.statement import Severity
from tracekit.names import clipped_within
from tracekit.numbers import counted, duration, percent, size, times
from tracekit.ranks.job_figures import RankFinding
from tracekit.ranks.statements.words import LOOK, REMEDIES, cause_name, cost_words, listed, per_step

#: Characters of a kernel's name in a sentence; less probable is not worth a figure.
NAME, LEAST_CHANCE = 48, 1e-4
#: Of a waiting rank's window: a late rank that costs less is no warning.
LEAST_COST = 0.01
#: Commands that show the clocks of GPUs, and what links them.
CLOCKS, LINKS = "nvidia-smi -q -d PERFORMANCE", "nvidia-smi nvlink -e"


def at(where: str | None) -> str:
    return f" ({clipped_within(where, NAME)})" if where else ""


class WaitedForRank(RankFinding):
    """A rank that others wait for. What it costs is told of the one that waits longest, its exposed waiting and what
    of the price of overlap is waiting's."""

    waiter: int
    most_waited_us: float
    exposed_us: float
    price_us: float | None
    price_of_waiting_us: float | None
    cost_us: float
    share: float
    steps: int
    last: int
    of: int
    cause: str
    cause_us: float
    cause_share: float
    where: str | None

    def cost(self) -> str:
        return cost_words(self.exposed_us, self.price_of_waiting_us, self.share, self.steps)

    def why_late(self) -> str:
        return (
            f"Largest cause: {cause_name(self.cause)}, {percent(self.cause_share, 0)}{at(self.where)}."
            f" Rank {self.waiter} waits {per_step(self.most_waited_us, self.steps)} for it, overlapped waits included."
        )


class LateRank(WaitedForRank):
    """What to do about it depends on the cause."""

    code = "late_rank"

    @property
    def severity(self) -> Severity:
        return "warning" if self.share >= LEAST_COST else "info"

    def title(self) -> str:
        return f"Rank {self.rank} is late and {self.cost()}"

    def long(self) -> str:
        return f"Last in {self.last:,} of {counted(self.of, 'collective')}. {self.why_late()}"


class SlowHost(WaitedForRank):
    code = "slow_host"
    usual_severity = "info"
    does = "Time steps without the profiler, on each rank"
    why = "recording slows hosts unequally"

    def title(self) -> str:
        return f"Rank {self.rank}'s host launches later and, while recorded, {self.cost()}"

    def long(self) -> str:
        return f"{self.why_late()} The profiler slows hosts unequally: steps without it may have no late rank."


class Straggler(RankFinding):
    """Slower than its peers beyond chance."""

    name: str | None
    ranks: tuple[int, ...]
    excess: float
    ci95: tuple[float, float]
    chance: float
    lost_us: float
    share: float | None
    steps: int
    steps_slower: int

    def by_chance(self) -> str:
        return f", by chance in {percent(self.chance, 2)} of jobs" if self.chance >= LEAST_CHANCE else ""


class WaitedForStraggler(Straggler):
    why = "all others wait for it"
    cause: str
    cause_share: float
    waited_us: float | None

    def long(self) -> str:
        low, high = (percent(each, 1) for each in self.ci95)
        return (
            f"95 % CI {low} to {high}{self.by_chance()}. It loses {duration(self.lost_us)}, {percent(self.share, 1)} of"
            f" its time. Largest cause: {cause_name(self.cause)}. Other ranks wait {duration(self.waited_us)} for it in"
            " all."
        )


class StragglerRank(WaitedForStraggler):
    code = "straggler_rank"
    does = LOOK

    def title(self) -> str:
        return (
            f"Rank {self.rank} is slow: {percent(self.excess, 1)} longer than its peers in {self.steps_slower} of"
            f" {counted(self.steps, 'step')}"
        )


class StragglerHost(WaitedForStraggler):
    code = "straggler_host"
    does = "Check the slow host: clocks, power, other processes"
    command = CLOCKS

    def title(self) -> str:
        return (
            f"Host {self.name} is slow: its {counted(len(self.ranks), 'rank')} take {percent(self.excess, 1)} longer"
            f" than others in {self.steps_slower} of {counted(self.steps, 'step')}"
        )


class StragglerLink(Straggler):
    code = "straggler_link"
    does = "Check the links of the slow group"
    command = LINKS
    collective: str | None
    message_bytes: int | None
    busbw_gbps: float
    usual_gbps: float

    def title(self) -> str:
        return f"Link of {self.name} is slow: {self.busbw_gbps:.0f} GB/s, usually {self.usual_gbps:.0f} GB/s"

    def long(self) -> str:
        low, high = (percent(each, 0) for each in self.ci95)
        return (
            f"{self.collective} of {size(self.message_bytes)}, ranks {listed(self.ranks)}: transfer, waiting excluded,"
            f" is {low} to {high} longer than in like groups{self.by_chance()}."
        )


class HeldUp(RankFinding):
    code = "held_up"
    does = REMEDIES["python"]
    cause: str
    more_us: float
    own_us: float
    usual_us: float
    steps: int
    kernel: str
    where: str | None

    @property
    def severity(self) -> Severity:
        return "info" if self.saving_us is None else "warning"

    def title(self) -> str:
        return (
            f"Rank {self.rank}'s host is held up for {duration(self.more_us)} in each step:"
            f" {cause_name(self.cause)}{at(self.where)}"
        )

    def long(self) -> str:
        return (
            f"{duration(self.own_us)} before {clipped_within(self.kernel, NAME)}, on other ranks"
            f" {duration(self.usual_us)}. Median of {counted(self.steps, 'step')}."
        )


class LoneSync(RankFinding):
    code = "lone_sync"
    does = REMEDIES["sync_wait"]
    count: int
    usual_count: float
    idle_us: float
    share: float
    where: str | None

    @property
    def severity(self) -> Severity:
        return "info" if self.saving_us is None else "warning"

    def title(self) -> str:
        return (
            f"Rank {self.rank} alone waits for its GPU: {self.count} {'copy' if self.count == 1 else 'copies'} to the"
            f" host, usually {self.usual_count:.0f}"
        )

    def long(self) -> str:
        return (
            f"The GPU is idle for {duration(self.idle_us)} after that ({percent(self.share, 1)} of the"
            f" window){at(self.where)}. .item(), .cpu() and printing a tensor do it."
        )


class MoreLaunches(RankFinding):
    code = "more_launches"
    does = REMEDIES["uneven_work"]
    more: float
    count: int
    usual_count: float

    def title(self) -> str:
        return f"Rank {self.rank}'s host launches {self.more:.0f} kernels more than others and is late"

    def long(self) -> str:
        return f"{self.count:,} against {self.usual_count:,.0f}. Find the operators that other ranks do not call."


class UnevenWork(RankFinding):
    code = "uneven_work"
    does = REMEDIES["uneven_work"]
    more_us: float
    share: float
    kernel: str
    count: int
    usual_count: float
    kernels: int

    def title(self) -> str:
        return (
            f"Rank {self.rank} runs {duration(self.more_us)} of kernels that other ranks do not,"
            f" {percent(self.share, 1)} of the window"
        )

    def long(self) -> str:
        more = f"; {counted(self.kernels - 1, 'more kernel')}" if self.kernels > 1 else ""
        return f"{clipped_within(self.kernel, NAME)}: {self.count:,} times, usually {self.usual_count:,.0f}{more}."


class SlowGpu(RankFinding):
    code = "slow_gpu"
    does = REMEDIES["slow_gpu"]
    command = CLOCKS
    slower: float
    compute_us: float

    def title(self) -> str:
        return f"Rank {self.rank}'s GPU is {percent(self.slower, 1)} slower at the same kernels"

    def long(self) -> str:
        return f"{duration(self.compute_us)} of compute. Clocks, power limits or a neighbour's work: {CLOCKS}."


class UnevenStages(RankFinding):
    code = "uneven_stages"
    does = "Move layers from the longest pipeline stage to the others"
    why = "they wait for it"
    ranks: tuple[int, ...]
    stages: int
    compute_us: float
    mean_us: float
    share: float

    def title(self) -> str:
        return (
            f"The pipeline stage of ranks {listed(self.ranks)} computes {percent(self.share, 0)} longer than the mean"
            " stage"
        )

    def long(self) -> str:
        return (
            f"{duration(self.compute_us)} against {duration(self.mean_us)}, {self.stages} stages; the others wait. Give"
            " it fewer layers."
        )


class Recompiled(RankFinding):
    code = "recompiled"
    does = REMEDIES["compile"]
    compile_us: float
    share: float
    where: str | None

    def title(self) -> str:
        return (
            f"Rank {self.rank} compiles for {duration(self.compile_us)} longer than other ranks,"
            f" {percent(self.share, 1)} of the window"
        )

    def long(self) -> str:
        return (
            f"Its GPU is idle meanwhile{at(self.where)}. Find what differs on that rank, mostly a shape:"
            " TORCH_LOGS=recompiles."
        )


class ExposedAllGathers(RankFinding):
    code = "exposed_all_gathers"
    does = "Prefetch weights: set_modules_to_forward_prefetch, or _backward_"
    exposed_transfer_us: float
    share: float
    of_transfer: float

    def title(self) -> str:
        return (
            f"All-gathers are not overlapped: {duration(self.exposed_transfer_us)} a rank, {percent(self.share, 1)} of"
            " the window"
        )

    def long(self) -> str:
        return (
            f"{percent(self.of_transfer, 0)} of their transfer is exposed. FSDP: set_modules_to_forward_prefetch, or"
            " _backward_."
        )


class NoOverlap(RankFinding):
    code = "no_overlap"
    does = "Issue collectives earlier, beside kernels: buckets, prefetch, async_op=True"
    exposed_transfer_us: float
    share: float
    collective: str
    one_stream: bool

    def title(self) -> str:
        return (
            f"No overlap on rank {self.rank}: {duration(self.exposed_transfer_us)} of transfer,"
            f" {percent(self.share, 0)} of the window"
        )

    def long(self) -> str:
        if self.one_stream:
            return "Collectives run on the stream of the kernels: async_op=True gives them one of their own."
        return (
            f"Compute waits for each {self.collective}. Issue it earlier, or divide it: buckets, prefetch, async tensor"
            " parallelism."
        )


class ExposedCommunication(RankFinding):
    code = "exposed_communication"
    does = "Overlap more: prefetch, larger buckets, asynchronous collectives"
    says = "Largest collective: {collective}. Waiting for late ranks is not in it."
    exposed_transfer_us: float
    share: float
    collective: str

    def title(self) -> str:
        return (
            f"{duration(self.exposed_transfer_us)} of transfer is not overlapped on rank {self.rank},"
            f" {percent(self.share, 0)} of the window"
        )


class SlowTransfer(RankFinding):
    """Collectives of one kind and group that are slow."""

    collective: str
    message_bytes: int | None
    ranks: tuple[int, ...]
    busbw_gbps: float
    transfer_us: float


class SlowLink(SlowTransfer):
    code = "slow_link"
    does = "See which route NCCL takes"
    why = "NCCL_DEBUG=INFO tells"
    command = "nvidia-smi topo -m"
    peak_gbps: float
    share: float
    groups: int

    def title(self) -> str:
        return (
            f"{self.collective} reaches {self.busbw_gbps:.0f} GB/s, {percent(self.share, 0)} of the link's"
            f" {self.peak_gbps:.0f} GB/s"
        )

    def long(self) -> str:
        return (
            f"Bus bandwidth of {size(self.message_bytes)}, ranks {listed(self.ranks)}. See the route:"
            f" {self.command}, NCCL_DEBUG=INFO."
        )


class SlowGroup(SlowTransfer):
    code = "slow_group"
    does = "Check the links of the slow ranks"
    command = LINKS
    usual_gbps: float
    groups: int

    def title(self) -> str:
        return (
            f"Ranks {listed(self.ranks)} communicate at {self.busbw_gbps:.0f} GB/s, other groups at"
            f" {self.usual_gbps:.0f} GB/s"
        )

    def long(self) -> str:
        return (
            f"{self.collective} of {size(self.message_bytes)} in {self.groups} groups alike. A bad link, or another"
            f" route: {LINKS}, NCCL_DEBUG=INFO."
        )


class UnevenSplit(RankFinding):
    code = "uneven_split"
    usual_severity = "info"
    does = "Send as much to rank {rank} as to the others"
    times: float
    sent: int
    received: int
    count: int

    def title(self) -> str:
        return f"Rank {self.rank} has {times(self.times)} the mean rank's bytes in {counted(self.count, 'all-to-all')}"

    def long(self) -> str:
        moved = f"It sends {size(self.sent)} and receives {size(self.received)}"
        return f"{moved}; all wait until the largest part is through."


class SmallCollectives(RankFinding):
    code = "small_collectives"
    usual_severity = "info"
    does = "Merge small collectives"
    says = "Merge them: larger buckets, coalesced calls, or fewer tensors."
    count: int
    bytes: int

    def title(self) -> str:
        return f"{counted(self.count, 'collective')} of at most 64 KiB: latency, not bandwidth"
