"""Which activities did one operator call launch, and how much did the call move and compute? By estimate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracekit.comparison.cost.flops import flops_of
from tracekit.comparison.cost.traffic import bytes_of
from tracekit.comparison.matching.library import is_library
from tracekit.model.rates import NotedCall, Traffic
from tracekit.model.sequence import Activity, Operator


@dataclass(frozen=True, slots=True)
class Call:
    """One operator call and what it launched; an activity of no known call is one by itself."""

    activities: tuple[Activity, ...]

    @property
    def operator(self) -> Operator | None:
        return self.activities[0].operator

    @property
    def noted(self) -> NotedCall | None:
        return self.activities[0].noted

    @property
    def duration_us(self) -> float:
        return sum(each.duration_us for each in self.activities)

    @property
    def bytes(self) -> int | None:
        """Memory traffic as torch noted it, else as the recorded sizes say; None where neither does."""
        if self.noted and self.noted.bytes is not None:
            return self.noted.bytes
        return bytes_of(self.operator, self.noted.output if self.noted else None) if self.operator else None

    @property
    def flops(self) -> int | None:
        """Operations as torch noted them, else as the recorded sizes say; None where neither does."""
        if self.noted and self.noted.flops is not None:
            return self.noted.flops
        return flops_of(self.operator, self.noted.output if self.noted else None) if self.operator else None


def find_calls(activities: Sequence[Activity]) -> dict[int, Call]:
    """Each operator call once, however many kernels it launched, by the position of its main one: the library kernel,
    else the longest. In the order of their first activities."""
    found: list[list[int]] = []
    open_: dict[int, list[int]] = {}
    for at, activity in enumerate(activities):
        own = open_.get(activity.operator_call) if activity.operator_call is not None else None
        # A step that was repeated begins with the very same activity again.
        if own is None or activities[own[0]] is activity:
            own = []
            found.append(own)
        own.append(at)
        if activity.operator_call is not None:
            open_[activity.operator_call] = own
    return {_main(activities, some): Call(tuple(activities[at] for at in some)) for some in found}


def _main(activities: Sequence[Activity], positions: Sequence[int]) -> int:
    return max(positions, key=lambda at: (is_library(activities[at]), activities[at].duration_us))


def traffic_of(eager: Iterable[Call], compiled: Iterable[Call]) -> Traffic:
    """Estimated traffic of eager calls, each with its own inputs and outputs, and of compiled ones."""
    before, after = ([call.bytes for call in calls] for calls in (eager, compiled))
    return Traffic(_known_sum(before), _known_sum(after), before.count(None), after.count(None))


def _known_sum(sizes: Sequence[int | None]) -> int | None:
    """None where none of several is known."""
    known = [size for size in sizes if size is not None]
    return sum(known) if known or not sizes else None
