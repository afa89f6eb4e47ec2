"""What is said of many ranks: collectives, causes of lateness, findings and notes."""

from collections.abc import Sequence

from tracekit.model.digests import DigestsMade
from tracekit.model.note import Note
from tracekit.model.ranks import (
    CauseShare,
    CollectiveClass,
    OneCollective,
    RankFinding,
    Ranks,
    Straggler,
    StragglerRule,
)
from tracekit.names import clipped_within, printable
from tracekit.numbers import MISSING, counted, duration, percent, size
from tracekit.report.words.common import cause_words
from tracekit.report.words.saying import Sentence, say

#: As a table has room for.
CAUSES = {
    "compute": "kernels",
    "communication": "an earlier collective",
    "python": "Python",
    "device": "gaps between kernels",
    "memory": "allocation",
    "profiler": "profiler",
}
CLOCKS = {
    "one_host": "one clock",
    "aligned": "clocks aligned on the ends of collectives",
    "bound": "clocks unknown: waiting is a lower bound",
}
MATCHED = {
    "sequence": "sequence number of the group",
    "pair": "sender and receiver",
    "signature": "group, type, size and occurrence",
    "order": "order of kernels of one name",
    "ends": "equal ends",
}
UNMATCHED = {
    "missing_rank": "other ranks of the group were not recorded",
    "counts_differ": "ranks recorded unequally many",
    "not_at_once": "over on one rank before another began",
    "ends_disagree": "ended at different times",
    "peers_unknown": "not recorded who sends to whom",
    "one_sided": "writes to other ranks and waits for none",
    "group_unknown": "not recorded which ranks are in the group",
    "clocks_unknown": "no barrier, and clocks are unknown",
}
#: Heads: from the first arrival to the last, the median; and which rank came last, or how often.
LATE_BY, CAME_LAST = "late by", "came last"
#: What most of a collective's time is.
MOSTLY: dict[CollectiveClass, str] = {
    "transfer": "transfer",
    "waiting": "waiting",
    "mixed": "both",
    "inconclusive": "unknown",
}
#: Types of elements, as the profiler writes them.
DTYPES = {"BFloat16": "bf16", "Half": "fp16", "Float": "fp32", "Double": "fp64"}
#: Characters of a kernel's name in a sentence, and ranks that are listed in one.
NAME, MOST_LISTED = 48, 4
#: Ranges of missing ranks in a note; less probable is not worth a figure.
MOST_RANGES, LEAST_CHANCE = 8, 1e-4

#: What a rank's span consists of, as legends call it; `communication` where it cannot be told apart.
PARTS = {"compute": "compute", "transfer": "exposed transfer", "waiting": "exposed waiting"}
#: What its timeline shows.
LANES = {
    "compute": "compute",
    "waiting": "waiting for the last rank",
    "transfer": "transfer",
    "communication": "communication, matched with no other rank",
    "idle": "idle",
}
TIMELINES = (
    "Each rank has a row: compute above, communication below, both on one clock. The dashed line is the arrival of the"
    " last rank, whose name is bold. Outlines mark the collective on all ranks."
)
ACCOUNT_NOTE = (
    "span = compute + exposed transfer + exposed waiting + idle. “waiting” and “overlap price” are within these; “came"
    " last” is in how many collectives the rank was the last to arrive."
)
MATRIX_NOTE = "In each collective all ranks wait for the last to arrive."
WORST_NOTE = (
    "Waiting is the sum over the ranks, “late by” the time from the first arrival to the last. A row opens to the"
    " waiting of each rank."
)
STRETCH, FROM_THE_BEGINNING = "The drawing begins {begin} into the window.", "The drawing begins with the window."

