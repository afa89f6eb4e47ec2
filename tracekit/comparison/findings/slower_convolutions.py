"""Do the same convolutions take longer?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from tracekit.comparison.commands import switched_command
from tracekit.comparison.cost.convolutions import Shape, find_convolution
from tracekit.comparison.cost.memory_layout import moved_last
from tracekit.comparison.cost.operator_calls import Call, find_calls
from tracekit.model.action import Action
from tracekit.model.comparison import Comparison, Finding, KernelGroup, Side
from tracekit.model.evidence import Evidence
from tracekit.model.sequence import Sequence

#: Convolutions that take so many times as long got another kernel, or another layout; recordings differ by less.
CLEARLY = 1.25
#: Less than this share of B's GPU time is not worth a reader's time.
MARKED = 0.01
#: Inductor's `layout_optimization`, on unless this variable says otherwise. On an H200 (torch 2.11), DeepLabV3 at
#: batch 16: of depthwise convolutions those without dilation get a kernel for channels that lie last and take a quarter
#: of the time, those with dilation a general one and take 5.7 times as long.
SWITCH = {"TORCHINDUCTOR_LAYOUT_OPTIMIZATION": "0"}


@dataclass(frozen=True, slots=True)
class _Convolved:
    """The convolutions of one group: how many, and microseconds, per step. `moved`: channels lie last in B alone."""

    group: KernelGroup
    count: float
    a_us: float
    b_us: float
    moved: bool

    @property
    def slower(self) -> bool:
        return self.b_us >= CLEARLY * self.a_us

    @property
    def delta_us(self) -> float:
        return self.b_us - self.a_us


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Of a convolution's data and weights, with their types, and of the result; None where that is not known."""

    data: Shape
    weight: Shape
    dtypes: tuple[str, ...]
    result: Shape | None


def find_slower_convolutions(comparison: Comparison) -> Finding | None:
    """Found when groups with as many convolutions of the same sizes and types on both sides take a quarter longer in B,
    and that is a hundredth of B's GPU time.

    Where B is compiled, and the channels of all of them lie last in B and first in A, the advice is to leave them where
    they are. The saving is what these take longer, less what other convolutions gain that lie otherwise too: they would
    lose it again. Without such a layout, or where it gains more than it costs, there is no advice. The evidence is that
    of the group which lost most.
    """
    found = list(_compared(comparison))
    slower = [each for each in found if each.slower]
    lost_us, busy_us = sum(each.delta_us for each in slower), comparison.b.busy_us
    if not slower or not busy_us or lost_us < MARKED * busy_us:
        return None
    moved = all(each.moved for each in slower)
    by_inductor = moved and _is_compiled(comparison.b)
    gained_us = -sum(each.delta_us for each in found if each.moved and not each.slower)
    worth_it = by_inductor and lost_us > gained_us
    settings = comparison.b.settings if worth_it else None
    return Finding(
        code="slower_convolutions",
        severity="warning",
        facts={
            **_facts(slower, moved=moved),
            "laid_out_by_inductor": by_inductor,
            "others_gained_us": gained_us if by_inductor else None,
        },
        saving_us=lost_us - gained_us if worth_it else None,
        action=Action("run_again", switched_command(settings, SWITCH)) if settings else None,
        environment=SWITCH if settings else {},
    )


def _is_compiled(side: Side) -> bool:
    """Whether Inductor had a say: eager code lies as its author laid it. A bare trace tells it by Triton kernels."""
    if side.form is not None:
        return side.form.name == "compiled"
    return side.analysis.kernels is not None and side.analysis.kernels.triton_count > 0


def _facts(slower: Collection[_Convolved], *, moved: bool) -> dict[str, Any]:
    worst = max(slower, key=lambda each: each.delta_us).group
    shown = list(worst.evidence)
    if moved and not any(each.kind == "channels_moved_last" for each in shown):
        # Of kernels that stayed as they were the group does not say it.
        shown.append(Evidence("channels_moved_last"))
    return {
        "convolutions": max(round(sum(each.count for each in slower)), 1),
        "before_us": sum(each.a_us for each in slower),
        "after_us": sum(each.b_us for each in slower),
        "shown_by": [asdict(each) for each in shown],
    }


def _compared(comparison: Comparison) -> Iterator[_Convolved]:
    """The groups that convolve the same on both sides, as far as is known."""
    one, other = comparison.a.sequence, comparison.b.sequence
    if one is None or other is None:
        return
    of_a, of_b = _calls(one), _calls(other)
    for group in comparison.groups:
        a, b = _in(group.a_at, of_a), _in(group.b_at, of_b)
        a_us, b_us = _us(a) * one.per_step, _us(b) * other.per_step
        if a_us and _is_same(a, b, one.per_step / other.per_step):
            moved = moved_last(*([each for call in calls for each in call.activities] for calls in (a, b)))
            yield _Convolved(group, len(b) * other.per_step, a_us, b_us, moved)


def _calls(work: Sequence) -> dict[int, Call]:
    """Every call of a convolution, at the place of its main kernel: the group that holds it counts the whole call, also
    what lays its data out."""
    found = find_calls(work.activities)
    return {at: call for at, call in found.items() if call.operator and find_convolution(call.operator)}


def _in(positions: Iterable[int], calls: Mapping[int, Call]) -> list[Call]:
    return [calls[at] for at in positions if at in calls]


def _us(calls: Iterable[Call]) -> float:
    return sum(call.duration_us for call in calls)


def _is_same(a: Collection[Call], b: Collection[Call], rounds: float) -> bool:
    """Whether both are the same convolutions; `rounds` is how many steps of B stand beside each of A. Results are
    compared where all are known."""
    one, other = ([_sizes(call) for call in calls] for calls in (a, b))
    if any(each.result is None for each in (*one, *other)):
        one, other = ([replace(each, result=None) for each in some] for some in (one, other))
    counts, others = Counter(one), Counter(other)
    return counts.keys() == others.keys() and all(round(counts[each] * rounds) == others[each] for each in counts)


def _sizes(call: Call) -> _Sizes:
    operator = call.operator
    found = find_convolution(operator) if operator else None
    if operator is None or found is None:
        raise AssertionError("a call of a convolution is one")
    return _Sizes(found.data, found.weight, operator.dtypes[:2], found.result)
