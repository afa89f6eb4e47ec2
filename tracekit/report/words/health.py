"""What is to be known of a recording, in English: a function for each code of `analysis/health.py`, of its facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from tracekit.model.analysis import HealthFinding

#: What dwarfs all others of its kind.
LONGEST = {"activity": "activity", "gap": "gap between activities"}


def health_sentence(finding: HealthFinding) -> str:
    """The finding in English."""
    facts = dict(finding.facts)
    where = "in the rich recording: " if facts.pop("recording", None) == "rich" else ""
    return where + SENTENCES[finding.code](**facts)


def truncated() -> str:
    return "the file ends before its JSON does: what could be read is analysed, the rest is missing"


def skipped_events(*, reasons: Mapping[str, int]) -> str:
    told = ", ".join(f"{reason}: {n}" for reason, n in reasons.items())
    return f"events that could not be read were left out ({told})"


def compile_in_window() -> str:
    return "torch.compile was compiling while this was recorded: times are not those of compiled code alone"


def python_stacks_recorded(*, host_slower_up_to: int) -> str:
    return (
        f"Python stacks were recorded (with_stack), which slows the host up to {host_slower_up_to} times: idle time is"
        " overstated"
    )


def unlinked_kernels() -> str:
    return "kernels whose launch was not recorded: their idle gaps are unattributed"


def ambiguous_correlations() -> str:
    return (
        "GPU activities name a correlation id that several host calls carry (merged processes?): each is joined to the"
        " last such call before it, which may be another's launch"
    )


def unnamed_device() -> str:
    return "GPU activities do not say which GPU they ran on: they are counted for GPU 0"


def no_gpu_activity(*, host_calls: int) -> str:
    if host_calls:
        return (
            "the host called the GPU and no GPU activity was recorded: the profiler was not allowed to see it (CUPTI"
            " permission), or ended before the work did"
        )
    return "no GPU activity was recorded: the profiler was run without ProfilerActivity.CUDA, or there is no GPU"


def several_processes(*, shared_gpus: Sequence[int]) -> str:
    if shared_gpus:
        named = ", ".join(f"GPU {device}" for device in shared_gpus)
        return (
            f"several processes launched the work of {named}: if ranks were merged that each call their own GPU by that"
            " number, figures mix these GPUs; analyse each rank's trace by itself"
        )
    return (
        "several processes call the GPU (ranks merged into one trace?): figures are sums over their GPUs, and steps of"
        " one count beside those of the others"
    )


def coarse_times(*, exact_to_us: float) -> str:
    return (
        f"times are counted from 1970 and have fractions: they are exact to {exact_to_us:g} us only, so short gaps and"
        " overlaps are doubtful"
    )


def implausible_times(*, longest: Literal["activity", "gap"], longest_us: float, times_the_next: float) -> str:
    return (
        f"one {LONGEST[longest]} of {longest_us:,.0f} us is {times_the_next:,.0f} times as long as the next: if that"
        " is no measurement but a broken clock, busy and idle time are wrong"
    )


def clock_disorder(*, early_by_up_to_us: float) -> str:
    return (
        f"GPU activities begin before the call that launched them, by up to {early_by_up_to_us:,.1f} us: the clocks of"
        " host and GPU disagree, and so may idle causes"
    )


def unlinkable_launches() -> str:
    return (
        "launch calls cannot be linked to kernels, for the trace has no correlation ids: launches are counted as 0, and"
        " kernels are placed in steps by their own start"
    )


def launches_without_kernels(*, in_the_middle: int) -> str:
    if not in_the_middle:
        return "launches at the beginning have no kernels: the profiler had not begun to record the GPU"
    return (
        f"launches have no kernels, {in_the_middle:,} of them in the middle: the profiler's buffers were full, or the"
        " GPU had not finished when it stopped (synchronise before that); counts and busy time are too low"
    )


def slow_first_step(*, times_the_others: float) -> str:
    return (
        f"the first step took {times_the_others:.1f} times as long as the others: it holds what happens once (the"
        " profiler's own start, warming up); --steps leaves it out"
    )


def duplicated_events() -> str:
    return "GPU activities are in the file twice: counts and sums of kernels hold them twice, busy time once"


def overlapping_kernels(*, overlap_up_to_us: float) -> str:
    return (
        f"activities of one stream overlap by up to {overlap_up_to_us:,.1f} us and were not launched to (programmatic"
        " dependent launch): their times are doubtful; busy time counts what overlaps once"
    )


def whole_trace(*, spans: Sequence[str]) -> str:
    told = "the whole trace is analysed: figures are totals, not per step"
    if not spans:
        return told
    return f"{told}; it has spans called {', '.join(spans)}: --window takes a name or a regular expression"


def empty_steps(*, empty_steps: int, steps: int) -> str:
    return (
        f"{empty_steps:,} of {steps:,} steps have no GPU work (nothing was launched in them, or nothing recorded):"
        " figures per step count them, and are lower than those of the other steps"
    )


def ambiguous_steps() -> str:
    return (
        "GPU activities launched on another thread lie in spans of several threads at once: each is counted for the"
        " span that began last"
    )


def overlapping_steps(*, overlap_us: float) -> str:
    return (
        f"steps overlap on the GPU by {overlap_us:,.1f} us in all: the list of steps counts that time in each of them,"
        " all other figures count it once"
    )


def work_from_outside(*, outside_us: float) -> str:
    return (
        f"for {outside_us:,.1f} us of the window nothing ran on the GPU but work launched outside of it: that is in"
        " its busy time, and among none of its kernels"
    )


SENTENCES: dict[str, Callable[..., str]] = {
    each.__name__: each
    for each in (
        truncated,
        skipped_events,
        compile_in_window,
        python_stacks_recorded,
        unlinked_kernels,
        ambiguous_correlations,
        unnamed_device,
        no_gpu_activity,
        several_processes,
        coarse_times,
        implausible_times,
        clock_disorder,
        unlinkable_launches,
        launches_without_kernels,
        slow_first_step,
        duplicated_events,
        overlapping_kernels,
        whole_trace,
        empty_steps,
        ambiguous_steps,
        overlapping_steps,
        work_from_outside,
    )
}
