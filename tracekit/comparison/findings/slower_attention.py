"""Does the attention that was kept take longer?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict

from tracekit.comparison.layers import layer_by_layer, scope_changes
from tracekit.comparison.matching.library import library_family
from tracekit.comparison.matching.operators import Dims
from tracekit.model.comparison import Comparison, Finding, GroupMember, KernelGroup, Side
from tracekit.model.sequence import Sequence

#: Attention that takes so many times as long is not the same work; recordings of the same differ by less.
CLEARLY = 1.25
#: Less than this share of B's GPU time is not worth a reader's time.
MARKED = 0.01

#: Beginnings of names of what only goes with attention: its memory is cleared.
BESIDE = ("Memset",)


def find_slower_attention(comparison: Comparison) -> Finding | None:
    """Found when groups that attend on both sides take a quarter longer in B, and that is a hundredth of B's GPU time.

    Counted is the group's whole time where A does nothing in it but attend, for what B does beside it prepares it; else
    the attention kernels' alone. A group whose queries are of other sizes in B (another batch, another length) is other
    work and does not count; another mask, or keys laid out otherwise, is what this finding is for. The saving is what
    they take longer. The evidence is that of the group which lost most.
    """
    a_names, b_names = _attention_names(comparison.a), _attention_names(comparison.b)
    slower: list[tuple[float, KernelGroup]] = []
    before_us = after_us = 0.0
    for group in comparison.groups:
        a_us, b_us = _attention_times(group, a_names, b_names)
        if a_us and b_us >= CLEARLY * a_us and _same_queries(group, comparison):
            slower.append((b_us - a_us, group))
            before_us, after_us = before_us + a_us, after_us + b_us
    lost_us, busy_us = after_us - before_us, comparison.b.busy_us
    if not slower or not busy_us or lost_us < MARKED * busy_us:
        return None
    _, worst = max(slower, key=lambda each: each[0])
    return Finding(
        code="slower_attention",
        severity="warning",
        facts={"before_us": before_us, "after_us": after_us, "shown_by": [asdict(each) for each in worst.evidence]},
        saving_us=lost_us,
        action=layer_by_layer(comparison.b),
        changes=scope_changes(comparison.b),
    )


def _attention_names(side: Side) -> frozenset[str]:
    kernels = side.analysis.kernels
    return frozenset(each.name for each in kernels.by_name if each.family == "attention") if kernels else frozenset()


def _attention_times(group: KernelGroup, a_names: frozenset[str], b_names: frozenset[str]) -> tuple[float, float]:
    """Microseconds per step of either side; 0 where a side does not attend, or none is known to do the other's work."""
    a, b = ([each for each in side if each.name in names] for side, names in ((group.a, a_names), (group.b, b_names)))
    if not a or not b or group.kind == "unmatched":
        return 0.0, 0.0
    attends_only = all(each in a or each.name.startswith(BESIDE) for each in group.a)
    return (_time(group.a), _time(group.b)) if attends_only else (_time(a), _time(b))


def _same_queries(group: KernelGroup, comparison: Comparison) -> bool:
    """Whether attention gets queries of the same sizes on both sides; True where a side does not say."""
    a, b = _queries(comparison.a.sequence, group.a_at), _queries(comparison.b.sequence, group.b_at)
    if {len(each) for each in a} != {len(each) for each in b}:
        # One side lays batch and heads out as one dimension.
        return not a or not b or set(map(math.prod, a)) == set(map(math.prod, b))
    return not a or not b or a == b


def _queries(work: Sequence | None, positions: Iterable[int]) -> set[Dims]:
    """Batch, heads and length of each query, in order of size: operators differ in which comes first. The width is left
    out, which a call may pad."""
    attention = (
        [work.activities[at] for at in positions if library_family(work.activities[at]) == "attention"] if work else []
    )
    shapes = [each.operator.dims[0] for each in attention if each.operator and each.operator.dims]
    return {tuple(sorted(each[:-1])) for each in shapes if each}


def _time(members: Iterable[GroupMember]) -> float:
    return sum(each.total_us for each in members)
