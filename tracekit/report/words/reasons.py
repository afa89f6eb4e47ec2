"""Why something was decided, or left open, and what that assumes, in English."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tracekit.model.comparison import Bound
from tracekit.model.estimate import Statement
from tracekit.numbers import duration, percent
from tracekit.report.words.saying import Sentence, say

MORE_CALLS = "more calls narrow that: --iterations"
#: What makes an interval as wide as it is, and what narrows it.
DOUBTS = {
    "calls": f"how calls differ ({MORE_CALLS})",
    "processes": "how processes differ (more of them narrow that: --repeat-process)",
    "other_processes": "assumed for what differs from process to process (no number of calls narrows that,"
    " --repeat-process 4 on both sides measures it)",
    "noise": f"how far a form differs from itself ({MORE_CALLS})",
    "noise_for_other_processes": "how far a form differs from itself, taken for what differs from process to process"
    " (more calls narrow that to what is assumed of others at best, --repeat-process 4 on both sides measures"
    " it)",
    "least_change": "the least that the verdict calls a change (--repeat-process 4 halves that where no form changed"
    " its speed by itself)",
    "recordings": "how GPU time differs from recording to recording (no number of calls narrows that; allow more, or"
    " limit kernels and launches, which are exact)",
    "one_recording": "assumed for GPU time that was recorded once (no number of calls narrows that; a run of"
    " `tracekit profile` records twice)",
}
WINDOWS = {"steps": "its marked steps", "span": "a named span", "whole": "the whole recording"}
TOO_FEW = "calls of {} count, which say nothing of the next (--iterations)"


def _doubt(code: str, by_share: float | None = None, by_us: float | None = None) -> str:
    """`±2.0 % is how calls differ (more calls narrow that: --iterations)`, in the limit's own terms."""
    return f"±{duration(by_us) if by_share is None else percent(by_share)} is {DOUBTS[code]}"


REASONS: dict[str, Sentence] = {
    "exact": "the figure is exact",
    "interval": "all of its interval says so",
    "slight": "the limit is exceeded by less than is held against anybody (docs/gate.md)",
    "holds_limit": lambda doubts: ": ".join(
        filter(None, ("its interval holds the limit", "; ".join(_doubt(**each) for each in doubts)))
    ),
    "within_floor": lambda **doubt: f"the limit is no further from the figure than {_doubt(**doubt)}",
    "no_share_of_0": "A has 0, and anything is more than any share of that: limit the change or B's own figure",
    "not_measured": "it was not measured",
    "not_measured_on_both_sides": "it was not measured on both sides",
    "not_timed": "{side} was not timed",
    "too_few_calls": "fewer than {needed} " + TOO_FEW.format("{side}"),
    "too_few_calls_in_own_processes": "fewer than {needed} " + TOO_FEW.format("the runs' own processes"),
    "compiled_while_timed": "something was compiled inside timed calls, so that times are not of compiled code alone",
    "windows_differ": lambda a, b: (
        f"A was read over {WINDOWS[a]} and B over {WINDOWS[b]}, which do not mean the same (--window)"
    ),
    "whole_recordings": "the recordings mark no steps, and nobody knows how many each holds (--window NAME reads a span"
    " that is marked in both; torch.profiler's step() marks steps)",
    "process_spread_assumed": "±{share:percent 0} of a call are assumed for what differs from process to process, which"
    " --repeat-process measures",
    "noise_for_process_spread": "±{share:percent 1} of a call, by which a form differs from itself, are taken for what"
    " differs from process to process, which --repeat-process measures",
    "one_process": "one process was timed, and what differs from process to process is not in it (--repeat-process)",
    "one_process_of_a_side": "{side} was timed in one process, which is assumed to differ from others as the processes"
    " of {other} do",
    "whole_recording": "the recording marks no steps, so that this is of all of it",
    "unmatched": "nobody knows what became of {unmatched_share:percent 1} of the GPU time, and places may hide there",
    "mostly_matched": "all but {unmatched_share:percent 1} of the GPU time was matched",
}


def reason_words(reasons: Iterable[Statement]) -> str | None:
    """`all of its interval says so; ±2 % of a call are assumed ...`; None without any."""
    return "; ".join(say(REASONS[each.code], each.facts) for each in reasons) or None


