"""How kernels of the two sides were matched, and how sure that is."""

from collections.abc import Mapping
from typing import Literal

from tracekit.model.note import Note, Noted
from tracekit.model.sequence import MOST_ACTIVITIES
from tracekit.numbers import counted, percent

#: Why provenance is of no use to a comparison: it leads between other forms than an eager and a compiled one, the sides
#: are of two runs, or the steps of a side do not all run the same kernels.
NoProvenance = Literal["other_forms", "two_runs", "steps_differ"]
NO_PROVENANCE: dict[NoProvenance, str] = {
    "other_forms": "it maps eager to compiled",
    "two_runs": "the sides are of two runs",
    "steps_differ": "the steps of a side run different kernels and have no known boundaries",
}


class NoOperators(Note):
    code = "no_operators"
    subject: str
    says = (
        "{subject} has no operators for most kernels (CUDA graphs, or only CUDA activity recorded): they are"
        " matched by name, which can mix up sizes. --ops TRACE takes operators from a trace without CUDA graphs."
    )


class NoShapes(Note):
    code = "no_shapes"
    subject: str
    says = "{subject} has no shapes (record_shapes): kernels are matched by name and order, which can mix up sizes."


class TooManyToMatch(Note):
    code = "too_many_to_match"
    subject: str
    operators: int | None  #: Of a CPU run; None: kernels and copies of a GPU.
    activities: int | None

    def long(self) -> str:
        count, most = self.operators or self.activities or 0, f"{MOST_ACTIVITIES:,}"
        none = "no groups, modules or timeline" if self.operators else "groups by name, no modules or timeline"
        what = "operators" if self.operators else "kernels and copies"
        return f"{self.subject} has {count:,} {what}, too many to match (over {most}): {none}. --steps reads fewer."


class LittleMatched(Note):
    code = "little_matched"
    matched_shares: Mapping[str, float]  #: By side, `A` or `B`.

    def long(self) -> str:
        return (
            f"Only {of_times(self.matched_shares)} was matched: check that both sides run the same model at the same"
            " sizes."
        )


class MatchedByElimination(Note):
    code = "matched_by_elimination"
    shares: Mapping[str, float]  #: By side, `A` or `B`.
    no_provenance: NoProvenance | None
    advise_profile: bool

    def long(self) -> str:
        told = f"{of_times(self.shares)} is matched by elimination only: kernel pairs there are uncertain."
        if self.no_provenance:
            return f"{told} Provenance does not apply: {NO_PROVENANCE[self.no_provenance]}."
        return f"{told} `tracekit profile` records provenance." if self.advise_profile else told


def of_times(shares: Mapping[str, float]) -> str:
    return " and ".join(f"{percent(share, 0)} of {letter}'s GPU time" for letter, share in shares.items())


class ProvenanceUnused(Note):
    code = "provenance_unused"
    usual_severity = "info"
    why: NoProvenance

    def long(self) -> str:
        because = NO_PROVENANCE[self.why]
        return f"Kernels are matched by operators, shapes and order, without provenance: {because}."


class ProvenanceNoted(Note):
    """What was noted while the run was asked, as its folder holds it."""

    code = "provenance_noted"
    noted: Noted

    def long(self) -> str:
        return self.noted.long()


class ProvenanceWithoutWork(Note):
    code = "provenance_without_work"
    says = "the provenance runs hold no GPU work"


class NotInProvenance(Note):
    code = "not_in_provenance"
    subject: str
    activities: int
    of_activities: int
    says = "{activities} of {of_activities} {subject} activities are not in the provenance run"


class OnlyInProvenance(Note):
    code = "only_in_provenance"
    subject: str
    activities: int
    says = "{activities} {subject} activities of the provenance run are not in the trace"


class AmbiguousLaunchSites(Note):
    code = "ambiguous_launch_sites"
    groups: int

    def long(self) -> str:
        fits, includes = ("fits", "includes") if self.groups == 1 else ("fit", "include")
        return (
            f"{counted(self.groups, 'group')} of compiled activities {fits} several launch sites and {includes} all of"
            " them"
        )


class OperatorsLinkedByElimination(Note):
    code = "operators_linked_by_elimination"
    operators: int
    of_operators: int
    says = "{operators}/{of_operators} eager operators matched approximately"


class OperatorsOfOtherSizes(Note):
    code = "operators_of_other_sizes"
    operators: int

    def long(self) -> str:
        have = "operator has" if self.operators == 1 else "operators have"
        return f"{self.operators} {have} another output size than the linked work"


class OperatorsWithoutCounterpart(Note):
    code = "operators_without_counterpart"
    operators: int

    def long(self) -> str:
        operators, have = ("operator", "has") if self.operators == 1 else ("operators", "have")
        return f"{self.operators} eager {operators} in compiled modules {have} no counterpart in a graph"


class UnexplainedLaunchSites(Note):
    code = "unexplained_launch_sites"
    sites: int

    def long(self) -> str:
        have = "launch site has" if self.sites == 1 else "launch sites have"
        return f"{self.sites} {have} no known eager operator"
