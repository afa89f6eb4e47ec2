"""What is to be known of a recording."""

from collections.abc import Mapping, Sequence
from typing import Literal

from tracekit.model.analysis import Health
from tracekit.model.statement import Severity


class Truncated(Health):
    code = "truncated"
    usual_severity = "error"
    recording: Literal["rich"] | None = None  #: Where it is the full trace beside the one that is read.

    def long(self) -> str:
        return f"{of_full_trace(self.recording)}the file is truncated: the rest is missing"


class SkippedEvents(Health):
    code = "skipped_events"
    usual_severity = "error"
    reasons: Mapping[str, int]
    recording: Literal["rich"] | None = None  #: Where it is the full trace beside the one that is read.

    def long(self) -> str:
        reasons = ", ".join(f"{reason}: {number}" for reason, number in self.reasons.items())
        return f"{of_full_trace(self.recording)}unreadable events skipped ({reasons})"


def of_full_trace(recording: Literal["rich"] | None) -> str:
    return "in the full trace: " if recording else ""


class CompileInWindow(Health):
    code = "compile_in_window"
    says = "torch.compile was compiling during this trace: times include compilation"


class PythonStacksRecorded(Health):
    code = "python_stacks_recorded"
    host_slower_up_to: float
    says = "Python stacks (with_stack) slow the host by up to {host_slower_up_to}x: idle time is overstated"


class UnlinkedKernels(Health):
    code = "unlinked_kernels"
    says = "kernels without a recorded launch: idle before them is unattributed"


class AmbiguousCorrelations(Health):
    code = "ambiguous_correlations"
    says = (
        "several host calls share a correlation id (merged processes?): each GPU activity is linked to the last"
        " such call before it"
    )


class UnnamedDevice(Health):
    code = "unnamed_device"
    says = "GPU activities without a device: counted for GPU 0"


class NoGpuActivity(Health):
    code = "no_gpu_activity"
    host_calls: int

    @property
    def severity(self) -> Severity:
        return "warning" if self.host_calls else "info"

    def long(self) -> str:
        if self.host_calls:
            return (
                "no GPU activity, but host calls to the GPU: CUPTI permission is missing, or the profiler stopped first"
            )
        return "no GPU activity: ProfilerActivity.CUDA was not set, or there is no GPU"


class SeveralProcesses(Health):
    code = "several_processes"
    shared_gpus: Sequence[int]

    @property
    def severity(self) -> Severity:
        return "warning" if self.shared_gpus else "info"

    def long(self) -> str:
        if not self.shared_gpus:
            return "several processes (merged ranks?): figures are sums over their GPUs, and all their steps count"
        gpus = ", ".join(f"GPU {device}" for device in self.shared_gpus)
        return (
            f"several processes launched work on {gpus}: if these are merged ranks, figures mix their GPUs; analyze the"
            " trace of each rank separately"
        )


class CoarseTimes(Health):
    code = "coarse_times"
    exact_to_us: float
    says = (
        "timestamps are exact to {exact_to_us:g} us only (fractions, counted from 1970): short gaps and"
        " overlaps are unreliable"
    )


class ImplausibleTimes(Health):
    code = "implausible_times"
    longest: Literal["activity", "gap"]
    longest_us: float
    times_the_next: float

    def long(self) -> str:
        what = "gap between activities" if self.longest == "gap" else self.longest
        return (
            f"one {what} of {self.longest_us:,.0f} us is {self.times_the_next:,.0f}x as long as the next: if the clock"
            " is broken, so are busy and idle time"
        )


class ClockDisorder(Health):
    code = "clock_disorder"
    early_by_up_to_us: float
    says = (
        "GPU activities begin up to {early_by_up_to_us:,.1f} us before their launch: host and GPU clocks"
        " disagree, and idle causes may be wrong"
    )


class UnlinkableLaunches(Health):
    code = "unlinkable_launches"
    says = "no correlation ids: launches count as 0, and kernels belong to steps by their own start"


class LaunchesWithoutKernels(Health):
    code = "launches_without_kernels"
    in_the_middle: int

    @property
    def severity(self) -> Severity:
        return "warning" if self.in_the_middle else "info"

    def long(self) -> str:
        if not self.in_the_middle:
            return "launches without kernels at the start: the profiler was not recording the GPU yet"
        return (
            f"launches without kernels, {self.in_the_middle:,} of them mid-trace: profiler buffers were full, or it"
            " stopped before the GPU was done (synchronise first); counts and busy time are too low"
        )


class SlowFirstStep(Health):
    code = "slow_first_step"
    times_the_others: float
    says = (
        "the first step took {times_the_others:.1f}x as long as the others (profiler start, warm-up); --steps"
        " leaves it out"
    )


class DuplicatedEvents(Health):
    code = "duplicated_events"
    says = "duplicated GPU activities: kernel counts and sums are doubled, busy time is not"


class OverlappingKernels(Health):
    code = "overlapping_kernels"
    overlap_up_to_us: float
    says = (
        "activities of one stream overlap by up to {overlap_up_to_us:,.1f} us without programmatic dependent"
        " launch: their times are unreliable; busy time counts overlaps once"
    )


class WholeTrace(Health):
    code = "whole_trace"
    usual_severity = "info"
    spans: Sequence[str]  #: A few that may be named.

    def long(self) -> str:
        told = "the whole trace is analyzed: figures are totals, not per step"
        if not self.spans:
            return told
        return f"{told}; --window takes the name of a span ({', '.join(self.spans)}) or a regular expression"


class EmptySteps(Health):
    code = "empty_steps"
    empty_steps: int
    steps: int
    says = "{empty_steps:,} of {steps:,} steps have no GPU work: figures per step include them"


class AmbiguousSteps(Health):
    code = "ambiguous_steps"
    says = (
        "GPU activities launched on another thread fall into spans of several threads: each counts for the span"
        " that began last"
    )


class OverlappingSteps(Health):
    code = "overlapping_steps"
    overlap_us: float
    says = (
        "steps overlap on the GPU by {overlap_us:,.1f} us: the list of steps counts that in each, all other"
        " figures once"
    )


class WorkFromOutside(Health):
    code = "work_from_outside"
    outside_us: float
    says = (
        "for {outside_us:,.1f} us of the window only work launched outside of it ran: that is in busy time,"
        " but in no kernel"
    )
