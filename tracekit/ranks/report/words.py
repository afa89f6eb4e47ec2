"""What is said of many ranks: collectives, causes of lateness and notes."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tracekit.numbers import counted, duration, percent, size
from tracekit.ranks.job_figures import CauseShare, Clock, OneCollective, RankNote, Ranks, StragglerRule, World
from tracekit.ranks.statements.words import cause_name

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
#: Heads: from the first arrival to the last, the median; and which rank came last, or how often.
LATE_BY, CAME_LAST = "late by", "came last"
#: What most of a collective's time is, where neither transfer nor waiting.
MOSTLY = {"mixed": "both", "inconclusive": "unknown"}
#: Types of elements, as the profiler writes them.
DTYPES = {"BFloat16": "bf16", "Half": "fp16", "Float": "fp32", "Double": "fp64"}
#: Of all causes of a delay: less is not told.
LEAST_SHARE = 0.005

#: What a rank's span consists of, as legends call it; `unmatched` is what cannot be told apart.
PARTS = {
    "compute": "compute",
    "transfer": "exposed transfer",
    "waiting": "exposed waiting",
    "unmatched": "exposed, unmatched",
}
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
    "“overlap price” and “waiting” are within these; “came last” counts collectives to which the rank was the last to"
    " arrive."
)
MATRIX_NOTE = "In each collective all ranks wait for the last to arrive."
WORST_NOTE = (
    "Waiting is the sum over the ranks, “late by” the time from the first arrival to the last. A row opens to the"
    " waiting of each rank."
)
STRETCH, FROM_THE_BEGINNING = "The drawing begins {begin} into the window.", "The drawing begins with the window."

STEPS_NOTE = (
    "Own time is compute and idle, without communication: a rank that waits for a slow one is not slow. Peers are the"
    " ranks of the same pipeline stage, of which the median counts."
)
GROUPS_NOTE = "Medians over the ranks of a group. “Longer” is own time against ranks of the same pipeline stage."
MANY_HOW = (
    "Of very many ranks those that were late or slow, and some others evenly, are read in full.",
    "Exposed waiting of the rest is waiting by the share of each collective that no compute covers.",
)
HOW = (
    "A rank waits in a collective from its kernel's start to the last rank's start; the rest is transfer.",
    "Exposed is what no other GPU work covers.",
    "The price of overlap is how much longer kernels took beside a collective than alone. A dash: too few ran alone.",
    "A late rank is followed back to where it was not yet behind the rank that waited longest for it.",
    "What it did more of since then is the cause of its lateness.",
    "Bus bandwidth is defined as in the NCCL tests (PERFORMANCE.md), over transfer alone.",
)


def ranks_read(world: World) -> str:
    """`6 of 8 ranks`, or as many as there are where nobody says how many the job has."""
    read = len(world.recorded)
    return f"{read:,} of {world.size:,} ranks" if world.size else counted(read, "rank")


def spread_words(clock: Clock) -> str:
    """How far the clocks can be trusted."""
    apart = clock.uncertainty_us
    return CLOCKS[clock.basis] + (f", ends {duration(apart)} apart (median)" if apart is not None else "")


def left_out(told: Ranks) -> str:
    """`6 of 8 ranks read. Recordings left out: 1 unreadable, 2 foreign.` Empty where all are there."""
    faults = Counter(each.fault for each in told.notes if each.fault)
    if not (faults or told.world.missing):
        return ""
    counts = ", ".join(f"{count:,} {fault}" for fault, count in faults.items())
    return f"{ranks_read(told.world)} read.{f' Recordings left out: {counts}.' if counts else ''}"


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


def rule_words(rule: StragglerRule) -> str:
    """When a straggler is called one."""
    return (
        f"{rule.tested:,} ranks, hosts and links tested; chance of any false alarm at most"
        f" {percent(rule.false_alarms, 0)} (Holm). Excess below {percent(rule.least_excess, 0)} of own time, or"
        f" {percent(rule.least_excess_of_link, 0)} of a link's transfer, is not reported."
    )


def note_sentences(notes: Sequence[RankNote]) -> Iterator[str]:
    """Of many files with one fault the first, and how many more."""
    for code in dict.fromkeys(each.code for each in notes):
        first, *more = (each for each in notes if each.code == code)
        yield first.long() + (f" {len(more)} more alike." if more else "")


def causes_told(causes: Sequence[CauseShare], most: int) -> str:
    """`Python 63 %, kernels 10 %`; no cause that rounds to nothing."""
    total = sum(each.us for each in causes)
    kept = [each for each in causes[:most] if each.us > 0 and each.us >= LEAST_SHARE * total]
    return ", ".join(f"{cause_name(each.cause)} {percent(each.us / total, 0)}" for each in kept)
