"""What is said of many ranks: collectives, causes of lateness, findings and notes."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tracekit.model.note import Note
from tracekit.numbers import MISSING, counted, duration, percent, size
from tracekit.ranks.digests import DigestsMade
from tracekit.ranks.job_figures import (
    CauseShare,
    CollectiveClass,
    OneCollective,
    Ranks,
    Straggler,
    StragglerRule,
    World,
)
from tracekit.report.words.common import cause_words
from tracekit.report.words.saying import Sentence, say

#: As a table has room for.
CAUSES = {
    "compute": "kernels",
    "communication": "an earlier collective",
    "python": "Python",
    "compiled_wrapper": "compiled wrapper",
    "launch_latency": "launch latency",
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
#: Ranks that are listed in a sentence, and ranges of missing ranks in a note.
MOST_LISTED, MOST_RANGES = 4, 8
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
ACCOUNT_NOTE = "“came last” counts collectives to which the rank was the last to arrive."
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
FLEET_HOW = (
    "Of more than 64 ranks collectives are joined by names alone.",
    "Their exposed waiting is waiting by the share of each collective that no compute covers.",
)
HOW = (
    "A rank waits in a collective from its kernel's start to the last rank's start; the rest is transfer.",
    "Exposed is what no other GPU work covers.",
    "The price of overlap is how much longer kernels took beside a collective than alone. A dash: too few ran alone.",
    "A late rank is followed back to where it was not yet behind the rank that waited longest for it.",
    "What it did more of since then is the cause of its lateness.",
    "Bus bandwidth is defined as in the NCCL tests (PERFORMANCE.md), over transfer alone.",
)

#: A note that is the answer where there is no other.
NO_COLLECTIVES = "no_collectives"
NOTES: dict[str, Sentence] = {
    "other_job": "{subject} is of a job of {size:,} ranks, the others of {usual_size:,}: left out.",
    "other_time": lambda subject, rank, apart_us: (
        f"{subject} was recorded {abs(apart_us) / 60e6:,.0f} min {'before' if apart_us < 0 else 'after'} the others of"
        " its host: left out."
    ),
    "foreign": (
        "{subject} shares no collective with its group at one moment: another job, another part of this one, or a clock"
        " that jumped. Left out."
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
        f"{missing:,} of {size:,} ranks {'is' if missing == 1 else 'are'} missing ({ranges(ranks)}):"
        " lateness is relative to the recorded ranks."
    ),
    "one_rank": ("One rank alone cannot tell transfer from waiting for other ranks: name the recordings of all ranks."),
    NO_COLLECTIVES: "No communication kernels: nothing is known of waiting.",
    "clocks_unknown": "Clocks of the ranks could not be aligned: waiting is a lower bound, nobody is called late.",
    "start_skew": ("Rank {rank} waited {most_us:duration} for others to start recording; that is in no figure."),
    "parts_missing": (
        "{count} of {of:counted collective} lack a recorded rank's part: lateness there is relative to the other ranks."
    ),
    "unmatched_collectives": lambda count, total_us, reason, of: (
        f"{counted(count, 'collective')} ({duration(total_us)}) matched with no other rank: {UNMATCHED[reason]}."
        + (" Are all recordings of one job and the same steps?" if count > of / 2 else "")
    ),
}

#: What is wrong with recordings that are left out, as they are counted.
LEFT_OUT = {
    "unreadable": "unreadable",
    "other_job": "foreign",
    "other_time": "foreign",
    "foreign": "foreign",
    "rank_unknown": "of no known rank",
    "rank_twice": "duplicate",
}


def ranks_read(world: World) -> str:
    """`6 of 8 ranks`, or as many as there are where nobody says how many the job has."""
    read = len(world.recorded)
    return f"{read:,} of {world.size:,} ranks" if world.size else counted(read, "rank")


def left_out(told: Ranks) -> str:
    """`6 of 8 ranks read. Recordings left out: 1 unreadable, 2 foreign.` Empty where all are there."""
    faults = Counter(LEFT_OUT[each.code] for each in told.notes if each.code in LEFT_OUT)
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
    return f"{'host' if each.kind == 'host' else 'link of'} {each.name or MISSING}"


def straggler_cause(each: Straggler) -> str:
    if each.kind == "link":
        return f"{each.busbw_gbps:,.0f} GB/s, usually {each.usual_gbps:,.0f}"
    return causes_told(each.causes, 1) if each.causes else MISSING


def rule_words(rule: StragglerRule) -> str:
    """When a straggler is called one."""
    return (
        f"{rule.tested:,} ranks, hosts and links tested; chance of any false alarm at most"
        f" {percent(rule.false_alarms, 0)} (Holm). Excess below {percent(rule.least_excess, 0)} of own time, or"
        f" {percent(rule.least_excess_of_link, 0)} of a link's transfer, is not reported."
    )


def note_sentence(note: Note) -> str:
    return say(NOTES[note.code], note.facts, note.subject or None)


def note_sentences(notes: Sequence[Note]) -> Iterator[str]:
    """Of many files with one fault the first, and how many more."""
    for code in dict.fromkeys(each.code for each in notes):
        first, *more = (each for each in notes if each.code == code)
        yield note_sentence(first) + (f" {len(more)} more alike." if more else "")


def causes_told(causes: Sequence[CauseShare], most: int) -> str:
    """`Python 63 %, kernels 10 %`; no cause that rounds to nothing."""
    total = sum(each.us for each in causes)
    kept = [each for each in causes[:most] if each.us >= LEAST_SHARE * total]
    return ", ".join(f"{cause_name(each.cause)} {percent(each.us / total, 0)}" for each in kept)


def digested(came: DigestsMade, folder: str) -> str:
    """What came of digesting many recordings."""
    counts = f"{came.made:,} digested, {came.kept:,} skipped, {came.failed:,} failed"
    return f"{counts} -> {folder} ({size(came.bytes)})"
