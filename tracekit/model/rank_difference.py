"""What a run says that some ranks of a job did and others did not: the facts of each, by its code."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tracekit.errors import TracekitError
from tracekit.model.bounded import Count, Real, Text, Whole
from tracekit.model.note import Noted

#: The fact that a rank's outputs are worse, and what of it is no fact of the reason.
OUTPUTS, JUDGED = "rank_outputs", ("result", "basis", "reason")


class Recompiled(Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the rank compiled again more often than the rank that did so least."""

    function: Text | None
    where: Text | None
    times: Count
    least: Count
    timed: Count
    guard: Text


class LeftGraph(Struct, frozen=True, forbid_unknown_fields=True):
    """A line at which its graph breaks, or a function that it ran eager."""

    where: Text | None
    function: Text | None
    reason: Text


class HeldMemory(Struct, frozen=True, forbid_unknown_fields=True):
    """More memory than the rank that holds least."""

    peak_bytes: Count
    least_bytes: Count


class WorseOutputs(Struct, frozen=True, forbid_unknown_fields=True):
    """Outputs that are less like eager's than those of the rank that is most like it; with the reason's facts."""

    result: Literal["less_accurate", "undecided"]
    basis: Literal["reference", "tolerance", "bits"]
    reason: Text
    path: Text | UnsetType = UNSET
    reference: Text | UnsetType | None = UNSET
    compiled: Real | UnsetType = UNSET
    eager: Real | UnsetType = UNSET
    allowed: Real | UnsetType = UNSET
    compiled_from_itself: Real | UnsetType = UNSET
    compiled_share: Real | UnsetType = UNSET
    eager_share: Real | UnsetType = UNSET
    share: Real | UnsetType = UNSET
    more: Whole | UnsetType = UNSET
    mismatch: Noted | UnsetType = UNSET
    no_reference: Noted | UnsetType = UNSET


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
FACTS: dict[str, type[Struct]] = {
    "rank_recompiled": Recompiled,
    "rank_broke": LeftGraph,
    "rank_ran_eager": LeftGraph,
    "rank_memory": HeldMemory,
    OUTPUTS: WorseOutputs,
}


def facts_of(difference: Noted) -> dict[str, Any]:
    """Its facts, as `FACTS` has them. Raises TracekitError for what no rank's run says."""
    try:
        told = msgspec.structs.asdict(msgspec.convert(difference.facts, FACTS[difference.code]))
    except (KeyError, msgspec.ValidationError):
        raise _unreadable(difference) from None
    facts = {name: value for name, value in told.items() if value is not UNSET}
    if difference.code == OUTPUTS and not {*NEEDED.get(facts["reason"], ("?",))} <= facts.keys():
        raise _unreadable(difference)
    return facts


def _unreadable(difference: Noted) -> TracekitError:
    return TracekitError(f'a note "{difference.code[:60]}" on a rank of the run cannot be read; record the run again')
