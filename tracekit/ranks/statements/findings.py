"""What a reader of many ranks should know or do: what it is, on what it rests, and what to do about it."""

from tracekit.model.statement import Severity
from tracekit.numbers import counted, percent
from tracekit.ranks.job_figures import RankFinding
from tracekit.ranks.statements.words import LOOK, REMEDIES, Said, cost_words, per_step, sentence

#: Less probable is not worth a figure.
LEAST_CHANCE = 1e-4
#: Of a waiting rank's window: a late rank that costs less is no warning.
LEAST_COST = 0.01
#: Commands that show the clocks of GPUs, and what links them.
CLOCKS, LINKS = "nvidia-smi -q -d PERFORMANCE", "nvidia-smi nvlink -e"


class WaitedForRank(Said, RankFinding):
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

    @property
    def cost(self) -> str:
        return cost_words(self.exposed_us, self.price_of_waiting_us, self.share, self.steps)

    @property
    def why_late(self) -> str:
        why = sentence("Largest cause: {cause:cause}, {cause_share:whole percent}{where:place}.", self)
        waits = per_step(self.most_waited_us, self.steps)
        return f"{why} Rank {self.waiter} waits {waits} for it, overlapped waits included."


class LateRank(WaitedForRank):
    """What to do about it depends on the cause."""

    code = "late_rank"
    says_title = "Rank {rank} is late and {self.cost}"
    says = "Last in {last:,} of {of:counted collective}. {self.why_late}"

    @property
    def severity(self) -> Severity:
        return "warning" if self.share >= LEAST_COST else "info"


class SlowHost(WaitedForRank):
    code = "slow_host"
    usual_severity = "info"
    does = "Time steps without the profiler, on each rank"
    why = "recording slows hosts unequally"
    says_title = "Rank {rank}'s host launches later and, while recorded, {self.cost}"
    says = "{self.why_late} The profiler slows hosts unequally: steps without it may have no late rank."


class Straggler(Said, RankFinding):
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

    @property
    def by_chance(self) -> str:
        return f", by chance in {percent(self.chance, 2)} of jobs" if self.chance >= LEAST_CHANCE else ""


class WaitedForStraggler(Straggler):
    why = "all others wait for it"
    cause: str
    cause_share: float
    waited_us: float | None
    says = (
        "95 % CI {ci95[0]:percent} to {ci95[1]:percent}{self.by_chance}. It loses {lost_us:duration}, {share:percent}"
        " of its time. Largest cause: {cause:cause}. Other ranks wait {waited_us:duration} for it in all."
    )


class StragglerRank(WaitedForStraggler):
    code = "straggler_rank"
    does = LOOK
    says_title = "Rank {rank} is slow: {excess:percent} longer than its peers in {steps_slower} of {steps:counted step}"


class StragglerHost(WaitedForStraggler):
    code = "straggler_host"
    does = "Check the slow host: clocks, power, other processes"
    command = CLOCKS

    def title(self) -> str:
        than = sentence("{excess:percent} longer than others in {steps_slower} of {steps:counted step}", self)
        return f"Host {self.name} is slow: its {counted(len(self.ranks), 'rank')} take {than}"


class StragglerLink(Straggler):
    code = "straggler_link"
    does = "Check the links of the slow group"
    command = LINKS
    collective: str | None
    message_bytes: int | None
    busbw_gbps: float
    usual_gbps: float
    says_title = "Link of {name} is slow: {busbw_gbps:.0f} GB/s, usually {usual_gbps:.0f} GB/s"
    says = (
        "{collective} of {message_bytes:size}, ranks {ranks:listed}: transfer, waiting excluded, is"
        " {ci95[0]:whole percent} to {ci95[1]:whole percent} longer than in like groups{self.by_chance}."
    )


class GraveIfItCosts(Said, RankFinding):
    """A warning where something is to be saved."""

    @property
    def severity(self) -> Severity:
        return "info" if self.saving_us is None else "warning"


class HeldUp(GraveIfItCosts):
    code = "held_up"
    does = REMEDIES["python"]
    cause: str
    more_us: float
    own_us: float
    usual_us: float
    steps: int
    kernel: str
    where: str | None
    says_title = "Rank {rank}'s host is held up for {more_us:duration} in each step: {cause:cause}{where:place}"
    says = "{own_us:duration} before {kernel:name}, on other ranks {usual_us:duration}. Median of {steps:counted step}."


class LoneSync(GraveIfItCosts):
    code = "lone_sync"
    does = REMEDIES["sync_wait"]
    count: int
    usual_count: float
    idle_us: float
    share: float
    where: str | None
    says = (
        "The GPU is idle for {idle_us:duration} after that ({share:percent} of the window){where:place}."
        " .item(), .cpu() and printing a tensor do it."
    )

    def title(self) -> str:
        copies = f"{self.count} {'copy' if self.count == 1 else 'copies'} to the host"
        return f"Rank {self.rank} alone waits for its GPU: {copies}, usually {self.usual_count:.0f}"


class MoreLaunches(Said, RankFinding):
    code = "more_launches"
    does = REMEDIES["uneven_work"]
    more: float
    count: int
    usual_count: float
    says_title = "Rank {rank}'s host launches {more:.0f} kernels more than others and is late"
    says = "{count:,} against {usual_count:,.0f}. Find the operators that other ranks do not call."


