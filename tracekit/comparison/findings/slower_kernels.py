"""Was a fused attention kernel lost, or does the same work take longer in another kernel or layout?

Measured on an H200, torch 2.11 and transformers 5.17, batch 1, bfloat16: compiled whole, both models make an attention
mask that eager code skips (transformers does not look into masks while it is traced, before torch 2.14). ViT-B's
attention then becomes products and a softmax, 814 us of GPU time a call; with its layers compiled one by one it keeps
cuDNN's kernel, 644 us, and the call, which waits for the host, takes 5.25 ms instead of 4.58. Four layers of gemma: 144
us of attention whole, 65 us layer by layer, as eager.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from tracekit.comparison.commands import layer_by_layer, run_again, scope_changes
from tracekit.comparison.cost.flops import find_convolution, moved_last
from tracekit.comparison.cost.operator_calls import Call, find_calls
from tracekit.comparison.matching.groups_by_name import time_of
from tracekit.comparison.matching.operators import Dims, library_family
from tracekit.model.comparison import Comparison, Finding, KernelGroup
from tracekit.model.sequence import Sequence
from tracekit.statements.evidence import AttentionLost, ChannelsMovedLast, SinglePrecision
from tracekit.statements.findings.kernels import LostAttention, SlowerAttention, SlowerConvolutions

#: B keeps less than this share of A's attention time.
LOST = 0.1
#: What takes so many times as long got another kernel, or another layout; recordings of the same differ by less.
CLEARLY = 1.25
#: Less than this share of B's GPU time is not worth a reader's time.
MARKED = 0.01
#: Inductor's `layout_optimization`, on unless this variable says otherwise. On an H200 (torch 2.11), DeepLabV3 at
#: batch 16: of depthwise convolutions those without dilation get a kernel for channels that lie last and take a quarter
#: of the time, those with dilation a general one and take 5.7 times as long.
SWITCH = {"TORCHINDUCTOR_LAYOUT_OPTIMIZATION": "0"}
#: Of a convolution's data and weights, with their types, and of the result, None where that is not known.
Sizes = tuple[Dims, Dims, tuple[str, ...], Dims | None]


def find_lost_attention(comparison: Comparison) -> Finding | None:
    """Found when A's attention kernels are gone from B, and B spends more on matrix products or has groups of kernels
    that lost one.

    The saving is what the groups that lost it take longer; where none is known, the extra time of the matrix products
    over what attention took. None when there is none.
    """
    a, b = comparison.a, comparison.b
    attention, kept = a.family_us("attention"), b.family_us("attention")
    gemm_us = b.family_us("gemm") - a.family_us("gemm")
    shown = [(group, {type(each) for each in group.evidence}) for group in comparison.groups]
    lost_us = [group.delta_us for group, kinds in shown if group.kind == "defused" and AttentionLost in kinds]
    if not attention or kept >= LOST * attention or (gemm_us <= 0 and not lost_us):
        return None
    extra_us = sum(lost_us) if lost_us else gemm_us - (attention - kept)
    statement = LostAttention(
        a=a.label,
        b=b.label,
        attention_before_us=attention,
        attention_after_us=kept,
        products_more_us=gemm_us,
        # Half of what they cost.
        in_float32=any(kinds >= {AttentionLost, SinglePrecision} for _, kinds in shown),
    )
    saving_us = extra_us if extra_us > 0 else None
    return Finding(statement, saving_us, layer_by_layer(b), scope_changes(b))


class _SameWork(Struct, frozen=True):
    """The work of one group that both sides do: microseconds per step of either side, and how many calls (of
    convolutions). `moved`: channels lie last in B alone."""

    group: KernelGroup
    a_us: float
    b_us: float
    calls: float = 0.0
    moved: bool = False

    @property
    def slower(self) -> bool:
        return self.b_us >= CLEARLY * self.a_us

    @property
    def delta_us(self) -> float:
        return self.b_us - self.a_us


def _slower(found: Iterable[_SameWork], comparison: Comparison) -> list[_SameWork]:
    """The worst first; none where they make too little of B's GPU time."""
    slower = sorted((each for each in found if each.slower), key=lambda each: -each.delta_us)
    lost_us, busy_us = sum(each.delta_us for each in slower), comparison.b.busy_us
    return slower if busy_us and lost_us >= MARKED * busy_us else []


