"""Why something was decided, or left open, and what that assumes, in English."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tracekit.model.estimate import Statement
from tracekit.numbers import duration, percent

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
TOO_FEW = "fewer than {} calls of {} count, which say nothing of the next (--iterations)"


def _open(facts: dict[str, Any]) -> str:
    doubts = "; ".join(map(_doubt, facts["doubts"]))
    return "its interval holds the limit" + (f": {doubts}" if doubts else "")


def _doubt(facts: dict[str, Any]) -> str:
    """`±2.0 % is how calls differ (more calls narrow that: --iterations)`, in the limit's own terms."""
    by = percent(facts["by_share"]) if "by_share" in facts else duration(facts["by_us"])
    return f"±{by} is {DOUBTS[facts['code']]}"


REASONS: dict[str, str | Callable[[dict[str, Any]], str]] = {
    "exact": "the figure is exact",
    "interval": "all of its interval says so",
    "slight": "the limit is exceeded by less than is held against anybody (docs/gate.md)",
    "holds_limit": _open,
    "within_floor": lambda facts: f"the limit is no further from the figure than {_doubt(facts)}",
    "no_share_of_0": "A has 0, and anything is more than any share of that: limit the change or B's own figure",
    "not_measured": "it was not measured",
    "not_measured_on_both_sides": "it was not measured on both sides",
    "not_timed": lambda facts: f"{facts['side']} was not timed",
    "too_few_calls": lambda facts: TOO_FEW.format(facts["needed"], facts["side"]),
    "too_few_calls_in_own_processes": lambda facts: TOO_FEW.format(facts["needed"], "the runs' own processes"),
    "compiled_while_timed": "something was compiled inside timed calls, so that times are not of compiled code alone",
    "windows_differ": lambda facts: (
        f"A was read over {WINDOWS[facts['a']]} and B over {WINDOWS[facts['b']]}, which do not mean the same (--window)"
    ),
    "whole_recordings": "the recordings mark no steps, and nobody knows how many each holds (--window NAME reads a span"
    " that is marked in both; torch.profiler's step() marks steps)",
    "process_spread_assumed": lambda facts: (
        f"±{percent(facts['share'], 0)} of a call are assumed for what differs from process to process, which"
        " --repeat-process measures"
    ),
    "noise_for_process_spread": lambda facts: (
        f"±{percent(facts['share'])} of a call, by which a form differs from itself, are taken for what differs from"
        " process to process, which --repeat-process measures"
    ),
    "one_process": "one process was timed, and what differs from process to process is not in it (--repeat-process)",
    "one_process_of_a_side": lambda facts: (
        f"{facts['side']} was timed in one process, which is assumed to differ from others as the processes of"
        f" {facts['other']} do"
    ),
    "whole_recording": "the recording marks no steps, so that this is of all of it",
    "unmatched": lambda facts: (
        f"nobody knows what became of {percent(facts['unmatched_share'])} of the GPU time, and places may hide there"
    ),
    "mostly_matched": lambda facts: f"all but {percent(facts['unmatched_share'])} of the GPU time was matched",
}


def reason_words(reasons: Iterable[Statement]) -> str | None:
    """`all of its interval says so; ±2 % of a call are assumed ...`; None without any."""
    said = [words(each.facts) if callable(words := REASONS[each.code]) else words for each in reasons]
    return "; ".join(said) or None
