"""A run: what was measured, with what, on which machine. This is what `run.json` holds."""

from typing import Literal

from msgspec import Struct, field

from tracekit.model.advice import VerifiedAdvice
from tracekit.model.bounded import (
    Amount,
    Argument,
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
from tracekit.model.compilation import Diagnostics, NotCompiled
from tracekit.model.gpu import FormMemory, GpuState
from tracekit.model.note import Noted
from tracekit.model.numerics import FormNumerics
from tracekit.model.option import CacheKind, CompileOrder, Parallel, Phase
from tracekit.model.quartiles import HostTimes, Quartiles
from tracekit.model.recording_cost import RecordingCost
from tracekit.model.timing import FormTiming, Startup, refuse_no_times


class Generation(Struct, frozen=True):
    """What one call writes, and with which cache."""

    phase: Phase
    max_new_tokens: Count | None  #: None in a phase of its own.
    cache: CacheKind
    fast_processor: bool | None = None  #: torchvision's; the other is PIL's. None where there is no processor.


class UserModel(Struct, frozen=True):
    """What tells a run of a user's own model from others."""

    options: Many[Argument] = ()  #: Of `build()`, each as NAME=VALUE.
    takes: Many[Argument] = ()  #: The options of the command that `build()` takes.
    in_program: bool = False  #: Measured by `tracekit.profile` in a program, not by a command.
    as_script: bool = False  #: Of a program, whether `tracekit run` ran it as it is.
    training: Many[Argument] = ()  #: Its modules that were in training mode.


#: What nobody knows of a program that `tracekit run` ran as it is: its settings hold defaults there.
UNKNOWN_OF_PROGRAM = frozenset({"size", "scope", "fullgraph", "dynamic", "batch_size", "seed", "iterations"})

FormName = Literal["eager", "compiled"]
RecordingKind = Literal["light", "rich"]


class Settings(Struct, frozen=True):
    """What the user asked for, after defaults were filled in. None: the workload has no such setting."""

    workload: Word
    size: Argument
    device: Argument
    dtype: Argument
    scope: Argument
    mode: Argument
    fullgraph: bool
    dynamic: bool | None
    batch_size: Count
    height: Count | None
    width: Count | None
    steps: Count | None
    prompt: Argument | None
    pretrained: Word | None  #: The option may stand without a value, so that none begins like another.
    seed: Whole
    iterations: Count  #: Timed calls of each form that were asked for, or the fewest if none were.
    generation: Generation | None = None
    own: UserModel | None = None  #: There for a model of the user's own.
    seq_length: Count | None = None
    variables: dict[Argument, Argument] = field(default_factory=dict)  #: Of the environment, that steer torch.
    nproc: Count | None = None  #: Ranks; None for one process without a process group.
    parallel: Parallel | None = None
    checkpoint: bool | None = None  #: Activations are computed again in backward, not kept.
    compile_order: CompileOrder | None = None
    compiled_autograd: bool | None = None

    @property
    def is_of_program(self) -> bool:
        """Whether `tracekit run` ran a program as it is."""
        return self.own is not None and self.own.as_script

    @property
    def in_program(self) -> bool:
        """Whether a program was measured, and no model that a command builds: no options of `profile` are its."""
        return self.own is not None and self.own.in_program

    def value(self, name: str) -> object:
        """That of the option of this name; None where the workload has no such setting."""
        generated = {"use_fast": "fast_processor"}.get(name, name)
        return getattr(self, name) if hasattr(self, name) else getattr(self.generation, generated, None)


class Environment(Struct, frozen=True):
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
    float32_matmul_precision: Text | None = None  #: torch's setting: `highest`: no tf32.
    host_load: Amount | None = None  #: Processes that wanted to run in the minute before the run, on average.
    logical_cores: Count | None = None

    @property
    def host_is_busy(self) -> bool:
        """Whether more wanted to run than there are cores for; False where that is not known."""
        return is_busy(self.host_load, self.logical_cores)


def is_busy(load: float | None, cores: int | None) -> bool:
    """Chosen: on two cores with a load of 8 the noise floor was over 100 %, with one of 1.5 it was 2 to 5 %."""
    return load is not None and bool(cores) and load > (cores or 0)


class Recording(Struct, frozen=True):
    """A trace file of the run."""

    kind: RecordingKind  #: `light`: kernels and API calls. `rich`: operators and shapes too.
    path: FileName  #: Relative to the run folder.
    steps: Count
    bytes: Count
    host_us: Many[CallMicroseconds] = ()  #: As `FormResult.host`, in each step; none on a CPU.
    #: How long the calling thread was off the CPU in each step, asleep or waiting; none where that is not known.
    off_cpu_us: Many[Microseconds] = ()


class CompileFacts(Struct, frozen=True):
    """What compilation did during warm-up."""

    graphs: Count  #: Compiled frames' graphs.
    graph_breaks: Count
    seconds: Seconds  #: Wall time of the calls that compiled.
    cache_hits: Count  #: Graphs from caches on disk, backward and all, which make `seconds` short.
    during_timing: Count  #: Must be 0 for the timing to be of compiled code alone.
    diagnostics: Diagnostics | None = None  #: What torch said of it all; None in a process that only times.
    cache_was_empty: bool | None = None  #: Nothing was in the cache's folder before; None where torch hides it.


class FormResult(Struct, frozen=True):
    """One form (eager or compiled): its unprofiled times, memory and recordings. None: not asked for, without a GPU, or
    not yet there when the run was cut off."""

    name: FormName
    warmup_us: Many[Microseconds]  #: The calls before the timed ones.
    wall_us: Many[CallMicroseconds]  #: Around one synchronised call each, as measured.
    device_us: Many[Microseconds] | None  #: Between two device events; None without a GPU.
    peak_memory_bytes: Count | None  #: Of timed calls alone; None without a GPU.
    compilation: CompileFacts | None
    recordings: Many[Recording]
    provenance: FileName | None = None  #: The file that tells where its work came from.
    timing: FormTiming | None = None  #: How the timed calls were made; None before they were.
    startups: Many[Startup] = ()  #: Its starts in fresh processes, where they were asked for.
    numerics: FormNumerics | None = None  #: What it returns beside what it should return.
    memory: FormMemory | None = None  #: Its GPU memory in full; None where not asked.
    gpu_state: GpuState | None = None  #: Of the GPU while it was timed; None where not asked.
    kernel_sources: FileName | None = None  #: The file with the source of its Triton kernels.
    own_wall_us: Many[CallMicroseconds] = ()  #: Of several ranks: this one's of each call; `wall_us`: the slowest's.
    own_peak_memory_bytes: Count | None = None  #: Of several ranks: this one's; `peak_memory_bytes` is the largest.
    host: HostTimes | None = None  #: How fast this rank's host was while it was timed; None on a CPU.
    #: How long this rank's Python collected garbage in a timed call; None on a CPU.
    collecting: Quartiles | None = None

    def __post_init__(self) -> None:
        refuse_no_times(self.wall_us)

    @property
    def steady_us(self) -> tuple[float, ...]:
        """The timed calls without those at the beginning that had not settled."""
        unsteady = self.timing.unsteady if self.timing else 0
        return tuple(self.wall_us[unsteady:] or self.wall_us)

    @property
    def calls_differ_us(self) -> float:
        """Half of what four of five timed calls lie between: by so much the few that are recorded may differ from the
        median one."""
        from statistics import quantiles

        tenths = quantiles(self.steady_us, n=10) if len(self.steady_us) > 1 else [0.0]
        return (tenths[-1] - tenths[0]) / 2

    @property
    def compilations_while_timed(self) -> int:
        """How much was compiled inside timed calls, of the run's own process and of those that repeated it."""
        own = self.compilation.during_timing if self.compilation else 0
        return own + sum(each.during_timing for each in (self.timing.processes if self.timing else ()))


class Component(Struct, frozen=True):
    """A part of the workload that can be compiled."""

    name: Text
    parameters: Count
    compiled: bool  #: The scope compiles it, or something in it.
    compiled_parameters: Count | None = None  #: None where it is no module of its own.
    compiled_parts: Many[Text] = ()  #: The modules entered compiled; `LIST.*`: all members.


class RankForm(Struct, frozen=True):
    """One form on one rank of several."""

    name: FormName
    wall_us: Microseconds  #: The rank's own time of a call, the median.
    times_slowest: Count  #: Of the timed calls, those in which it took longest.
    graphs: Count | None  #: None of the eager form.
    graph_breaks: Count | None
    peak_memory_bytes: Count | None
    compiling_calls: Many[Count] = ()  #: Of the timed calls, from 1, those in which it compiled.
    differs: Many[Noted] = ()  #: What it did and not all ranks did.


class RankOfRun(Struct, frozen=True):
    """One rank of a run of several."""

    rank: Count
    host: Text
    gpu: Text | None
    folder: FileName | None  #: Its own run folder in this one; None for rank 0, whose folder this is.
    forms: Many[RankForm]


class Run(Struct, frozen=True):
    """The manifest of one `tracekit profile`."""

    schema: Literal["tracekit.run/1"]
    status: Literal["complete", "incomplete"]  #: Incomplete while it runs and after an interrupt.
    tracekit: Text
    command: Text
    started: Text
    settings: Settings
    size_reason: Text
    environment: Environment
    components: Many[Component]
    forms: Many[FormResult]
    order: Many[FormName]  #: The form of each timed call in the order they ran, control calls left out.
    notes: Many[Text]  #: What the workload says of itself, in words.
    verified: VerifiedAdvice | None = None  #: What came of the run's own advice (`--verify-advice`).
    repeated_parts: Many[Text] = ()  #: What `--scope regional` compiles one by one.
    failure: Text | None = None  #: The error that ended an incomplete run, if one did.
    noted: Many[Noted] = ()  #: What else a reader must know.
    ranks: Many[RankOfRun] = ()  #: All ranks of a run of several; what the rest of the manifest says is rank 0's.
    not_compiled: Many[NotCompiled] | None = None  #: Why torch.compile made no graph: there is no compiled form then.
    recording_cost: RecordingCost | None = None  #: Of several ranks, each measures its own. None without a GPU.

    def __post_init__(self) -> None:
        refuse_no_moment(self.started)

    def form(self, name: FormName) -> FormResult | None:
        return next((form for form in self.forms if form.name == name), None)
