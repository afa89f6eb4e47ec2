"""What is to be known of the recordings of the sides: what they hold, and over what they are read."""

from typing import Literal

from tracekit.model.analysis import Health
from tracekit.model.note import Note
from tracekit.numbers import counted, duration

#: What a recording is read over.
Extent = Literal["steps", "span", "whole"]
WINDOWS: dict[Extent, str] = {"steps": "its steps", "span": "one span", "whole": "the whole trace"}
#: What `--window` names that is no call.
LOOKED_AT: dict[Extent, str] = {"span": "the named window", "whole": "the whole trace"}


class SameRecording(Note):
    code = "same_recording"
    path: str
    says = "Both sides are the same trace ({path}): every change is 0."
    says_short = "both sides are the same trace"


class DamagedRecording(Note):
    """Its facts are the code of the finding on the recording, and its facts."""

    code = "damaged_recording"
    usual_severity = "error"
    subject: str
    health: Health
    says_short = "trace of {subject} is damaged"

    @property
    def facts(self) -> dict[str, object]:
        return {"health": self.health.code, "count": self.health.count, "facts": self.health.facts}

    def long(self) -> str:
        return f"{self.subject}: {self.health.long()}"


class NoRichRecording(Note):
    code = "no_rich_recording"
    subject: str
    says = "{subject} has no full trace: idle time has no host causes on either side."


class CpuRun(Note):
    code = "cpu_run"
    usual_severity = "info"
    says = (
        "This is a CPU run: operators and wall times. It has no GPU kernels, launches or idle time, and says nothing"
        " about a GPU."
    )
    says_short = "CPU run: it says nothing about a GPU"


class NoGpuActivity(Note):
    code = "no_gpu_activity"
    subject: str
    says = "{subject} has no GPU activity: kernels, idle time and waterfall cannot be compared."


class SeveralGpus(Note):
    code = "several_gpus"
    subject: str
    gpus: int
    says_short = "{subject} ran on {gpus} GPUs: figures are sums"

    def long(self) -> str:
        return f"{self.short()}, without a waterfall."


class NotReadOverSteps(Note):
    code = "not_read_over_steps"
    window: Extent

    def long(self) -> str:
        return (
            "Times without the profiler, and their speed-up, are of whole calls, trace figures of"
            f" {LOOKED_AT[self.window]}: they cannot be compared."
        )

    def short(self) -> str:
        return f"times and speed-up are of whole calls, trace figures of {LOOKED_AT[self.window]}"


class WindowsDiffer(Note):
    code = "windows_differ"
    a: Extent
    b: Extent
    says_short = "A and B cover different windows (--window)"

    def long(self) -> str:
        return f"A covers {WINDOWS[self.a]}, B {WINDOWS[self.b]}: their figures cannot be compared. --window sets both."


class WholeRecordings(Note):
    code = "whole_recordings"
    says = "Figures are of whole traces, not per step: both must hold the same work."


class NamedSpans(Note):
    code = "named_spans"
    says = "Figures are per span: both spans must hold the same work."


class StepsDiffer(Note):
    code = "steps_differ"
    usual_severity = "info"
    a: int
    b: int
    says = "A has {a} steps, B {b}; figures are per step."


class BusierThanTheCall(Note):
    code = "busier_than_the_call"
    subject: str
    busy_us: float
    wall_us: float
    idle_taken_for_0: bool

    def long(self) -> str:
        return (
            f"{self.subject}: the GPU was busy longer in the profiled step ({duration(self.busy_us)}) than an"
            f" unprofiled call took ({duration(self.wall_us)}): idle time"
            f" {'counts as 0' if self.idle_taken_for_0 else 'is not known; figures are profiled'}."
        )


class TimedSlowerThanRecorded(Note):
    code = "timed_slower_than_recorded"
    subject: str
    wall_us: float
    recorded_us: float
    timed_calls: int
    first_calls: bool
    says_short = "calls of {subject} took longer timed than recorded (other load or clock): measure again"

    def long(self) -> str:
        why = "other load or another clock. Measure again."
        if self.first_calls:
            why = f"only {counted(self.timed_calls, 'timed call')}, and first calls are slow (--iterations)."
        factor = self.wall_us / self.recorded_us
        return f"{self.subject}: unprofiled calls took {factor:.1f}x as long as profiled calls: {why}"
