"""What some ranks of a job did and others did not, as the run of each notes it."""

from typing import Any, Literal

from tracekit.errors import TracekitError
from tracekit.model.bounded import Count, Real, Text, Whole
from tracekit.model.note import Noted


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
    """Outputs that are less like eager's than those of the rank that is most like it; with the reason's facts."""

    code = "rank_outputs"
    result: Literal["less_accurate", "undecided"]
    basis: Literal["reference", "tolerance", "bits"]
    reason: Text
    path: Text | None = None
    reference: Text | None = None
    compiled: Real | None = None
    eager: Real | None = None
    allowed: Real | None = None
    compiled_from_itself: Real | None = None
    compiled_share: Real | None = None
    eager_share: Real | None = None
    share: Real | None = None
    more: Whole | None = None
    mismatch: Noted | None = None
    no_reference: Noted | None = None

    def __post_init__(self) -> None:
        if not {*NEEDED.get(self.reason, ("reason?",))} <= self.of_reason.keys():
            raise ValueError(f"these are no facts of the reason {self.reason}")

    @property
    def facts(self) -> dict[str, Any]:
        return super().facts | ({"reference": None} if self._is_beside_eager else {})

    @property
    def of_reason(self) -> dict[str, Any]:
        """The reason's own facts."""
        own = {name: value for name, value in vars(self).items() if name not in ("result", "basis", "reason")}
        told = {name: value for name, value in own.items() if value is not None}
        return told | ({"reference": None} if self._is_beside_eager else {})

    @property
    def _is_beside_eager(self) -> bool:
        """Whether numbers are counted beside those of eager code, which is no reference."""
        return self.reason == "not_finite" and self.reference is None


ERROR = ("path", "compiled", "reference", "eager")
SHARES = ("path", "compiled_share", "eager_share", "reference")
#: Without which a reason cannot be said.
NEEDED: dict[str, tuple[str, ...]] = {
    "same_without_finite_numbers": ("path",),
    "no_tensors": (),
    "not_comparable": ("path", "mismatch"),
    "not_held_against_reference": ("path", "reference"),
    "error": (*ERROR, "allowed"),
    "largest_error": (*ERROR, "allowed"),
    "rounding_amplified": (*ERROR, "allowed"),
    "no_finite_numbers": ("path", "reference"),
    "zeros": ERROR,
    "not_finite": ("path", "more", "reference"),
    "integers": SHARES,
    "integers_diverge": SHARES,
    "integers_beside_eager": ("path", "share"),
    "difference": ("path", "compiled", "allowed"),
}
