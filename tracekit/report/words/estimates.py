"""Why something was decided, or left open, and what that assumes, in English."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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


def _holds_limit(doubts: list[Mapping[str, Any]]) -> str:
    said = "; ".join(_doubt(**each) for each in doubts)
    return "its interval holds the limit" + (f": {said}" if said else "")


def _doubt(code: str, by_share: float | None = None, by_us: float | None = None) -> str:
    """`±2.0 % is how calls differ (more calls narrow that: --iterations)`, in the limit's own terms."""
    return f"±{duration(by_us) if by_share is None else percent(by_share)} is {DOUBTS[code]}"


REASONS: dict[str, Sentence] = {
    "exact": "the figure is exact",
    "interval": "all of its interval says so",
    "slight": "the limit is exceeded by less than is held against anybody (docs/gate.md)",
    "holds_limit": _holds_limit,
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
