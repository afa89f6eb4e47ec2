"""Conditions that a change must meet, and whether it did."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from tracekit.model.estimate import Reason, reason_words

#: Those of runs over several ranks alone.
RankMetric = Literal["exposed", "waiting"]
Metric = Literal[
    "wall", "busy", "idle", "kernels", "launches", "memory", "recompiles", "breaks", "groups_lost", RankMetric
]
#: `relative`: a change as a share of the base; `change`: a change in the metric's unit; `value`: the new value itself.
LimitKind = Literal["relative", "change", "value"]
Outcome = Literal["pass", "fail", "inconclusive"]


class Condition(Struct, frozen=True):
    """A limit that a metric must not exceed."""

    metric: Metric  #: What must not exceed the limit.
    kind: LimitKind
    limit: float  #: Microseconds, bytes or a number; a share for `relative` (0.03 is 3 %).
    text: str  #: As the user wrote it.


class Checked(Struct, frozen=True):
    """A condition and what came of it."""

    condition: Condition
    outcome: Outcome
    base: float | None  #: In the metric's unit; None where not measured.
    new: float | None  #: In the metric's unit; None where not measured.
    low: float | None  #: The least that what is limited may be, in the limit's terms; None if unknown.
    high: float | None  #: The most it may be: as `low` where there is no doubt.
    reasons: tuple[Reason, ...]  #: Why, and what was assumed.
    because: str | None = None  #: What the reasons say.

    def __post_init__(self) -> None:
        force_setattr(self, "because", reason_words(self.reasons))


class Gate(Struct, frozen=True):
    """All conditions of one `--gate`. It fails if one fails, passes if all pass, and is inconclusive else."""

    checked: tuple[Checked, ...]  #: The conditions one by one.
    taken_for: Outcome | None = None  #: What it was asked to end as when inconclusive.
    outcome: Outcome = "pass"  #: Of all conditions.
    ends_as: Outcome = "pass"  #: What the command ends with.

    def __post_init__(self) -> None:
        outcomes = {each.outcome for each in self.checked}
        outcome = next((each for each in ("fail", "inconclusive") if each in outcomes), "pass")
        force_setattr(self, "outcome", outcome)
        force_setattr(self, "ends_as", self.taken_for or outcome if outcome == "inconclusive" else outcome)