class UnevenWork(Said, RankFinding):
    code = "uneven_work"
    does = REMEDIES["uneven_work"]
    more_us: float
    share: float
    kernel: str
    count: int
    usual_count: float
    kernels: int
    says_title = "Rank {rank} runs {more_us:duration} of kernels that other ranks do not, {share:percent} of the window"

    def long(self) -> str:
        more = f"; {counted(self.kernels - 1, 'more kernel')}" if self.kernels > 1 else ""
        return f"{sentence('{kernel:name}: {count:,} times, usually {usual_count:,.0f}', self)}{more}."


class SlowGpu(Said, RankFinding):
    code = "slow_gpu"
    does = REMEDIES["slow_gpu"]
    command = CLOCKS
    slower: float
    compute_us: float
    says_title = "Rank {rank}'s GPU is {slower:percent} slower at the same kernels"
    says = "{compute_us:duration} of compute. Clocks, power limits or a neighbour's work: " + CLOCKS + "."


class UnevenStages(Said, RankFinding):
    code = "uneven_stages"
    does = "Move layers from the longest pipeline stage to the others"
    why = "they wait for it"
    ranks: tuple[int, ...]
    stages: int
    compute_us: float
    mean_us: float
    share: float
    says_title = "The pipeline stage of ranks {ranks:listed} computes {share:whole percent} longer than the mean stage"
    says = "{compute_us:duration} against {mean_us:duration}, {stages} stages; the others wait. Give it fewer layers."


class Recompiled(Said, RankFinding):
    code = "recompiled"
    does = REMEDIES["compile"]
    compile_us: float
    share: float
    where: str | None
    says_title = "Rank {rank} compiles for {compile_us:duration} longer than other ranks, {share:percent} of the window"
    says = (
        "Its GPU is idle meanwhile{where:place}. Find what differs on that rank, mostly a shape: TORCH_LOGS=recompiles."
    )


class ExposedAllGathers(Said, RankFinding):
    code = "exposed_all_gathers"
    does = "Prefetch weights: set_modules_to_forward_prefetch, or _backward_"
    exposed_transfer_us: float
    share: float
    of_transfer: float
    says_title = "All-gathers are not overlapped: {exposed_transfer_us:duration} a rank, {share:percent} of the window"
    says = (
        "{of_transfer:whole percent} of their transfer is exposed. FSDP: set_modules_to_forward_prefetch, or"
        " _backward_."
    )


class NoOverlap(Said, RankFinding):
    code = "no_overlap"
    does = "Issue collectives earlier, beside kernels: buckets, prefetch, async_op=True"
    exposed_transfer_us: float
    share: float
    collective: str
    one_stream: bool
    says_title = (
        "No overlap on rank {rank}: {exposed_transfer_us:duration} of transfer, {share:whole percent} of the window"
    )

    def long(self) -> str:
        if self.one_stream:
            return "Collectives run on the stream of the kernels: async_op=True gives them one of their own."
        return (
            f"Compute waits for each {self.collective}. Issue it earlier, or divide it: buckets, prefetch, async tensor"
            " parallelism."
        )


class ExposedCommunication(Said, RankFinding):
    code = "exposed_communication"
    does = "Overlap more: prefetch, larger buckets, asynchronous collectives"
    exposed_transfer_us: float
    share: float
    collective: str
    says_title = (
        "{exposed_transfer_us:duration} of transfer is not overlapped on rank {rank}, {share:whole percent} of the"
        " window"
    )
    says = "Largest collective: {collective}. Waiting for late ranks is not in it."


class SlowTransfer(Said, RankFinding):
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
    says_title = "{collective} reaches {busbw_gbps:.0f} GB/s, {share:whole percent} of the link's {peak_gbps:.0f} GB/s"
    says = (
        "Bus bandwidth of {message_bytes:size}, ranks {ranks:listed}. See the route: " + command + ", NCCL_DEBUG=INFO."
    )


class SlowGroup(SlowTransfer):
    code = "slow_group"
    does = "Check the links of the slow ranks"
    command = LINKS
    usual_gbps: float
    groups: int
    says_title = "Ranks {ranks:listed} communicate at {busbw_gbps:.0f} GB/s, other groups at {usual_gbps:.0f} GB/s"
    says = (
        "{collective} of {message_bytes:size} in {groups} groups alike. A bad link, or another route: "
        + LINKS
        + ", NCCL_DEBUG=INFO."
    )


class UnevenSplit(Said, RankFinding):
    code = "uneven_split"
    usual_severity = "info"
    does = "Send as much to rank {rank} as to the others"
    times: float
    sent: int
    received: int
    count: int
    says_title = "Rank {rank} has {times:times} the mean rank's bytes in {count:counted all-to-all}"
    says = "It sends {sent:size} and receives {received:size}; all wait until the largest part is through."


class SmallCollectives(Said, RankFinding):
    code = "small_collectives"
    usual_severity = "info"
    does = "Merge small collectives"
    says_title = "{count:counted collective} of at most 64 KiB: latency, not bandwidth"
    says = "Merge them: larger buckets, coalesced calls, or fewer tensors."
    count: int
    bytes: int