STEPS_NOTE = (
    "Own time is compute and idle, without communication: a rank that waits for a slow one is not slow. Each cell says"
    " by how much it is longer than the median of the same pipeline stage in that step."
)
GROUPS_NOTE = "Medians over the ranks of each. “Longer” is own time, compute and idle, against ranks of the same stage."
DISTRIBUTION_NOTE = "Shares of ranks that have no more than the figure."
FLEET_HOW = (
    "Of more than 64 ranks collectives are joined by names alone.",
    "Their exposed waiting is waiting by the share of each collective that no compute covers.",
)
HOW = (
    "A rank waits in a collective from its kernel's start to the last rank's start; the rest is transfer.",
    "Exposed is what no other GPU work covers. span = compute + exposed transfer + exposed waiting + idle.",
    "The price of overlap is how much longer kernels took beside a collective than alone. A dash: too few ran alone.",
    "A late rank is followed back to where it was not yet behind the rank that waited longest for it.",
    "What it did more of since then is the cause of its lateness.",
    "Bus bandwidth is defined as in the NCCL tests (PERFORMANCE.md), over transfer alone.",
)

#: By code: the title, and what it rests on.
FINDINGS: dict[str, tuple[Sentence, Sentence]] = {
    "late_rank": (
        lambda rank, waiter, most_waited_us, price_of_waiting_us, cost_us, share, **_: (
            f"Rank {rank} is late: rank {waiter} waits {duration(most_waited_us)} for it"
            + (
                f", which costs it {duration(cost_us)} ({percent(share, 1)}, est.)"
                if price_of_waiting_us is not None
                else ""
            )
        ),
        lambda last, of, cause, cause_share, where, waiter, exposed_us, price_of_waiting_us, share, **_: (
            f"Last in {last:,} of {counted(of, 'collective')}. Largest cause: {cause_name(cause)},"
            f" {percent(cause_share, 0)}{_at(where)}. Of rank {waiter}'s time its waiting takes"
            + (
                f" {duration(exposed_us)} with no compute beside it, and {duration(price_of_waiting_us)} by slower"
                " kernels beside it."
                if price_of_waiting_us is not None
                else f" {duration(exposed_us)} ({percent(share, 1)}) with no compute beside it; by how much it slows"
                " kernels is unknown."
            )
        ),
    ),
    "straggler_rank": (
        "Rank {rank} is slow: {excess:percent 1} longer than its peers in {steps_slower} of {steps:counted step}",
        lambda **facts: _straggler(**facts),
    ),
    "straggler_host": (
        lambda name, ranks, excess, steps, steps_slower, **_: (
            f"Host {printable(name)} is slow: its {counted(len(ranks), 'rank')} take {percent(excess, 1)} longer than"
            f" others in {steps_slower} of {counted(steps, 'step')}"
        ),
        lambda **facts: _straggler(**facts),
    ),
    "straggler_link": (
        "Link of {name} is slow: {busbw_gbps:.0f} GB/s, usually {usual_gbps:.0f} GB/s, with nobody late",
        lambda collective, message_bytes, ranks, ci95, chance, **_: (
            f"{collective} of {size(message_bytes)}, ranks {listed(ranks)}: transfer {percent(ci95[0], 0)} to"
            f" {percent(ci95[1], 0)} longer than in groups alike{_by_chance(chance)}."
        ),
    ),
    "slow_host": (
        "Rank {rank}'s host launches later: rank {waiter} waits {most_waited_us:duration} for it while recorded",
        lambda cause, cause_share, where, **_: (
            f"Largest cause: {cause_name(cause)}, {percent(cause_share, 0)}{_at(where)}. The profiler slows hosts"
            " unequally: steps without it may have no late rank."
        ),
    ),
    "uneven_work": (
        "Rank {rank} runs {more_us:duration} of kernels that other ranks do not, {share:percent 1} of the window",
        lambda kernel, count, usual_count, kernels, **_: (
            f"{clipped_within(printable(kernel), NAME)}: {count:,} times, usually {usual_count:,.0f}"
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
#: A note that is the answer where there is no other.
NO_COLLECTIVES = "no_collectives"
NOTES: dict[str, Sentence] = {
    "other_job": "{subject} is of a job of {size} ranks, the others of {usual_size}: left out.",
    "other_time": lambda subject, rank, apart_us: (
        f"{subject} was recorded {duration(abs(apart_us))} {'before' if apart_us < 0 else 'after'} the others of its"
        " host: left out."
    ),
    "foreign": (
        "{subject} ends its collectives at other times than the ranks it calls its group: another job, or another part"
        " of this one. Left out."
    ),
    "unreadable": "Left out: {reason}.",
    "rank_unknown": "{subject} does not say its rank, and its name does not: left out.",
    "rank_twice": "{subject} is rank {rank} too: left out, {kept} counts.",
    "ranks_numbered": "No recording says its rank: ranks are numbered in the order of the files.",
    "rank_damaged": lambda subject, rank, truncated, skipped: (
        f"Rank {rank}'s recording is {'cut off' if truncated else 'damaged'} ({subject}"
        + (f"; {counted(skipped, 'event')} left out)." if skipped else ").")
    ),
    "with_operators": (
        "Read are the recordings with operators, which slow the host more; `tracekit compare` takes waiting from those"
        " without."
    ),
    "steps_differ": lambda usual, ranks: (
        f"Ranks recorded unequally many steps: {usual} usually, not ranks {ranges(ranks)}."
    ),
    "ranks_missing": lambda missing, size, ranks: (
        f"{missing} of {size:,} ranks are missing ({ranges(ranks)}): who is late among the others is told, no more."
    ),
    "one_rank": ("One rank alone cannot tell transfer from waiting for other ranks: name the recordings of all ranks."),
    NO_COLLECTIVES: "No communication kernels: nothing is known of waiting.",
    "clocks_unknown": "Clocks of the ranks could not be aligned: waiting is a lower bound, nobody is called late.",
    "start_skew": ("Rank {rank} waited {most_us:duration} for others to start recording; that is in no figure."),
    "parts_missing": (
        "{count} of {of:counted collective} lack a recorded rank's part: who is late among the others is told, no more."
    ),
    "unmatched_collectives": lambda count, total_us, reason, of: (
        f"{counted(count, 'collective')} ({duration(total_us)}) matched with no other rank: {UNMATCHED[reason]}."
        + (" Are all recordings of one job and the same steps?" if count > of / 2 else "")
    ),
}


MORE_ALIKE = " {count} more alike."
#: What to do about a rank that is late, by the largest cause, or by another finding.
REMEDIES = {
    "compute": "Compare rank {rank}'s kernels with rank {waiter}'s",
    "communication": "Look at the collective before it: rank {rank} is late for it too",
    "sync_wait": "Remove the synchronisation from rank {rank}'s step",
    "launch_call": "Launch less: torch.compile with reduce-overhead, or fused optimizers",
    "op_dispatch": "Launch less: torch.compile with reduce-overhead, or fused optimizers",
    "guards": "Check guards less often: torch.compiler.set_stance, or fewer compiled regions",
    "compile": "Find what rank {rank} recompiles: TORCH_LOGS=recompiles",
    "memory": "Keep rank {rank} from allocating: PYTORCH_ALLOC_CONF=expandable_segments:True",
    "gc": "Collect garbage on all ranks at the same step: gc.disable(), then gc.collect()",
    "python": "Find what rank {rank}'s host does before it launches",
    "device": "Look for other work on rank {rank}'s GPU",
    "uneven_work": "Give rank {rank} as much work as the others",
    "slow_gpu": "Check the clocks and the power limit of rank {rank}'s GPU",
}
LOOK = "Look at rank {rank} by itself"
#: By the code of a finding: what to do, and why.
ADVICE = {
    "straggler_rank": ("Look at rank {rank} by itself", "all others wait for it"),
    "straggler_host": ("Look at the slow host: clocks, power, other work on it", "all others wait for it"),
    "straggler_link": ("Check the links of the slow group", ""),
    "slow_host": ("Time steps without the profiler, on each rank", "recording slows hosts unequally"),
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
#: Waiting is no wall time where compute runs beside it.
SAVES_TIME = "up to {us} of rank {waiter}'s time (est.)"
SAVES_WAITING = "rank {waiter} waits up to {us} less, {exposed} of it exposed"


def remedy(cause: str, rank: int, waiter: int) -> str:
    return REMEDIES.get(cause, LOOK).format(rank=rank, waiter=waiter)


def collective_words(each: OneCollective) -> str:
    """`7: all_reduce of 32.0 MiB, arrivals 5.91 ms apart, rank 1 last`."""
    width = f" of {size(each.bytes)}" if each.bytes is not None else ""
    apart = f"arrivals {duration(each.arrival_spread_us)} apart, rank {each.last_rank} last"
    return f"{each.number:,}: {each.name}{width}, {apart}"


def last_words(told: Ranks) -> str:
    """`Last to arrive: rank 1 in 19 of 36 collectives, rank 0 in 17.` Empty where nobody was."""
    often = sorted((use for use in told.ranks if use.last_arrivals), key=lambda use: -use.last_arrivals)
    if not often:
        return ""
    whole = counted(sum(use.last_arrivals for use in often), "collective")
    first, *others = (f"rank {use.rank} in {use.last_arrivals:,}" for use in often[:3])
    return f"Last to arrive: {', '.join((f'{first} of {whole}', *others))}."


def cause_name(cause: str) -> str:
    return CAUSES.get(cause) or cause_words(cause)


def listed(ranks: Sequence[int]) -> str:
    """`0, 1, 2`, or of many `0, 8, 16 and 5 more`."""
    left = len(ranks) - MOST_LISTED if len(ranks) > MOST_LISTED + 1 else 0
    named = ", ".join(map(str, ranks[:MOST_LISTED] if left else ranks))
    return f"{named} and {left} more" if left else named


def ranges(ranks: Sequence[int], most: int = MOST_RANGES) -> str:
    """`3, 8 to 15, 64` and how many ranks more."""
    found: list[list[int]] = []
    for rank in sorted(ranks):
        if found and rank == found[-1][-1] + 1:
            found[-1].append(rank)
        else:
            found.append([rank])
    texts = [str(each[0]) if len(each) == 1 else f"{each[0]} to {each[-1]}" for each in found[:most]]
    left = sum(map(len, found[most:]))
    return ", ".join(texts) + (f" and {left} more" if left else "")


def straggler_name(each: Straggler) -> str:
    if each.kind == "rank":
        return f"rank {each.ranks[0]}"
    return f"{'host' if each.kind == 'host' else 'link of'} {printable(each.name or MISSING)}"


def straggler_cause(each: Straggler) -> str:
    if each.kind == "link":
        return f"{each.busbw_gbps:,.0f} GB/s, usually {each.usual_gbps:,.0f}"
    return causes_told(each.causes, 1) if each.causes else MISSING


def rule_words(rule: StragglerRule) -> str:
    """When a straggler is called one."""
    return (
        f"{rule.tested:,} ranks, hosts and links were tested together: any false alarm in a job has a probability of at"
        f" most {percent(rule.false_alarms, 0)} (Holm). Less than {percent(rule.least_excess, 0)} of own time, or"
        f" {percent(rule.least_excess_of_link, 0)} of a link's transfer, is not told."
    )


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
    return f" ({clipped_within(printable(where), NAME)})" if where else ""


def finding_title(finding: RankFinding) -> str:
    return say(FINDINGS[finding.code][0], {"rank": finding.rank, **finding.facts})


def finding_evidence(finding: RankFinding) -> str:
    return say(FINDINGS[finding.code][1], {"rank": finding.rank, **finding.facts})


def note_sentence(note: Note) -> str:
    return say(NOTES[note.code], note.facts, printable(note.subject) if note.subject else None)


def causes_told(causes: Sequence[CauseShare], most: int) -> str:
    """`Python 63 %, kernels 10 %`."""
    total = sum(each.us for each in causes)
    return ", ".join(f"{cause_name(each.cause)} {percent(each.us / total, 0)}" for each in causes[:most])


def digested(came: DigestsMade, folder: str) -> str:
    """What came of digesting many recordings."""
    counts = f"{came.made:,} digested, {came.kept:,} skipped, {came.failed:,} failed"
    return f"{counts} -> {folder} ({size(came.bytes)})"
