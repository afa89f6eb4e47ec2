"""Why something was decided, or left open, and what that assumes, in English."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tracekit.numbers import duration, percent, size
from tracekit.report.words.saying import Sentence, say

if TYPE_CHECKING:
    from tracekit.model.comparison import Bound
    from tracekit.model.estimate import Statement

#: What makes an interval as wide as it is, and what narrows it.
DOUBTS = {
    "calls": "the spread of calls (--iterations narrows it)",
    "processes": "the spread of processes (--repeat-process narrows it)",
    "other_processes": "assumed process spread (--repeat-process 4 on both sides measures it)",
    "noise": "the noise floor (--iterations narrows it)",
    "noise_for_other_processes": "the noise floor, assumed for process spread (--repeat-process 4 on both sides"
    " measures it)",
    "other_jobs": "assumed spread between jobs of several ranks (allow more)",
    "least_change_of_jobs": "the smallest change that counts",
    "least_change": "the smallest change that counts (--repeat-process 4 halves it)",
    "recordings": "how GPU time differs between recordings (allow more, or limit kernels and launches, which are"
    " exact)",
    "one_recording": "assumed for a single recording (`tracekit profile` records twice)",
}
WINDOWS = {"steps": "its steps", "span": "a named span", "whole": "the whole trace"}


def _doubt(code: str, by_share: float | None = None, by_us: float | None = None) -> str:
    """`±2.0 % is the spread of calls (--iterations narrows it)`, in the limit's own terms."""
    return f"±{duration(by_us) if by_share is None else percent(by_share)} is {DOUBTS[code]}"


REASONS: dict[str, Sentence] = {
    "exact": "exact",
    "interval": "decided by the whole interval",
    "slight": "exceeded by less than the tolerance (docs/gate.md)",
    "allocator_slack": lambda slack_bytes: f"exceeded by no more than the allocator's slack, {size(slack_bytes)}",
    "holds_limit": lambda doubts: ": ".join(
        filter(None, ("the interval contains the limit", "; ".join(_doubt(**each) for each in doubts)))
    ),
    "within_floor": lambda **doubt: f"the limit lies within the doubt: {_doubt(**doubt)}",
    "processes_would_do": lambda processes: (
        f"{processes} processes a side would decide it if the time stays (--repeat-process {processes - 1})"
    ),
    "no_processes_would_do": "not even {most} processes a side would decide it: allow more",
    "no_share_of_0": "A is 0, so a percentage is undefined: limit the change or B's own figure",
    "not_measured": "not measured",
    "not_measured_on_both_sides": "not measured on both sides",
    "not_timed": "{side} was not timed",
    "too_few_calls": "fewer than {needed} calls of {side} (--iterations)",
    "too_few_calls_in_own_processes": "fewer than {needed} calls in the runs' own processes (--iterations)",
    "compiled_while_timed": "compilation inside timed calls",
    "windows_differ": lambda a, b: f"A covers {WINDOWS[a]}, B {WINDOWS[b]} (--window)",
    "whole_recordings": "traces without steps (mark them with torch.profiler's step(), or pass --window NAME)",
    "process_spread_assumed": "±{share:percent 0} per call is assumed for process spread (--repeat-process measures"
    " it)",
    "noise_for_process_spread": "±{share:percent 1} per call (the noise floor) is assumed for process spread"
    " (--repeat-process measures it)",
    "job_spread_assumed": "±{share:percent 1} per call is assumed for what differs from job to job",
    "one_job": "one job, without what differs from job to job",
    "one_process": "one process, without process spread (--repeat-process)",
    "one_process_of_a_side": "{side} has one process: the process spread of {other} is assumed",
    "whole_recording": "of the whole trace: no steps are marked",
    "compute_alone": "GPU busy without communication, which may be waiting for other ranks (`tracekit ranks`)",
    "rank_with_most": "rank {rank} has most",
    "ranks_not_joined": "the ranks' recordings have no GPU communication, or do not tell waiting from transfer",
    "unmatched": "{unmatched_share:percent 1} of GPU time is unmatched and may hide places",
    "mostly_matched": "all but {unmatched_share:percent 1} of GPU time is matched",
}


def reason_words(reasons: Iterable[Statement]) -> str | None:
    """`all of the interval; ±2 % per call is assumed ...`; None without any."""
    return "; ".join(say(REASONS[each.code], each.facts) for each in reasons) or None


