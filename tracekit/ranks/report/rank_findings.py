"""What is found in the recordings of many ranks, on what it rests, and what to do about it."""

from tracekit.names import clipped_within
from tracekit.numbers import counted, duration, percent, size
from tracekit.ranks.job_figures import RankFinding
from tracekit.ranks.report.words import cause_name, listed
from tracekit.report.words.saying import Sentence, say

#: Characters of a kernel's name in a sentence; less probable is not worth a figure.
NAME, LEAST_CHANCE = 48, 1e-4
#: By code: the title, and what it rests on.
FINDINGS: dict[str, tuple[Sentence, Sentence]] = {
    "late_rank": (
        lambda rank, exposed_us, price_of_waiting_us, share, steps, **_: (
            f"Rank {rank} is late and {cost_words(exposed_us, price_of_waiting_us, share, steps)}"
        ),
        lambda last, of, cause, cause_share, where, waiter, most_waited_us, steps, **_: (
            f"Last in {last:,} of {counted(of, 'collective')}. Largest cause: {cause_name(cause)},"
            f" {percent(cause_share, 0)}{_at(where)}. Rank {waiter} waits {per_step(most_waited_us, steps)} for it,"
            " overlapped waits included."
        ),
    ),
    "straggler_rank": (
        "Rank {rank} is slow: {excess:percent 1} longer than its peers in {steps_slower} of {steps:counted step}",
        lambda **facts: _straggler(**facts),
    ),
    "straggler_host": (
        lambda name, ranks, excess, steps, steps_slower, **_: (
            f"Host {name} is slow: its {counted(len(ranks), 'rank')} take {percent(excess, 1)} longer than"
            f" others in {steps_slower} of {counted(steps, 'step')}"
        ),
        lambda **facts: _straggler(**facts),
    ),
    "straggler_link": (
        "Link of {name} is slow: {busbw_gbps:.0f} GB/s, usually {usual_gbps:.0f} GB/s",
        lambda collective, message_bytes, ranks, ci95, chance, **_: (
            f"{collective} of {size(message_bytes)}, ranks {listed(ranks)}: transfer, waiting excluded, is"
            f" {percent(ci95[0], 0)} to {percent(ci95[1], 0)} longer than in like groups{_by_chance(chance)}."
        ),
    ),
    "slow_host": (
        lambda rank, exposed_us, price_of_waiting_us, share, steps, **_: (
            f"Rank {rank}'s host launches later and, while recorded,"
            f" {cost_words(exposed_us, price_of_waiting_us, share, steps)}"
        ),
        lambda cause, cause_share, where, waiter, most_waited_us, steps, **_: (
            f"Largest cause: {cause_name(cause)}, {percent(cause_share, 0)}{_at(where)}. Rank {waiter} waits"
            f" {per_step(most_waited_us, steps)} for it, overlapped waits included. The profiler slows hosts"
            " unequally: steps without it may have no late rank."
        ),
    ),
    "held_up": (
        lambda rank, more_us, cause, where, **_: (
            f"Rank {rank}'s host is held up for {duration(more_us)} in each step: {cause_name(cause)}{_at(where)}"
        ),
        lambda own_us, usual_us, steps, kernel, **_: (
            f"{duration(own_us)} before {clipped_within(kernel, NAME)}, on other ranks {duration(usual_us)}."
            f" Median of {counted(steps, 'step')}."
        ),
    ),
    "lone_sync": (
        "Rank {rank} alone waits for its GPU: {count} {count:copy|copies} to the host, usually {usual_count:.0f}",
        lambda idle_us, share, where, **_: (
            f"The GPU is idle for {duration(idle_us)} after that ({percent(share, 1)} of the window){_at(where)}."
            " .item(), .cpu() and printing a tensor do it."
        ),
    ),
    "more_launches": (
        "Rank {rank}'s host launches {more:.0f} kernels more than others and is late",
        "{count:,} against {usual_count:,.0f}. Find the operators that other ranks do not call.",
    ),
    "uneven_work": (
        "Rank {rank} runs {more_us:duration} of kernels that other ranks do not, {share:percent 1} of the window",
        lambda kernel, count, usual_count, kernels, **_: (
            f"{clipped_within(kernel, NAME)}: {count:,} times, usually {usual_count:,.0f}"
            + (f"; {counted(kernels - 1, 'more kernel')}." if kernels > 1 else ".")
        ),
    ),
    "slow_gpu": (
        "Rank {rank}'s GPU is {slower:percent 1} slower at the same kernels",
        "{compute_us:duration} of compute. Clocks, power limits or a neighbour's work: nvidia-smi -q -d PERFORMANCE.",
    ),
    "uneven_stages": (
        lambda ranks, share, **_: (
            f"The pipeline stage of ranks {listed(ranks)} computes {percent(share, 0)} longer than the mean stage"
        ),
        "{compute_us:duration} against {mean_us:duration}, {stages} stages; the others wait. Give it fewer layers.",
    ),
    "recompiled": (
        "Rank {rank} compiles for {compile_us:duration} longer than other ranks, {share:percent 1} of the window",
        lambda where, **_: (
            f"Its GPU is idle meanwhile{_at(where)}. Find what differs on that rank, mostly a shape:"
            " TORCH_LOGS=recompiles."
        ),
    ),
    "exposed_all_gathers": (
        "All-gathers are not overlapped: {exposed_transfer_us:duration} a rank, {share:percent 1} of the window",
        "{of_transfer:percent 0} of their transfer is exposed. FSDP: set_modules_to_forward_prefetch, or _backward_.",
    ),
    "no_overlap": (
        "No overlap on rank {rank}: {exposed_transfer_us:duration} of transfer, {share:percent 0} of the window",
        lambda collective, one_stream, **_: (
            "Collectives run on the stream of the kernels: async_op=True gives them one of their own."
            if one_stream
            else f"Compute waits for each {collective}. Issue it earlier, or divide it: buckets, prefetch, async tensor"
            " parallelism."
        ),
    ),
    "slow_link": (
        "{collective} reaches {busbw_gbps:.0f} GB/s, {share:percent 0} of the link's {peak_gbps:.0f} GB/s",
        lambda message_bytes, ranks, **_: (
            f"Bus bandwidth of {size(message_bytes)}, ranks {listed(ranks)}. See the route: nvidia-smi topo -m,"
            " NCCL_DEBUG=INFO."
        ),
    ),
    "slow_group": (
        lambda ranks, busbw_gbps, usual_gbps, **_: (
            f"Ranks {listed(ranks)} communicate at {busbw_gbps:.0f} GB/s, other groups at {usual_gbps:.0f} GB/s"
        ),
        lambda collective, message_bytes, groups, **_: (
            f"{collective} of {size(message_bytes)} in {groups} groups alike. A bad link, or another route:"
            " nvidia-smi nvlink -e, NCCL_DEBUG=INFO."
        ),
    ),
    "exposed_communication": (
        "{exposed_transfer_us:duration} of transfer is not overlapped on rank {rank}, {share:percent 0} of the window",
        "Largest collective: {collective}. Waiting for late ranks is not in it.",
    ),
    "uneven_split": (
        "Rank {rank} has {times:times} the mean rank's bytes in {count:counted all-to-all}",
        lambda sent, received, **_: (
            f"It sends {size(sent)} and receives {size(received)}; all wait until the largest part is through."
        ),
    ),
    "small_collectives": (
        "{count:counted collective} of at most 64 KiB: latency, not bandwidth",
        "Merge them: larger buckets, coalesced calls, or fewer tensors.",
    ),
}
#: What to do about a rank that is late, by the largest cause, or by another finding.
REMEDIES = {
    "compute": "Compare rank {rank}'s kernels with rank {waiter}'s",
    "communication": "Look at the collective before it: rank {rank} is late for it too",
    "sync_wait": "Remove the synchronisation from rank {rank}'s step",
    "launch_call": "Launch less: torch.compile with reduce-overhead, or fused optimizers",
    "op_dispatch": "Launch less: torch.compile with reduce-overhead, or fused optimizers",
    "compiled_wrapper": "Launch less: torch.compile with reduce-overhead",
    "guards": "Check guards less often: torch.compiler.set_stance, or fewer compiled regions",
    "compile": "Find what rank {rank} recompiles: TORCH_LOGS=recompiles",
    "memory": "Keep rank {rank} from allocating: PYTORCH_ALLOC_CONF=expandable_segments:True",
    "gc": "Collect garbage on all ranks at the same step: gc.disable(), then gc.collect()",
    "python": "Find what rank {rank}'s host does before it launches",
    "launch_latency": "Launch less: torch.compile with reduce-overhead, or fused optimizers",
    "device": "Look for other work on rank {rank}'s GPU",
    "uneven_work": "Give rank {rank} as much work as the others",
    "slow_gpu": "Check the clocks and the power limit of rank {rank}'s GPU",
}
LOOK = "Analyze rank {rank} alone"
#: By the code of a finding: what to do, and why.
ADVICE = {
    "straggler_rank": (LOOK, "all others wait for it"),
    "straggler_host": ("Check the slow host: clocks, power, other processes", "all others wait for it"),
    "straggler_link": ("Check the links of the slow group", ""),
    "slow_host": ("Time steps without the profiler, on each rank", "recording slows hosts unequally"),
    "held_up": (REMEDIES["python"], ""),
    "lone_sync": (REMEDIES["sync_wait"], ""),
    "more_launches": (REMEDIES["uneven_work"], ""),
    "uneven_work": (REMEDIES["uneven_work"], ""),
    "slow_gpu": (REMEDIES["slow_gpu"], ""),
    "uneven_stages": ("Move layers from the longest pipeline stage to the others", "they wait for it"),
    "recompiled": (REMEDIES["compile"], ""),
    "exposed_all_gathers": ("Prefetch weights: set_modules_to_forward_prefetch, or _backward_", ""),
    "no_overlap": ("Issue collectives earlier, beside kernels: buckets, prefetch, async_op=True", ""),
    "slow_link": ("See which route NCCL takes", "NCCL_DEBUG=INFO tells"),
    "slow_group": ("Check the links of the slow ranks", ""),
    "uneven_split": ("Send as much to rank {rank} as to the others", ""),
    "exposed_communication": ("Overlap more: prefetch, larger buckets, asynchronous collectives", ""),
    "small_collectives": ("Merge small collectives", ""),
}
COMMANDS = {
    "straggler_host": "nvidia-smi -q -d PERFORMANCE",
    "straggler_link": "nvidia-smi nvlink -e",
    "slow_gpu": "nvidia-smi -q -d PERFORMANCE",
    "slow_link": "nvidia-smi topo -m",
    "slow_group": "nvidia-smi nvlink -e",
}
SAVES_TIME = "up to {us} of rank {waiter}'s time (est.)"


