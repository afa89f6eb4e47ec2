"""Conditions that a change must meet, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracekit.model.estimate import Statement

Metric = Literal["wall", "busy", "idle", "kernels", "launches", "memory", "recompiles", "breaks", "groups_lost"]
#: `relative`: a change as a share of the base; `change`: a change in the metric's unit; `value`: the new value itself.
LimitKind = Literal["relative", "change", "value"]
Outcome = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Condition:
    """`metric` must not exceed `limit`: microseconds for times, bytes for memory, else a number; a share for
    `relative` (0.03 is 3 %). `text` is how the user wrote it."""

    metric: Metric
    kind: LimitKind
    limit: float
    text: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A condition and what came of it. `base` and `new` are in the metric's unit, None where not measured; `low` and
    `high` bound what the condition limits, in the limit's own terms: equal where there is no doubt, None where nothing
    is known, and where a share of 0 is limited. `reasons` are why, and what was assumed."""

    condition: Condition
    outcome: Outcome
    base: float | None
    new: float | None
    low: float | None
    high: float | None
    reasons: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """All conditions of one `--gate`. It fails if one fails, passes if all pass, and is inconclusive else.
    `taken_for` is what it was asked to end as then (`--inconclusive`); None where that was not asked."""

    checked: tuple[Checked, ...]
    taken_for: Outcome | None = None

    @property
    def outcome(self) -> Outcome:
        outcomes = {each.outcome for each in self.checked}
        if "fail" in outcomes:
            return "fail"
        return "inconclusive" if "inconclusive" in outcomes else "pass"

    @property
    def ends_as(self) -> Outcome:
        """The outcome that the command ends with."""
        return (self.taken_for or "inconclusive") if self.outcome == "inconclusive" else self.outcome