OFF = "{place}: error {compiled:.2g} vs {reference}; eager {eager:.2g}"
INTEGERS = "{place}: {compiled_share:percent 1} of integers match {reference}; eager {eager_share:percent 1}"
ACCURACY: dict[str, Sentence] = {
    "equal": "Bitwise equal to eager",
    "same_without_finite_numbers": "{place} is equal to eager's, without finite numbers",
    "no_tensors": "The outputs hold no comparable tensors",
    "not_comparable": lambda place, mismatch, **_: f"{place} {mismatch.long()}",
    "not_held_against_reference": "{place} could not be compared with {reference}",
    "error": OFF + ", tolerance {allowed:.2g}",
    "largest_error": "{place}: largest error {compiled:.2g} vs {reference}; eager {eager:.2g}, tolerance {allowed:.2g}",
    "rounding_amplified": OFF + ": the model amplifies rounding",
    "no_numbers": "{place} holds no numbers",
    "no_finite_numbers": "{place} has no finite numbers to compare with {reference}",
    "zeros": "{place} is 0 in {reference}; error {compiled:.2g}, eager {eager:.2g}",
    "not_finite": "{place}: {more:,} more numbers are NaN or infinite than {beside}",
    "integers": INTEGERS,
    "integers_diverge": INTEGERS + ": one near-tie changes all that follow",
    "integers_beside_eager": "{place}: {share:percent 1} of integers match eager",
    "difference": "{place}: difference {compiled:.2g}, tolerance {allowed:.2g}",
    "random_numbers": lambda place, difference, another_seed, **_: (
        f"{place} differs from eager's as under another seed"
        + ("" if difference is None else f": {difference:.2g}, another seed {another_seed:.2g}")
    ),
}


def accuracy_because(code: str, facts: Mapping[str, Any]) -> str:
    """`The output: error 0.035 vs float32; eager 0.01, tolerance 0.034.`"""
    path, reference, own = facts.get("path"), facts.get("reference"), facts.get("compiled_from_itself")
    place, beside = f"Output {path}" if path else "The output", f"in {reference}" if reference else "eager"
    said = say(ACCURACY[code], {**facts, "place": place, "beside": beside})
    if own is not None:
        said += f", {own:.2g} between two calls"
    missing = facts.get("no_reference")
    return f"{said}. No reference: {missing.long()}." if missing else f"{said}."


#: What a part of the call is, after its share.
PARTS = {
    "sync": "GPU idle behind synchronising calls",
    "launch": "GPU idle, waiting for the host",
    "compile": "GPU idle during compilation",
    "device": "gaps between queued kernels",
    "unseen": "GPU idle, cause not recorded",
    "copy": "memory copies",
    "communication": "exposed communication, waiting for other ranks included",
    "memory": "memory-bound kernels (est.)",
    "compute": "compute-bound kernels (est.)",
    "small": "kernels too small to fill the GPU (est.)",
    "neither": "matmuls and convolutions below 5 % of either roofline (est.)",
}
UNKNOWN_BECAUSE = {
    "no_sizes_in_graphs": "no sizes in CUDA graphs; --ops takes those of another trace",
    "no_sizes": "no input sizes; record_shapes=True records them",
    "unknown_device": "device peak not known",
    "sizes_do_not_tell": "recorded sizes and types do not suffice",
}
#: From this share of the call on a second part, and work of unknown limit, is worth a word.
SECOND, UNKNOWN = 0.1, 0.02


def bound_because(bound: Bound) -> str:
    """`59 % of the call GPU idle, waiting for the host ...`, with what a bare trace leaves open."""
    said = [_shares(bound)]
    if bound.starved_share is not None and bound.kind == "launch-bound":
        said.append(f"{bound.starved_share * 100:.0f} % of launches hit an empty queue")
    if told := bound.if_slowed:
        as_recorded, slowed = (kind or "unknown" for kind in (told.as_recorded, told.slowed))
        overhead = f"at {told.times:g}x profiler overhead, the most measured"
        same = as_recorded == slowed
        said.append(f"The same {overhead}" if same else f"As profiled {as_recorded}, {slowed} {overhead}")
    return ". ".join(said)


def _shares(bound: Bound) -> str:
    """The two largest parts, the second if it is a tenth at least, and what cannot be told."""
    parts, whole_is = bound.parts_us, "call" if bound.basis == "unprofiled" else "trace"
    whole = math.fsum(parts.values())
    if not whole:
        return f"the {whole_is} has no time to divide"
    first, second = sorted(parts, key=lambda part: -parts[part])[:2]
    named = [part for part in (first, second) if part == first or parts[part] >= SECOND * whole]
    if "unknown" not in named and parts.get("unknown", 0.0) >= UNKNOWN * whole:
        named.append("unknown")
    shares = [f"{parts[part] / whole * 100:.0f} %" for part in named]
    shares[0] = f"{shares[0]} of the {whole_is}"
    why = f" ({UNKNOWN_BECAUSE[bound.unknown_because]})" if bound.unknown_because else ""
    told = PARTS | {"unknown": f"matmuls of unknown limit{why}"}
    return "; ".join(f"{share} {told[part]}" for share, part in zip(shares, named, strict=True))