def remedy(cause: str, rank: int, waiter: int) -> str:
    return REMEDIES.get(cause, LOOK).format(rank=rank, waiter=waiter)


def finding_title(finding: RankFinding) -> str:
    return say(FINDINGS[finding.code][0], {"rank": finding.rank, **finding.facts})


def finding_evidence(finding: RankFinding) -> str:
    return say(FINDINGS[finding.code][1], {"rank": finding.rank, **finding.facts})


def cost_words(exposed_us: float, price_us: float | None, share: float, steps: int) -> str:
    """`costs the job 0.36 ms a step (3.6 %): exposed 0.30 ms + overlap price 0.06 ms (est.)`, given what it costs in
    all steps. Waiting beside compute is no wall time: only what it slows is."""
    cost = per_step(exposed_us + (price_us or 0.0), steps)
    price = ", overlap price unknown" if price_us is None else f" + overlap price {duration(price_us / steps)} (est.)"
    return f"costs the job {cost} ({percent(share, 1)}): exposed {duration(exposed_us / steps)}{price}"


def per_step(us: float, steps: int) -> str:
    """Of a whole recording, or a single step, what it holds."""
    return f"{duration(us / steps)} a step" if steps > 1 else duration(us)


def _straggler(
    ci95: tuple[float, float], chance: float, lost_us: float, share: float, cause: str, waited_us: float, **_: object
) -> str:
    return (
        f"95 % CI {percent(ci95[0], 1)} to {percent(ci95[1], 1)}{_by_chance(chance)}. It loses {duration(lost_us)},"
        f" {percent(share, 1)} of its time. Largest cause: {cause_name(cause)}. Other ranks wait"
        f" {duration(waited_us)} for it in all."
    )


def _by_chance(chance: float) -> str:
    return f", by chance in {percent(chance, 2)} of jobs" if chance >= LEAST_CHANCE else ""


def _at(where: str | None) -> str:
    return f" ({clipped_within(where, NAME)})" if where else ""
