"""What some ranks of a job did and others did not, as the run of each notes it."""

from typing import Literal

from tracekit.errors import TracekitError
from tracekit.model.bounded import Count, Text
from tracekit.model.note import Noted
from tracekit.model.numerics import AccuracyReason


class RankDifference(Noted):
    """What one rank did and not all ranks did. A note of a comparison says it of all ranks that did the same."""

    def long(self) -> str:
        raise TracekitError(f'a note "{self.code}" of the run cannot be read; record the run again')


class RankRecompiled(RankDifference):
    """A function that the rank compiled again more often than the rank that did so least."""

    code = "rank_recompiled"
    function: Text | None
    where: Text | None
    times: Count
    least: Count
    timed: Count
    guard: Text


class RankBroke(RankDifference):
    """A line at which its graph breaks."""

    code = "rank_broke"
    where: Text | None
    function: Text | None
    reason: Text


class RankRanEager(RankDifference):
    """A function that it ran eager."""

    code = "rank_ran_eager"
    where: Text | None
    function: Text | None
    reason: Text


class RankMemory(RankDifference):
    """More memory than the rank that holds least."""

    code = "rank_memory"
    usual_severity = "info"
    peak_bytes: Count
    least_bytes: Count


class RankOutputs(RankDifference):
    """Outputs that are less like eager's than those of the rank that is most like it. Files have the reason's code as
    `reason`, and its facts beside it."""

    code = "rank_outputs"
    result: Literal["less_accurate", "undecided"]
    basis: Literal["reference", "tolerance", "bits"]
    reason: AccuracyReason

    @property
    def facts(self) -> dict[str, object]:
        return {"result": self.result, "basis": self.basis, "reason": self.reason.code, **self.reason.facts}

    @classmethod
    def as_held(cls, facts: dict[str, object]) -> dict[str, object]:
        judged = {name: value for name, value in facts.items() if name in ("result", "basis")}
        return judged | {"reason": {"code": facts.get("reason"), "facts": facts}}