def find_slower_attention(comparison: Comparison) -> Finding | None:
    """Found when groups that attend on both sides take a quarter longer in B, and that is a hundredth of B's GPU time.

    Counted is the group's whole time where A does nothing in it but attend, for what B does beside it prepares it; else
    the attention kernels' alone. A group whose queries are of other sizes in B (another batch, another length) is other
    work and does not count; another mask, or keys laid out otherwise, is what this finding is for. The saving is what
    they take longer. The evidence is that of the group which lost most.
    """
    a_names, b_names = (
        {each.name for each in kernels.by_name if each.family == "attention"} if kernels else set()
        for kernels in (comparison.a.analysis.kernels, comparison.b.analysis.kernels)
    )
    attending: list[_SameWork] = []
    for group in comparison.groups:
        a, b = [each for each in group.a if each.name in a_names], [each for each in group.b if each.name in b_names]
        one, other = _queries(comparison.a.sequence, group.a_at), _queries(comparison.b.sequence, group.b_at)
        same_queries = not one or not other or one == other
        if {len(each) for each in one} != {len(each) for each in other}:
            # One side lays batch and heads out as one dimension.
            same_queries = not one or not other or set(map(math.prod, one)) == set(map(math.prod, other))
        if group.kind == "unmatched" or not a or not b or not same_queries:
            continue
        # What clears attention's memory goes with it.
        attends_only = all(each in a or each.name.startswith("Memset") for each in group.a)
        a_us, b_us = (time_of(group.a), time_of(group.b)) if attends_only else (time_of(a), time_of(b))
        if a_us:
            attending.append(_SameWork(group, a_us, b_us))
    slower = _slower(attending, comparison)
    if not slower:
        return None
    statement = SlowerAttention(
        before_us=sum(each.a_us for each in slower),
        after_us=sum(each.b_us for each in slower),
        shown_by=slower[0].group.evidence,
    )
    saving_us, side = sum(each.delta_us for each in slower), comparison.b
    return Finding(statement, saving_us, layer_by_layer(side), scope_changes(side))


def _queries(work: Sequence | None, positions: Iterable[int]) -> set[Dims]:
    """Batch, heads and length of each query, in order of size: operators differ in which comes first. The width is left
    out, which a call may pad."""
    activities = [work.activities[at] for at in positions] if work else []
    attention = [each.operator for each in activities if library_family(each) == "attention"]
    return {tuple(sorted(each.dims[0][:-1])) for each in attention if each and each.dims and each.dims[0]}


def find_slower_convolutions(comparison: Comparison) -> Finding | None:
    """Found when groups with as many convolutions of the same sizes and types on both sides take a quarter longer in B,
    and that is a hundredth of B's GPU time.

    Where B is compiled, and the channels of all of them lie last in B and first in A, the advice is to leave them where
    they are. The saving is what these take longer, less what other convolutions gain that lie otherwise too: they would
    lose it again. Without such a layout, or where it gains more than it costs, there is no advice. The evidence is that
    of the group which lost most.
    """
    found = list(_convolutions(comparison))
    slower = _slower(found, comparison)
    if not slower:
        return None
    moved = all(each.moved for each in slower)
    # Inductor had a say: eager code lies as its author laid it. A bare trace tells it by Triton kernels.
    side, kernels = comparison.b, comparison.b.analysis.kernels
    compiled = side.form.name == "compiled" if side.form else kernels is not None and kernels.triton_count > 0
    by_inductor = moved and compiled
    lost_us = sum(each.delta_us for each in slower)
    gained_us = -sum(each.delta_us for each in found if each.moved and not each.slower)
    worth_it = by_inductor and lost_us > gained_us
    settings = side.settings if worth_it else None
    evidence = slower[0].group.evidence
    if moved and not any(isinstance(each, ChannelsMovedLast) for each in evidence):
        # Of kernels that stayed as they were the group does not say it.
        evidence = (*evidence, ChannelsMovedLast())
    statement = SlowerConvolutions(
        convolutions=max(round(sum(each.calls for each in slower)), 1),
        before_us=sum(each.a_us for each in slower),
        after_us=sum(each.b_us for each in slower),
        shown_by=evidence,
        laid_out_by_inductor=by_inductor,
        others_gained_us=gained_us if by_inductor else None,
    )
    saving_us, advice = lost_us - gained_us if worth_it else None, run_again(settings, switches=SWITCH)
    return Finding(statement, saving_us, advice, environment=SWITCH if settings else {})


def _convolutions(comparison: Comparison) -> Iterator[_SameWork]:
    """The groups that convolve the same on both sides, as far as is known. The group that holds a call's main kernel
    counts the whole call, also what lays its data out."""
    one, other = comparison.a.sequence, comparison.b.sequence
    if one is None or other is None or not comparison.groups:
        return
    a_calls, b_calls = (
        {at: call for at, call in find_calls(work.activities).items() if call.operator and _sizes(call)}
        for work in (one, other)
    )
    for group in comparison.groups:
        a = [a_calls[at] for at in group.a_at if at in a_calls]
        b = [b_calls[at] for at in group.b_at if at in b_calls]
        a_us, b_us = (sum(call.duration_us for call in calls) for calls in (a, b))
        sides: list[list[Sizes]] = [[sizes for call in calls if (sizes := _sizes(call))] for calls in (a, b)]
        # Results are compared where all are known.
        if any(sizes[-1] is None for some in sides for sizes in some):
            sides = [[(*sizes[:-1], None) for sizes in some] for some in sides]
        (before, after), rounds = map(Counter, sides), one.per_step / other.per_step
        same = before.keys() == after.keys() and all(round(before[each] * rounds) == after[each] for each in before)
        if a_us and same:
            moved = moved_last(*([each for call in calls for each in call.activities] for calls in (a, b)))
            yield _SameWork(group, a_us * one.per_step, b_us * other.per_step, len(b) * other.per_step, moved)


def _sizes(call: Call) -> Sizes | None:
    """None for what is no convolution."""
    found = find_convolution(call.operator) if call.operator else None
    return (found.data, found.weight, call.operator.dtypes[:2], found.result) if found and call.operator else None
