"""Conditions that a change must meet, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tracekit.model.bounded import doc
from tracekit.model.estimate import Statement

Metric = Literal["wall", "busy", "idle", "kernels", "launches", "memory", "recompiles", "breaks", "groups_lost"]
#: `relative`: a change as a share of the base; `change`: a change in the metric's unit; `value`: the new value itself.
LimitKind = Literal["relative", "change", "value"]
Outcome = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A limit that a metric must not exceed."""

    metric: Annotated[Metric, doc("What must not exceed the limit.")]
    kind: LimitKind
    limit: Annotated[float, doc("Microseconds, bytes or a number; a share for `relative` (0.03 is 3 %).")]
    text: Annotated[str, doc("As the user wrote it.")]


@dataclass(frozen=True, slots=True)
class Checked:
    """A condition and what came of it."""

    condition: Condition
    outcome: Outcome
    base: Annotated[float | None, doc("In the metric's unit; None where not measured.")]
    new: Annotated[float | None, doc("In the metric's unit; None where not measured.")]
    low: Annotated[float | None, doc("The least that what is limited may be, in the limit's terms; None if unknown.")]
    high: Annotated[float | None, doc("The most it may be: as `low` where there is no doubt.")]
    reasons: Annotated[tuple[Statement, ...], doc("Why, and what was assumed.")]


@dataclass(frozen=True, slots=True)
class Gate:
    """All conditions of one `--gate`. It fails if one fails, passes if all pass, and is inconclusive else."""

    checked: Annotated[tuple[Checked, ...], doc("The conditions one by one.")]
    taken_for: Annotated[Outcome | None, doc("What it was asked to end as when inconclusive.")] = None

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