OFF = "{place} is off by {compiled:.2g} compiled and {eager:.2g} eager, relative to {reference}"
INTEGERS = (
    "{place}: {compiled_share:percent 1} of the integers are {reference}'s compiled, {eager_share:percent 1} eager"
)
ACCURACY = {
    "equal": "Both forms return the same numbers, every one of them",
    "same_without_finite_numbers": "{place} is the same, but holds no finite number",
    "no_tensors": "The outputs hold no tensors that could be compared",
    "not_comparable": "{place} {problem}",
    "not_held_against_reference": "{place} could not be held against {reference} in either form",
    "error": OFF + "; {allowed:.2g} is allowed",
    "largest_error": "{place} has one number off by {compiled:.2g} compiled and at most {eager:.2g} eager, from"
    " {reference}; {allowed:.2g} is allowed",
    "rounding_amplified": OFF + ": the model amplifies rounding until it hides everything else",
    "no_numbers": "{place}: there is no number to measure an error by",
    "no_finite_numbers": "{place} holds no finite number to hold against {reference}",
    "zeros": "{place} is 0 in {reference}; compiled is off by up to {compiled:.2g}, eager by {eager:.2g}",
    "not_finite": "{place}: {more:,} more numbers are NaN or infinite on one side and not {beside}",
    "integers": INTEGERS,
    "integers_diverge": INTEGERS + ": one choice between near equals changes all that follow",
    "integers_beside_eager": "{place}: {share:percent 1} of the integers are eager's",
    "difference": "{place} differs by {compiled:.2g} between the forms; {allowed:.2g} is tolerated",
}


def accuracy_because(code: str, facts: Mapping[str, Any]) -> str:
    """`The output is off by 0.035 compiled and 0.01 eager, relative to float32; 0.034 is allowed.`"""
    path, reference, own = facts.get("path"), facts.get("reference"), facts.get("compiled_from_itself")
    place, beside = f"Output {path}" if path else "The output", f"in {reference}" if reference else "eager"
    said = say(ACCURACY[code], {**facts, "place": place, "beside": beside})
    if own is not None:
        said += f", and compiled differs from itself by {own:.2g} from call to call"
    return f"{said}. No reference: {facts['no_reference']}." if facts.get("no_reference") else f"{said}."


#: What a part of the call is, as a sentence goes on after its share.
PARTS = {
    "sync": "the GPU had nothing to do because the host had waited for it (synchronising calls)",
    "launch": "the GPU had nothing to do because the host had not launched the next work yet",
    "compile": "the GPU had nothing to do while code was compiled",
    "device": "the GPU paused between pieces of work that had been launched",
    "unseen": "the GPU had nothing to do for a reason that no recording shows",
    "copy": "the GPU copied memory",
    "memory": "the GPU ran kernels that are limited by memory (estimate)",
    "compute": "the GPU ran kernels that are limited by arithmetic (estimate)",
    "neither": (
        "the GPU ran products or convolutions in kernels that reach less than a twentieth of either limit (estimate)"
    ),
}
UNKNOWN_BECAUSE = {
    "no_sizes_in_graphs": "kernels of CUDA graphs are recorded without sizes; --ops lends those of another trace",
    "no_sizes": "the sizes of their inputs were not recorded; record_shapes=True records them",
    "unknown_device": "what this device can do at most is not known here",
    "sizes_do_not_tell": "the recorded sizes and types do not tell it",
}
#: From this share of the call on a second part, and work of unknown limit, is worth a word.
SECOND, UNKNOWN = 0.1, 0.02


def bound_because(bound: Bound) -> str:
    """`in 59 % of the call the GPU had nothing to do ...`, with what a bare recording leaves open."""
    said = [_shares(bound)]
    if bound.starved_share is not None and bound.kind == "launch-bound":
        starved = f"{bound.starved_share * 100:.0f} %"
        said.append(f"At {starved} of the launches, as recorded, the GPU had run out of work")
    if told := bound.if_slowed:
        as_recorded, slowed = (kind or "of unknown limit" for kind in (told.as_recorded, told.slowed))
        longer = f"recording made the call {told.times:g} times as long, the most that was ever measured"
        only = "only times without the profiler can tell"
        said.append(
            f"Even if {longer}, the answer is the same"
            if as_recorded == slowed
            else f"As recorded it is {as_recorded}; if {longer}, it is {slowed}: {only}"
        )
    return ". ".join(said)


def _shares(bound: Bound) -> str:
    """The two largest parts, the second if it is a tenth at least, and what cannot be told."""
    parts, whole_is = bound.parts_us, "call" if bound.basis == "unprofiled" else "recording"
    whole = math.fsum(parts.values())
    if not whole:
        return f"nothing was seen in the {whole_is}"
    first, second = sorted(parts, key=lambda part: -parts[part])[:2]
    named = [part for part in (first, second) if part == first or parts[part] >= SECOND * whole]
    if "unknown" not in named and parts.get("unknown", 0.0) >= UNKNOWN * whole:
        named.append("unknown")
    shares = [f"{parts[part] / whole * 100:.0f} %" for part in named]
    shares[0] = f"{shares[0]} of the {whole_is}"
    why = f" ({UNKNOWN_BECAUSE[bound.unknown_because]})" if bound.unknown_because else ""
    told = PARTS | {"unknown": f"the GPU ran products of unknown limit{why}"}
    return "; ".join(f"in {share} {told[part]}" for share, part in zip(shares, named, strict=True))
