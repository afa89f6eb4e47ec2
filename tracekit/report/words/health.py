"""What is to be known of a recording, in English: a sentence for each code of `analysis/health.py`, of its facts."""

from tracekit.model.analysis import HealthFinding
from tracekit.report.words.saying import Sentence, say

#: What dwarfs all others of its kind.
LONGEST = {"activity": "activity", "gap": "gap between activities"}


def health_sentence(finding: HealthFinding) -> str:
    """The finding in English."""
    facts = dict(finding.facts)
    where = "in the full trace: " if facts.pop("recording", None) == "rich" else ""
    return where + say(SENTENCES[finding.code], facts)


SENTENCES: dict[str, Sentence] = {
    "truncated": "the file is truncated: the rest is missing",
    "skipped_events": lambda reasons: (
        f"unreadable events skipped ({', '.join(f'{reason}: {number}' for reason, number in reasons.items())})"
    ),
    "compile_in_window": "torch.compile was compiling during this trace: times include compilation",
    "python_stacks_recorded": (
        "Python stacks (with_stack) slow the host by up to {host_slower_up_to}x: idle time is overstated"
    ),
    "unlinked_kernels": "kernels without a recorded launch: idle before them is unattributed",
    "ambiguous_correlations": (
        "several host calls share a correlation id (merged processes?): each GPU activity is linked to the last such"
        " call before it"
    ),
    "unnamed_device": "GPU activities without a device: counted for GPU 0",
    "no_gpu_activity": lambda host_calls: (
        "no GPU activity, but host calls to the GPU: CUPTI permission is missing, or the profiler stopped first"
        if host_calls
        else "no GPU activity: ProfilerActivity.CUDA was not set, or there is no GPU"
    ),
    "several_processes": lambda shared_gpus: (
        f"several processes launched work on {', '.join(f'GPU {device}' for device in shared_gpus)}: if these are"
        " merged ranks, figures mix their GPUs; analyze the trace of each rank separately"
        if shared_gpus
        else "several processes (merged ranks?): figures are sums over their GPUs, and all their steps count"
    ),
    "coarse_times": (
        "timestamps are exact to {exact_to_us:g} us only (fractions, counted from 1970): short gaps and overlaps are"
        " unreliable"
    ),
    "implausible_times": lambda longest, longest_us, times_the_next: (
        f"one {LONGEST[longest]} of {longest_us:,.0f} us is {times_the_next:,.0f}x as long as the next: if the clock is"
        " broken, so are busy and idle time"
    ),
    "clock_disorder": (
        "GPU activities begin up to {early_by_up_to_us:,.1f} us before their launch: host and GPU clocks disagree, and"
        " idle causes may be wrong"
    ),
    "unlinkable_launches": ("no correlation ids: launches count as 0, and kernels belong to steps by their own start"),
    "launches_without_kernels": lambda in_the_middle: (
        f"launches without kernels, {in_the_middle:,} of them mid-trace: profiler buffers were full, or it stopped"
        " before the GPU was done (synchronise first); counts and busy time are too low"
        if in_the_middle
        else "launches without kernels at the start: the profiler was not recording the GPU yet"
    ),
    "slow_first_step": (
        "the first step took {times_the_others:.1f}x as long as the others (profiler start, warm-up); --steps leaves it"
        " out"
    ),
    "duplicated_events": "duplicated GPU activities: kernel counts and sums are doubled, busy time is not",
    "overlapping_kernels": (
        "activities of one stream overlap by up to {overlap_up_to_us:,.1f} us without programmatic dependent launch:"
        " their times are unreliable; busy time counts overlaps once"
    ),
    "whole_trace": lambda spans: (
        "the whole trace is analyzed: figures are totals, not per step"
        + (f"; --window takes the name of a span ({', '.join(spans)}) or a regular expression" if spans else "")
    ),
    "empty_steps": "{empty_steps:,} of {steps:,} steps have no GPU work: figures per step include them",
    "ambiguous_steps": (
        "GPU activities launched on another thread fall into spans of several threads: each counts for the span that"
        " began last"
    ),
    "overlapping_steps": (
        "steps overlap on the GPU by {overlap_us:,.1f} us: the list of steps counts that in each, all other figures"
        " once"
    ),
    "work_from_outside": (
        "for {outside_us:,.1f} us of the window only work launched outside of it ran: that is in busy time, but in no"
        " kernel"
    ),
}
