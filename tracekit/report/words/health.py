"""What is to be known of a recording, in English: a sentence for each code of `analysis/health.py`, of its facts."""

from tracekit.model.analysis import HealthFinding
from tracekit.report.words.saying import Sentence, say

#: What dwarfs all others of its kind.
LONGEST = {"activity": "activity", "gap": "gap between activities"}


def health_sentence(finding: HealthFinding) -> str:
    """The finding in English."""
    facts = dict(finding.facts)
    where = "in the rich recording: " if facts.pop("recording", None) == "rich" else ""
    return where + say(SENTENCES[finding.code], facts)


SENTENCES: dict[str, Sentence] = {
    "truncated": "the file ends before its JSON does: what could be read is analysed, the rest is missing",
    "skipped_events": lambda reasons: (
        "events that could not be read were left out"
        f" ({', '.join(f'{reason}: {number}' for reason, number in reasons.items())})"
    ),
    "compile_in_window": (
        "torch.compile was compiling while this was recorded: times are not those of compiled code alone"
    ),
    "python_stacks_recorded": (
        "Python stacks were recorded (with_stack), which slows the host up to {host_slower_up_to} times: idle time is"
        " overstated"
    ),
    "unlinked_kernels": "kernels whose launch was not recorded: their idle gaps are unattributed",
    "ambiguous_correlations": (
        "GPU activities name a correlation id that several host calls carry (merged processes?): each is joined to the"
        " last such call before it, which may be another's launch"
    ),
    "unnamed_device": "GPU activities do not say which GPU they ran on: they are counted for GPU 0",
    "no_gpu_activity": lambda host_calls: (
        "the host called the GPU and no GPU activity was recorded: the profiler was not allowed to see it (CUPTI"
        " permission), or ended before the work did"
        if host_calls
        else "no GPU activity was recorded: the profiler was run without ProfilerActivity.CUDA, or there is no GPU"
    ),
    "several_processes": lambda shared_gpus: (
        f"several processes launched the work of {', '.join(f'GPU {device}' for device in shared_gpus)}: if ranks were"
        " merged that each call their own GPU by that number, figures mix these GPUs; analyse each rank's trace by"
        " itself"
        if shared_gpus
        else "several processes call the GPU (ranks merged into one trace?): figures are sums over their GPUs, and"
        " steps of one count beside those of the others"
    ),
    "coarse_times": (
        "times are counted from 1970 and have fractions: they are exact to {exact_to_us:g} us only, so short gaps and"
        " overlaps are doubtful"
    ),
    "implausible_times": lambda longest, longest_us, times_the_next: (
        f"one {LONGEST[longest]} of {longest_us:,.0f} us is {times_the_next:,.0f} times as long as the next: if that is"
        " no measurement but a broken clock, busy and idle time are wrong"
    ),
    "clock_disorder": (
        "GPU activities begin before the call that launched them, by up to {early_by_up_to_us:,.1f} us: the clocks of"
        " host and GPU disagree, and so may idle causes"
    ),
    "unlinkable_launches": (
        "launch calls cannot be linked to kernels, for the trace has no correlation ids: launches are counted as 0, and"
        " kernels are placed in steps by their own start"
    ),
    "launches_without_kernels": lambda in_the_middle: (
        f"launches have no kernels, {in_the_middle:,} of them in the middle: the profiler's buffers were full, or the"
        " GPU had not finished when it stopped (synchronise before that); counts and busy time are too low"
        if in_the_middle
        else "launches at the beginning have no kernels: the profiler had not begun to record the GPU"
    ),
    "slow_first_step": (
        "the first step took {times_the_others:.1f} times as long as the others: it holds what happens once (the"
        " profiler's own start, warming up); --steps leaves it out"
    ),
    "duplicated_events": (
        "GPU activities are in the file twice: counts and sums of kernels hold them twice, busy time once"
    ),
    "overlapping_kernels": (
        "activities of one stream overlap by up to {overlap_up_to_us:,.1f} us and were not launched to (programmatic"
        " dependent launch): their times are doubtful; busy time counts what overlaps once"
    ),
    "whole_trace": lambda spans: (
        "the whole trace is analysed: figures are totals, not per step"
        + (f"; it has spans called {', '.join(spans)}: --window takes a name or a regular expression" if spans else "")
    ),
    "empty_steps": (
        "{empty_steps:,} of {steps:,} steps have no GPU work (nothing was launched in them, or nothing recorded):"
        " figures per step count them, and are lower than those of the other steps"
    ),
    "ambiguous_steps": (
        "GPU activities launched on another thread lie in spans of several threads at once: each is counted for the"
        " span that began last"
    ),
    "overlapping_steps": (
        "steps overlap on the GPU by {overlap_us:,.1f} us in all: the list of steps counts that time in each of them,"
        " all other figures count it once"
    ),
    "work_from_outside": (
        "for {outside_us:,.1f} us of the window nothing ran on the GPU but work launched outside of it: that is in"
        " its busy time, and among none of its kernels"
    ),
}
