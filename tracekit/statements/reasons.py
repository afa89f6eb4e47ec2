"""Why something was decided, or left open, and what that assumes."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from tracekit.model.analysis import WindowKind
from tracekit.model.estimate import DoubtCode, Reason
from tracekit.model.statement import builtins_of
from tracekit.numbers import duration, percent, size

#: What makes an interval as wide as it is, and what narrows it.
DOUBTS: Mapping[DoubtCode, str] = {
    "calls": "the spread of calls (--iterations narrows it)",
    "processes": "the spread of processes (--repeat-process narrows it)",
    "other_processes": "assumed process spread (--repeat-process 4 on both sides measures it)",
    "noise": "the noise floor (--iterations narrows it)",
    "noise_for_other_processes": (
        "the noise floor, assumed for process spread (--repeat-process 4 on both sides measures it)"
    ),
    "other_jobs": "assumed spread between jobs of several ranks (allow more)",
    "least_change_of_jobs": "the smallest change that counts",
    "least_change": "the smallest change that counts (--repeat-process 4 halves it)",
    "recordings": (
        "how GPU time differs between recordings (allow more, or limit kernels and launches, which are exact)"
    ),
    "one_recording": "assumed for a single recording (`tracekit profile` records twice)",
}
WINDOWS: Mapping[WindowKind, str] = {"steps": "its steps", "span": "a named span", "whole": "the whole trace"}


class DoubtOfLimit(Struct, frozen=True, omit_defaults=True):
    """A doubt in the terms of the limit that is held against the figure: a share, or a time."""

    code: DoubtCode
    by_share: float | None = None
    by_us: float | None = None

    def long(self) -> str:
        """`±2.0 % is the spread of calls (--iterations narrows it)`."""
        by = duration(self.by_us) if self.by_share is None else percent(self.by_share)
        return f"±{by} is {DOUBTS[self.code]}"


class Exact(Reason):
    code = "exact"
    says = "exact"


class WholeInterval(Reason):
    code = "interval"
    says = "decided by the whole interval"


class Slight(Reason):
    code = "slight"
    says = "exceeded by less than the tolerance (docs/gate.md)"


class AllocatorSlack(Reason):
    code = "allocator_slack"
    slack_bytes: float

    def long(self) -> str:
        return f"exceeded by no more than the allocator's slack, {size(self.slack_bytes)}"


class HoldsLimit(Reason):
    code = "holds_limit"
    doubts: Sequence[DoubtOfLimit]  #: The largest first.

    def long(self) -> str:
        told = "the interval contains the limit"
        return f"{told}: {'; '.join(each.long() for each in self.doubts)}" if self.doubts else told


class WithinFloor(Reason):
    code = "within_floor"
    doubt: DoubtOfLimit

    @property
    def facts(self) -> dict[str, object]:
        facts: dict[str, Any] = builtins_of(self.doubt)
        return facts

    def long(self) -> str:
        return f"the limit lies within the doubt: {self.doubt.long()}"


class ProcessesWouldDo(Reason):
    code = "processes_would_do"
    processes: int

    def long(self) -> str:
        return (
            f"{self.processes} processes a side would decide it if the time stays"
            f" (--repeat-process {self.processes - 1})"
        )


class NoProcessesWouldDo(Reason):
    code = "no_processes_would_do"
    most: int
    says = "not even {most} processes a side would decide it: allow more"


class NoShareOf0(Reason):
    code = "no_share_of_0"
    says = "A is 0, so a percentage is undefined: limit the change or B's own figure"


class NotMeasured(Reason):
    code = "not_measured"
    says = "not measured"


class NotMeasuredOnBothSides(Reason):
    code = "not_measured_on_both_sides"
    says = "not measured on both sides"


class NotTimed(Reason):
    code = "not_timed"
    side: str
    says = "{side} was not timed"


class TooFewCalls(Reason):
    code = "too_few_calls"
    side: str
    needed: int
    says = "fewer than {needed} calls of {side} (--iterations)"


class TooFewCallsInOwnProcesses(Reason):
    code = "too_few_calls_in_own_processes"
    needed: int
    says = "fewer than {needed} calls in the runs' own processes (--iterations)"


class CompiledWhileTimed(Reason):
    code = "compiled_while_timed"
    says = "compilation inside timed calls"


class WindowsDiffer(Reason):
    code = "windows_differ"
    a: WindowKind
    b: WindowKind

    def long(self) -> str:
        return f"A covers {WINDOWS[self.a]}, B {WINDOWS[self.b]} (--window)"


class WholeRecordings(Reason):
    code = "whole_recordings"
    says = "traces without steps (mark them with torch.profiler's step(), or pass --window NAME)"


class ProcessSpreadAssumed(Reason):
    code = "process_spread_assumed"
    share: float

    def long(self) -> str:
        return f"±{percent(self.share, 0)} per call is assumed for process spread (--repeat-process measures it)"


class NoiseForProcessSpread(Reason):
    code = "noise_for_process_spread"
    share: float

    def long(self) -> str:
        return (
            f"±{percent(self.share)} per call (the noise floor) is assumed for process spread (--repeat-process"
            " measures it)"
        )


class JobSpreadAssumed(Reason):
    code = "job_spread_assumed"
    share: float

    def long(self) -> str:
        return f"±{percent(self.share)} per call is assumed for what differs from job to job"


class OneJob(Reason):
    code = "one_job"
    says = "one job, without what differs from job to job"


class OneProcess(Reason):
    code = "one_process"
    says = "one process, without process spread (--repeat-process)"


class OneProcessOfASide(Reason):
    code = "one_process_of_a_side"
    side: str
    other: str
    says = "{side} has one process: the process spread of {other} is assumed"


class WholeRecording(Reason):
    code = "whole_recording"
    says = "of the whole trace: no steps are marked"


class ComputeAlone(Reason):
    code = "compute_alone"
    says = "GPU busy without communication, which may be waiting for other ranks (`tracekit ranks`)"


class RankWithMost(Reason):
    code = "rank_with_most"
    rank: int
    says = "rank {rank} has most"


class RanksNotJoined(Reason):
    code = "ranks_not_joined"
    says = "the ranks' recordings have no GPU communication, or do not tell waiting from transfer"


class Unmatched(Reason):
    code = "unmatched"
    unmatched_share: float

    def long(self) -> str:
        return f"{percent(self.unmatched_share)} of GPU time is unmatched and may hide places"


class MostlyMatched(Reason):
    code = "mostly_matched"
    unmatched_share: float

    def long(self) -> str:
        return f"all but {percent(self.unmatched_share)} of GPU time is matched"
