"""A figure, how far it is known, and whether two of them differ: one rule for every judgement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from tracekit.model import statement

#: What the interval of an estimate comes from: nothing, for what is counted, or what is seen to differ.
EstimateBasis = Literal["exact", "calls", "processes", "recordings", "matching"]
Order = Literal["larger", "smaller"]


#: What a part of an interval comes from.
DoubtCode = Literal[
    "calls",
    "processes",
    "other_processes",
    "noise",
    "noise_for_other_processes",
    "other_jobs",
    "least_change_of_jobs",
    "least_change",
    "recordings",
    "one_recording",
]


class Reason(statement.Statement):
    """Why something was decided, or what it assumes."""

    as_written = statement.Written


def reason_words(reasons: Iterable[Reason]) -> str | None:
    """`decided by the whole interval; ±2 % per call is assumed ...`; None without any."""
    return "; ".join(each.long() for each in reasons) or None


class Doubt(Struct, frozen=True):
    """A part of an interval: what it comes from, and by how much it reaches either way, in the figure's unit."""

    code: DoubtCode
    by: float


class Estimate(Struct, frozen=True):
    """A figure and its 95 % interval, `low` to `high`, both ends at `value` where it is exact.

    `doubts` are the parts of the interval, `assumptions` what of it was not measured. Where a `floor` is set, a smaller
    difference than that from `value`, in its unit, counts as none, however narrow the interval is.
    """

    value: float
    low: float
    high: float
    basis: EstimateBasis = "exact"
    floor: Doubt | None = None
    doubts: tuple[Doubt, ...] = ()
    assumptions: tuple[Reason, ...] = ()

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval, as far as the floor at least; nothing that has a floor is below 0."""
        if self.floor is None:
            return self.low, self.high
        return max(min(self.low, self.value - self.floor.by), 0.0), max(self.high, self.value + self.floor.by)

    def widened(self, doubt: Doubt) -> Estimate:
        """With one more doubt about it; times and sizes are never below 0."""
        low, high = max(self.low - doubt.by, 0.0), self.high + doubt.by
        return replace(self, low=low, high=high, doubts=(*self.doubts, doubt))


def exactly(value: float) -> Estimate:
    """A figure without doubt."""
    return Estimate(value, value, value)


def compare_estimates(one: Estimate, other: Estimate, least: float = 0.0) -> Order | None:
    """Whether `one` is larger or smaller than `other`; None where that is open.

    The rule of every judgement: the intervals leave one another out, and the larger figure is beyond the smaller one by
    more than `least`, a share of it (0.02 is 2 %).
    """
    (one_low, one_high), (other_low, other_high) = one.bounds, other.bounds
    if one_low > other_high and one.value > other.value * (1 + least):
        return "larger"
    if one_high < other_low and other.value > one.value * (1 + least):
        return "smaller"
    return None


class SeparateRunsChange(Struct, frozen=True):
    """How two sides that were timed in separate runs compare."""

    ratio: float  #: How many times as long as A's call B's takes.
    low: float  #: The least it may be, if nothing but the sides differed between the runs.
    high: float  #: The most it may be.
    assumptions: tuple[Reason, ...]  #: What of that was not measured.
    beyond: bool  #: Beyond all of that, and what a gate holds against anybody (docs/gate.md).
    assumed: str | None = None  #: What the assumptions say; None without any.

    def __post_init__(self) -> None:
        force_setattr(self, "assumed", reason_words(self.assumptions))
