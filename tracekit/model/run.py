"""A run: what was measured, with what, on which machine. This is what `run.json` holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from tracekit.model.advice import VerifiedAdvice
from tracekit.model.bounded import (
    CallMicroseconds,
    Count,
    FileName,
    Many,
    Microseconds,
    Seconds,
    Text,
    Whole,
    Word,
    doc,
    refuse_no_moment,
)
from tracekit.model.compilation import Diagnostics
from tracekit.model.gpu import FormMemory, GpuState
from tracekit.model.note import Noted
from tracekit.model.numerics import FormNumerics
from tracekit.model.timing import FormTiming, Startup, refuse_no_times

if TYPE_CHECKING:
    pass

#: `prefill`: one forward over the prompts. `decode`: one forward over one token of each, the cache full of prompts.
Phase = Literal["generate", "prefill", "decode"]
CacheKind = Literal["dynamic", "static"]


@dataclass(frozen=True, slots=True)
class Generation:
    """What one call writes, and with which cache."""

    phase: Phase
    max_new_tokens: Annotated[Count | None, doc("None in a phase of its own.")]
    cache: CacheKind
    fast_processor: Annotated[bool, doc("torchvision's; the other is PIL's.")]


@dataclass(frozen=True, slots=True)
class UserModel:
    """What tells a run of a user's own model from others."""

    options: Annotated[Many[Text], doc("Of `build()`, each as NAME=VALUE.")] = ()
    takes: Annotated[Many[Text], doc("The options of the command that `build()` takes.")] = ()
    in_program: Annotated[bool, doc("Measured by `tracekit.profile` in a program, not by a command.")] = False


FormName = Literal["eager", "compiled"]
RecordingKind = Literal["light", "rich"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for, after defaults were filled in. None: the workload has no such setting."""

    workload: Word
    size: Text
    device: Text
    dtype: Text
    scope: Text
    mode: Text
    fullgraph: bool
    dynamic: bool | None
    batch_size: Count
    height: Count | None
    width: Count | None
    steps: Count | None
    prompt: Text | None
    pretrained: Text | None
    seed: Whole
    iterations: Annotated[Count, doc("Timed calls of each form that were asked for, or the fewest if none were.")]
    generation: Generation | None = None
    own: Annotated[UserModel | None, doc("There for a model of the user's own.")] = None
    seq_length: Count | None = None
    variables: Annotated[dict[Text, Text], doc("Of the environment, that steer torch.")] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine and the software. None: not there, or could not be read."""

    python: Text
    platform: Text
    cpu: Text | None
    cpu_threads: Count
    gpu: Text | None
    gpu_memory_bytes: Count | None
    driver: Text | None
    cuda: Text | None
    packages: dict[Text, Text]
    git_commit: Text | None
    float32_matmul_precision: Annotated[Text | None, doc("torch's setting: `highest`: no tf32.")] = None


@dataclass(frozen=True, slots=True)
class Recording:
    """A trace file of the run."""

    kind: Annotated[RecordingKind, doc("`light`: kernels and API calls. `rich`: operators and shapes too.")]
    path: Annotated[FileName, doc("Relative to the run folder.")]
    steps: Count
    bytes: Count


@dataclass(frozen=True, slots=True)
class CompileFacts:
    """What compilation did during warm-up."""

    graphs: Annotated[Count, doc("Compiled frames' graphs.")]
    graph_breaks: Count
    seconds: Annotated[Seconds, doc("Wall time of the calls that compiled.")]
    cache_hits: Annotated[Count, doc("Graphs from Inductor's cache on disk, which make `seconds` short.")]
    during_timing: Annotated[Count, doc("Must be 0 for the timing to be of compiled code alone.")]
    diagnostics: Annotated[Diagnostics | None, doc("What torch said of it all; None in older runs.")] = None
    cache_was_empty: Annotated[bool | None, doc("Nothing was in the cache's folder before.")] = None


@dataclass(frozen=True, slots=True)
class FormResult:
    """One form (eager or compiled): its unprofiled times, memory and recordings. None: not asked for, without a GPU, or
    in runs of older versions."""

    name: FormName
    warmup_us: Annotated[Many[Microseconds], doc("The calls before the timed ones.")]
    wall_us: Annotated[Many[CallMicroseconds], doc("Around one synchronised call each, as measured.")]
    device_us: Annotated[Many[Microseconds] | None, doc("Between two device events; None without a GPU.")]
    peak_memory_bytes: Annotated[Count | None, doc("Of timed calls alone; None without a GPU.")]
    compilation: CompileFacts | None
    recordings: Many[Recording]
    provenance: Annotated[FileName | None, doc("The file that tells where its work came from.")] = None
    timing: Annotated[FormTiming | None, doc("How the timed calls were made; None in runs of older versions.")] = None
    startups: Annotated[Many[Startup], doc("Its starts in fresh processes, where they were asked for.")] = ()
    numerics: Annotated[FormNumerics | None, doc("What it returns beside what it should return.")] = None
    memory: Annotated[FormMemory | None, doc("Its GPU memory in full; None where not asked.")] = None
    gpu_state: Annotated[GpuState | None, doc("Of the GPU while it was timed; None where not asked.")] = None

    def __post_init__(self) -> None:
        refuse_no_times(self.wall_us)

    @property
    def compilations_while_timed(self) -> int:
        """How much was compiled inside timed calls, of the run's own process and of those that repeated it."""
        own = self.compilation.during_timing if self.compilation else 0
        return own + sum(each.during_timing for each in (self.timing.processes if self.timing else ()))


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the workload that can be compiled."""

    name: Text
    parameters: Count
    compiled: Annotated[bool, doc("The scope compiles it, or something in it.")]
    compiled_parameters: Annotated[Count | None, doc("None where it is no module of its own.")] = None
    compiled_parts: Annotated[Many[Text], doc("The modules entered compiled; `LIST.*`: all members.")] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """The manifest of one `tracekit profile`. None and empty are also of what runs of older versions did not note."""

    schema: Literal["tracekit.run/1"]
    status: Annotated[Literal["complete", "incomplete"], doc("Incomplete while it runs and after an interrupt.")]
    tracekit: Text
    command: Text
    started: Text
    settings: Settings
    size_reason: Text
    environment: Environment
    components: Many[Component]
    forms: Many[FormResult]
    order: Annotated[Many[FormName], doc("The form of each timed call in the order they ran, control calls left out.")]
    notes: Annotated[Many[Text], doc("What a reader must know, in words.")]
    verified: Annotated[VerifiedAdvice | None, doc("What came of the run's own advice (`--verify-advice`).")] = None
    repeated_parts: Annotated[Many[Text] | None, doc("What `--scope regional` compiles one by one.")] = None
    failure: Annotated[Text | None, doc("The error that ended an incomplete run, if one did.")] = None
    noted: Annotated[Many[Noted], doc("The facts of those `notes` that tracekit itself made.")] = ()

    def __post_init__(self) -> None:
        refuse_no_moment(self.started)

    def form(self, name: FormName) -> FormResult | None:
        return next((form for form in self.forms if form.name == name), None)
