"""Words that statements and tables of ranks share."""

from collections.abc import Callable, Sequence
from itertools import groupby
from string import Formatter
from typing import Any, ClassVar

from tracekit.names import clipped_within
from tracekit.numbers import count, counted, duration, duration_change, percent, size, times
from tracekit.ranks.job_figures import Unmatched
from tracekit.report.words.common import cause_words

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
WHY_UNMATCHED: dict[Unmatched, str] = {
    "missing_rank": "other ranks of the group were not recorded",
    "counts_differ": "ranks recorded unequally many",
    "not_at_once": "over on one rank before another began",
    "ends_disagree": "ended at different times",
    "peers_unknown": "not recorded who sends to whom",
    "one_sided": "writes to other ranks and waits for none",
    "group_unknown": "not recorded which ranks are in the group",
    "clocks_unknown": "no barrier, and clocks are unknown",
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
#: Ranks that are listed in a sentence, ranges of missing ranks in a note, and characters of a kernel's name.
MOST_LISTED, MOST_RANGES, NAME = 4, 8, 48


def cause_name(cause: str) -> str:
    return CAUSES.get(cause) or cause_words(cause)


def remedy(cause: str, rank: int, waiter: int) -> str:
    return REMEDIES.get(cause, LOOK).format(rank=rank, waiter=waiter)


def listed(ranks: Sequence[int]) -> str:
    """`0, 1, 2`, or of many `0, 8, 16 and 5 more`."""
    left = len(ranks) - MOST_LISTED if len(ranks) > MOST_LISTED + 1 else 0
    named = ", ".join(map(str, ranks[:MOST_LISTED] if left else ranks))
    return f"{named} and {left} more" if left else named


def ranges(ranks: Sequence[int], most: int = MOST_RANGES) -> str:
    """`3, 8 to 15, 64` and how many ranks more."""
    # Of neighbours rank and place differ by the same.
    rows = groupby(enumerate(sorted(ranks)), key=lambda each: each[1] - each[0])
    found = [[rank for _, rank in row] for _, row in rows]
    texts = [str(each[0]) if len(each) == 1 else f"{each[0]} to {each[-1]}" for each in found[:most]]
    left = sum(map(len, found[most:]))
    return ", ".join(texts) + (f" and {left} more" if left else "")


def cost_words(exposed_us: float, price_us: float | None, share: float, steps: int) -> str:
    """`costs the job 0.36 ms a step (3.6 %): exposed 0.30 ms + overlap price 0.06 ms (est.)`, given what it costs in
    all steps. Waiting beside compute is no wall time: only what it slows is."""
    cost = per_step(exposed_us + (price_us or 0.0), steps)
    price = ", overlap price unknown" if price_us is None else f" + overlap price {duration(price_us / steps)} (est.)"
    return f"costs the job {cost} ({percent(share, 1)}): exposed {duration(exposed_us / steps)}{price}"


def per_step(us: float, steps: int) -> str:
    """Of a whole recording, or a single step, what it holds."""
    return f"{duration(us / steps)} a step" if steps > 1 else duration(us)


#: What a sentence may ask of a fact: `{share:percent}`.
WRITTEN: dict[str, Callable[[Any], str]] = {
    "count": count,
    "duration": duration,
    "duration change": duration_change,
    "percent": percent,
    "whole percent": lambda share: percent(share, 0),
    "size": size,
    "of size": lambda bytes_: f" of {size(bytes_)}" if bytes_ is not None else "",
    "times": times,
    "cause": cause_name,
    "listed": listed,
    "ranges": ranges,
    "name": lambda name: clipped_within(name, NAME),
    "place": lambda where: f" ({clipped_within(where, NAME)})" if where else "",
}


class _Sentence(Formatter):
    def format_field(self, value: Any, how: str) -> str:
        if how.startswith("counted "):
            return counted(value, how.removeprefix("counted "))
        return WRITTEN[how](value) if how in WRITTEN else format(value, how)


def sentence(words: str, facts: object) -> str:
    """The words with facts in their places, written as `WRITTEN` says: `{us:duration}`, `{steps:counted step}`, else
    as Python writes them. `{self.cost}` is any other attribute."""
    return _Sentence().vformat(words, (), vars(facts) | {"self": facts})


class Said:
    """A statement whose title and sentence are written so."""

    says_title: ClassVar[str]
    says: ClassVar[str]

    def title(self) -> str:
        return sentence(self.says_title, self)

    def long(self) -> str:
        return sentence(self.says, self)
