"""Notes on how certain the matching of kernels is, and on the provenance that it rests on."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit.numbers import percent
from tracekit.report.words.saying import Sentence

#: Why provenance is of no use to a comparison.
NO_PROVENANCE = {
    "other_forms": "it leads from an eager form to a compiled one",
    "two_runs": "the sides are of two runs",
    "steps_differ": "the steps of a side do not all run the same kernels, and where each begins is not known",
}


def little_matched(*, matched_shares: Mapping[str, float]) -> str:
    return f"Only {_of_times(matched_shares)} could be matched: are both sides the same model, at the same sizes?"


def matched_by_elimination(*, shares: Mapping[str, float], no_provenance: str | None, advise_profile: bool) -> str:
    told = (
        f"{_of_times(shares)} could only be matched by elimination, not kernel by kernel: which kernel became which is"
        " doubtful there."
    )
    if no_provenance:
        return f"{told} Provenance cannot tell it: {NO_PROVENANCE[no_provenance]}."
    return f"{told} A run of `tracekit profile` asks torch instead." if advise_profile else told


def _of_times(shares: Mapping[str, float]) -> str:
    return " and ".join(f"{percent(share, 0)} of {letter}'s GPU time" for letter, share in shares.items())


def provenance_unused(*, why: str) -> str:
    return f"Kernels are matched by operators, shapes and order, not by provenance: {NO_PROVENANCE[why]}."


def operators_linked_by_elimination(*, operators: int, of_operators: int) -> str:
    were = "was" if operators == 1 else "were"
    return f"{operators} of {of_operators} eager operators {were} linked to launches by elimination, not one by one"


def operators_of_other_sizes(*, operators: int) -> str:
    have = "operator has" if operators == 1 else "operators have"
    return f"{operators} {have} an output of another size than the work linked to it"


def operators_without_counterpart(*, operators: int) -> str:
    words, have = ("operator", "has") if operators == 1 else ("operators", "have")
    return f"{operators} eager {words} inside compiled modules {have} no counterpart in a graph"


def unexplained_launch_sites(*, sites: int) -> str:
    stand = "launch site stands" if sites == 1 else "launch sites stand"
    return f"{sites} {stand} for no eager operator that is known"


SENTENCES: dict[str, Sentence] = {
    "no_operators": (
        "{subject} holds no operators for most of its kernels (CUDA graphs, or CUDA activity alone): they are"
        " matched by their names, which can mix up work of different sizes; --ops TRACE lends the operators of a"
        " recording of the same model without CUDA graphs."
    ),
    "no_shapes": (
        "{subject} was recorded without shapes (record_shapes): its kernels are matched by names and order,"
        " which can mix up work of different sizes."
    ),
    "little_matched": little_matched,
    "matched_by_elimination": matched_by_elimination,
    "provenance_unused": provenance_unused,
    # What was noted while the run was asked, as its folder holds it.
    "provenance_noted": "{message}",
    "provenance_without_work": "the runs that were asked where work comes from hold no GPU work",
    "not_in_provenance": (
        "{activities} of {of_activities} {subject} activities are not in the run that was asked where they come from"
    ),
    "only_in_provenance": (
        "{activities} {subject} activities of the run that was asked where they come from are not in the recording"
    ),
    "ambiguous_launch_sites": (
        "{groups:counted group} of compiled activities could be of several launch sites: each is one with them"
    ),
    "operators_linked_by_elimination": operators_linked_by_elimination,
    "operators_of_other_sizes": operators_of_other_sizes,
    "operators_without_counterpart": operators_without_counterpart,
    "unexplained_launch_sites": unexplained_launch_sites,
}
