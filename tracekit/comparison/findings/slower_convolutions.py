"""Do the same convolutions take longer?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tracekit.comparison.commands import profile_command
from tracekit.comparison.convolutions import find_convolution
from tracekit.comparison.memory_layout import moved_last
from tracekit.model.comparison import Comparison, Finding, KernelGroup
from tracekit.model.run import Settings
from tracekit.model.sequence import Activity, Sequence
from tracekit.numbers import counted, duration

#: Convolutions that take so many times as long got another kernel, or another layout; recordings differ by less.
CLEARLY = 1.25
#: Less than this share of B's GPU time is not worth a reader's time.
MARKED = 0.01
#: Inductor's `layout_optimization`, on unless this variable says otherwise. On an H200 (torch 2.11, cuDNN 9), DeepLabV3
#: at batch 16: of depthwise convolutions those without dilation get a kernel for channels that lie last and take a
#: quarter of the time, those with dilation a general one and take 5.7 times as long.
SWITCH = {"TORCHINDUCTOR_LAYOUT_OPTIMIZATION": "0"}


@dataclass(frozen=True, slots=True)
class _Convolved:
    """The convolutions of one group, microseconds per step of either side. `moved`: channels lie last in B alone."""

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


def find_slower_convolutions(comparison: Comparison) -> Finding | None:
    """Found when groups that convolve the same sizes on both sides take a quarter longer in B, and that is a hundredth
    of B's GPU time.

    Where the channels of all of them lie last in B and first in A, the advice is to leave them where they are. The
    saving is what these take longer, less what other convolutions gain that lie otherwise too: they would lose it
    again. Without such a layout, or where it gains more than it costs, there is no advice. The evidence is that of the
    group which lost most.
    """
    found = [each for group in comparison.groups if (each := _convolved(group, comparison))]
    slower = [each for each in found if each.slower]
    lost_us, busy_us = sum(each.delta_us for each in slower), comparison.b.busy_us
    if not slower or not busy_us or lost_us < MARKED * busy_us:
        return None
    moved = all(each.moved for each in slower)
    gained_us = -sum(each.delta_us for each in found if each.moved and not each.slower)
    settings = comparison.b.settings if moved and lost_us > gained_us else None
    return Finding(
        code="slower_convolutions",
        severity="warning",
        title=_title(slower),
        evidence=" ".join((*_evidence(slower), *(_why(lost_us, gained_us) if moved else ()))),
        saving_us=lost_us - gained_us if moved and lost_us > gained_us else None,
        advice=_advice(settings) if settings else None,
        environment=SWITCH if settings else {},
    )


def _title(slower: Collection[_Convolved]) -> str:
    factor = sum(each.b_us for each in slower) / sum(each.a_us for each in slower)
    count = round(sum(each.count for each in slower))
    return f"{counted(count, 'convolution')} {'takes' if count == 1 else 'take'} {factor:.1f} times as long"


def _evidence(slower: Collection[_Convolved]) -> Iterator[str]:
    before_us, after_us = sum(each.a_us for each in slower), sum(each.b_us for each in slower)
    yield f"From {duration(before_us)} to {duration(after_us)}."
    yield from max(slower, key=lambda each: each.delta_us).group.evidence


def _why(lost_us: float, gained_us: float) -> Iterator[str]:
    """What laid them out so, and what that does to the others."""
    yield "Inductor lays out convolutions so where it expects that to pay."
    if gained_us > 0:
        end = ", which they would lose again without" if lost_us > gained_us else ": more than these lost"
        yield f"Other convolutions that lie so too take {duration(gained_us)} less{end}."
    elif gained_us < 0:
        yield f"Other convolutions that lie so too take {duration(-gained_us)} more."


def _advice(settings: Settings) -> str:
    return " ".join([*(f"{name}={value}" for name, value in SWITCH.items()), profile_command(settings)])


def _convolved(group: KernelGroup, comparison: Comparison) -> _Convolved | None:
    """None of a group that does not convolve the same on both sides, as far as is known."""
    a, b = _convolving(comparison.a.sequence, group.a_at), _convolving(comparison.b.sequence, group.b_at)
    if not a or not b or _sizes(a) != _sizes(b):
        return None
    per_step = [side.sequence.per_step if side.sequence else 1.0 for side in (comparison.a, comparison.b)]
    a_us, b_us = (sum(each.duration_us for each in some) * per for some, per in zip((a, b), per_step, strict=True))
    calls = len({each.operator_call for each in b}) * per_step[1]
    return _Convolved(group, calls, a_us, b_us, moved_last(a, b))


def _convolving(work: Sequence | None, positions: Iterable[int]) -> list[Activity]:
    """What convolutions launched: their own kernels, and those that lay data out for them."""
    some = [work.activities[at] for at in positions] if work else []
    return [each for each in some if each.operator and find_convolution(each.operator)]


def _sizes(activities: Iterable[Activity]) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    found = (find_convolution(each.operator) for each in activities if each.operator)
    return {(each.data, each.weight) for each in found if each}
