"""A run: what was measured, with what, on which machine. This is what `run.json` holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

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
    refuse_no_moment,
)
from tracekit.model.compilation import Diagnostics
from tracekit.model.generation import Generation
from tracekit.model.gpu_state import GpuState
from tracekit.model.memory import FormMemory
from tracekit.model.noted import Noted
from tracekit.model.numerics import FormNumerics
from tracekit.model.own import Own
from tracekit.model.startup import Startup
from tracekit.model.timing import FormTiming, refuse_no_times

FormName = Literal["eager", "compiled"]
RecordingKind = Literal["light", "rich"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for, after defaults were filled in. None: the workload has no such setting.

    `iterations` is the number of timed calls of each form that was asked for, or the fewest if none was. `own` is there
    for a model of the user's own. `variables` are those of the environment that steer torch and its libraries, by name:
    `TORCHINDUCTOR_GRAPH_PARTITION`; empty in runs made before they were looked at.
    """

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
    iterations: Count
    generation: Generation | None = None
    own: Own | None = None
    seq_length: Count | None = None
    variables: dict[Text, Text] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine and the software. None: not there, or could not be read.

    `float32_matmul_precision` is torch's setting for products of float32: `highest`, or `high` and `medium`, which let
    matrix units round them to tf32.
    """

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
    float32_matmul_precision: Text | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """A trace file of the run. `path` is relative to the run folder.

    `light`: kernels and API calls, little distortion. `rich`: operators and shapes too.
    """

    kind: RecordingKind
    path: FileName
    steps: Count
    bytes: Count


@dataclass(frozen=True, slots=True)
class CompileFacts:
    """What compilation did during warm-up.

    `graphs` counts compiled frames' graphs, `seconds` is wall time of the calls that compiled. `cache_hits` is how many
    graphs came from Inductor's cache on disk, which makes `seconds` shorter than a first compilation's.
    `cache_was_empty` says that the cache's folder held nothing before, not even results of autotuning; None in runs
    made before it was looked at. `during_timing` must be 0 for the timing to be of compiled code alone. `diagnostics`
    is what torch said of it all; None in runs made before it was asked.
    """

    graphs: Count
    graph_breaks: Count
    seconds: Seconds
    cache_hits: Count
    during_timing: Count
    diagnostics: Diagnostics | None = None
    cache_was_empty: bool | None = None


@dataclass(frozen=True, slots=True)
class FormResult:
    """One form (eager or compiled): its unprofiled times, memory and recordings.

    `wall_us` are host times around one synchronised call, in the order they were measured. `device_us` are the same
    calls between two device events; None without a GPU. `warmup_us` are the calls before. `peak_memory_bytes` is of
    timed calls alone; None without a GPU. `provenance` is the file that tells where the form's work came from, relative
    to the run folder; None where nobody asked, or torch could not tell. `timing` is how the timed calls were made; None
    in runs of older versions. `startups` are its starts in fresh processes, where they were asked for. `numerics` is
    what the form returns beside what it should return, `memory` its GPU memory in full, `gpu_state` that of the GPU
    while it was timed; None where that was not asked or there is none.
    """

    name: FormName
    warmup_us: Many[Microseconds]
    wall_us: Many[CallMicroseconds]
    device_us: Many[Microseconds] | None
    peak_memory_bytes: Count | None
    compilation: CompileFacts | None
    recordings: Many[Recording]
    provenance: FileName | None = None
    timing: FormTiming | None = None
    startups: Many[Startup] = ()
    numerics: FormNumerics | None = None
    memory: FormMemory | None = None
    gpu_state: GpuState | None = None

    def __post_init__(self) -> None:
        refuse_no_times(self.wall_us)

    @property
    def compilations_while_timed(self) -> int:
        """How much was compiled inside timed calls, of the run's own process and of those that repeated it."""
        own = self.compilation.during_timing if self.compilation else 0
        return own + sum(each.during_timing for each in (self.timing.processes if self.timing else ()))


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the workload that can be compiled. `compiled`: the scope compiles it, or something in it.

    `compiled_parts` are the modules by which it is entered compiled, `LIST.*` for all members of a list, and
    `compiled_parameters` are theirs; empty and None where the component is no module of its own, and in runs of older
    versions.
    """

    name: Text
    parameters: Count
    compiled: bool
    compiled_parameters: Count | None = None
    compiled_parts: Many[Text] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """The manifest of one `tracekit profile`. `status` is incomplete while it runs and after an interrupt.

    `order` names the form of each timed call in the order they ran, so that pairs can be told; control calls are not in
    it. `verified` is what came of the run's own advice (`--verify-advice`). `repeated_parts` are the blocks that
    repeat, each of which `--scope regional` compiles by itself, `LIST.*` for all members of a list; None in runs made
    before they were looked for. `failure` is the error that ended an incomplete run; None for one that still runs, and
    after an interrupt. `noted` are the facts of those `notes` that tracekit itself made; empty in runs of older
    versions.
    """

    schema: Literal["tracekit.run/1"]
    status: Literal["complete", "incomplete"]
    tracekit: Text
    command: Text
    started: Text
    settings: Settings
    size_reason: Text
    environment: Environment
    components: Many[Component]
    forms: Many[FormResult]
    order: Many[FormName]
    notes: Many[Text]
    verified: VerifiedAdvice | None = None
    repeated_parts: Many[Text] | None = None
    failure: Text | None = None
    noted: Many[Noted] = ()

    def __post_init__(self) -> None:
        refuse_no_moment(self.started)

    def form(self, name: FormName) -> FormResult | None:
        return next((form for form in self.forms if form.name == name), None)
