"""What a sweep found out: the figures of its cells, and what is best for what. This is what `sweep --json` holds."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from tracekit.model.comparison import Result, Verdict
from tracekit.model.note import Note, note_sentences
from tracekit.model.run import Settings
from tracekit.model.statement import Statement, Written
from tracekit.model.timing import BreakEven
from tracekit.sweep.cells import Cell, CellFailure, CellOutcome, Published

#: `cold_start`: soonest done with a number of calls, the first included, from a process that has the model.
Goal = Literal["latency", "cold_start", "memory"]

#: So many compiled modes compete: the best of them is measured again.
COMPETING = 3

#: What was established of a way to run a work beside its eager form, for one goal.
Standing = Literal["better", "undecided", "worse"]


class CallFigures(Struct, frozen=True):
    """The timed calls of one form in one process, each with its 95 % interval; None of fewer than five calls. Memory is
    None on a CPU, and of an eager form beside a compiled one, whose CUDA graphs would count too."""

    calls: int
    mean_us: float
    mean_ci95: tuple[float, float] | None
    median_us: float
    median_ci95: tuple[float, float] | None
    device_median_us: float | None  #: Between two device events; None without a GPU.
    memory_bytes: int | None  #: Reserved in steady calls; None beside a compiled form.
    warmup_memory_bytes: int | None  #: The same of its warm-up calls, compiling and autotuning included.


class Conditions(Struct, frozen=True):
    """The machine while a cell was timed. None for what nobody tells."""

    sm_clock_mhz: float | None  #: The median between calls.
    power_w: float | None  #: The most.
    temperature_c: int | None  #: The most.
    limits: tuple[Note, ...]  #: What held the GPU back; `held_back` says it in English.
    other_processes: int | None  #: How many others had the GPU open.
    host_load: float | None  #: As in the cell's file.
    host: str | None = None  #: As in the cell's file.
    gpu_uuid: str | None = None  #: As in the cell's file.
    concurrent: int | None = None  #: How many other cells ran on that host meanwhile; None where it has no name.
    held_back: tuple[str, ...] = ()  #: What the limits say.

    def __post_init__(self) -> None:
        force_setattr(self, "held_back", note_sentences(self.limits))


class ProcessFigures(Struct, frozen=True):
    """One of the processes that measured a cell. What was not measured is None."""

    process: int  #: From 1.
    outcome: CellOutcome
    failure: CellFailure | None
    started: str
    seconds: float
    calls: int | None  #: Timed calls of each form.
    eager_us: float | None  #: The median call.
    compiled_us: float | None  #: The median call.
    speedup: float | None  #: The median over its rounds.
    conditions: Conditions


class EagerPool(Struct, frozen=True):
    """The eager form of one work in every process that timed it. Figures are geometric means over the processes of
    their means and medians, with Student's t interval over processes; of one process its own interval, of two none."""

    processes: int
    calls: int
    mean_us: float
    mean_ci95: tuple[float, float] | None
    median_us: float
    median_ci95: tuple[float, float] | None
    lowest_us: float  #: The least of the processes' medians.
    highest_us: float  #: The largest of the processes' medians.
    device_median_us: float | None
    memory_bytes: int | None  #: Of processes that had the eager form alone; None where there are none.
    warmup_memory_bytes: int | None  #: The middle one of all processes.
    first_call_us: float  #: The middle one of all processes.
    soon_us: float  #: The middle one of all processes: as a cell's.

    @property
    def spread(self) -> float:
        """How far apart the processes' medians are, as a share: 0.03 is 3 %."""
        return self.highest_us / self.lowest_us - 1


class CellFigures(Struct, frozen=True):
    """One cell. What was not measured is None: of a failed cell nearly all. `result` is what holds of the settings: the
    verdict of what was timed, unless `chance` is above 5 %.

    Of several processes that have times: calls, verdict and `break_even` are pooled as a run's are, starts, loading and
    compile time are the middle ones, `seconds` and `during_timing` sums, `notes` are of any, all else is of the first
    of them."""

    cell: Cell
    outcome: CellOutcome
    failure: CellFailure | None
    started: str
    seconds: float
    settings: Settings | None
    eager: CallFigures | None
    compiled: CallFigures | None
    verdict: Verdict | None  #: Of the cell's own process, where both forms were timed in alternation.
    compile_seconds: float | None  #: Wall time of the calls that compiled, with an empty cache.
    graphs: int | None
    graph_breaks: int | None
    during_timing: int | None  #: Compilations inside timed calls.
    cache_hits: int | None  #: Graphs that came from a cache of compiled code.
    cache_was_empty: bool | None  #: As in a run.
    first_call_us: float | None  #: Loading and building the model is no part of it.
    soon_us: float | None  #: The first N calls that a cold start is judged by.
    spared_us: float | None  #: What the eager form, coming first, spared a compiled one at most.
    load_seconds: float | None  #: Loading and building the model.
    size_reason: str | None  #: Why the model has the size it has.
    break_even: BreakEven | None
    conditions: Conditions
    notes: tuple[Note, ...]
    command: str
    result: Result | None = None  #: None where nothing was compared.
    chance: float | None = None  #: Of so large a difference where there is none, with Holm's correction over the work.
    processes: tuple[ProcessFigures, ...] = ()  #: Each of those on machines that are alike.
    warnings: tuple[str, ...] = ()  #: What the notes say.

    def __post_init__(self) -> None:
        force_setattr(self, "warnings", note_sentences(self.notes))


class Candidate(Struct, frozen=True):
    """One way to run a work, and its figure for a goal, the smaller the better, with its interval where there is one.
    `needed` is None for the best itself, and beside eager, where what was established decides."""

    key: str | None  #: The cell's; None for the eager form.
    mode: str
    scope: str | None
    value: float
    ci95: tuple[float, float] | None
    command: str
    lowest: float | None  #: The least that a cold start may be, of a form that was spared some.
    against_eager: Standing | None  #: What was established beside the eager form.
    needed: float | None = None  #: How far behind counts as behind (0.1 is 10 %).


class Confirmed(Struct, frozen=True):
    """The best measured once more, in a process that did not choose it. What was not measured is None."""

    outcome: CellOutcome
    failure: CellFailure | None
    started: str
    speedup: float | None
    ci95: tuple[float, float] | None  #: Of this process alone.
    next_process95: tuple[float, float] | None  #: Where one more process's speed-up lies; None where nobody knows.
    eager_us: float | None  #: The median call.
    compiled_us: float | None  #: The median call.
    beats_eager: bool | None  #: Whether it was faster than eager in this process.
    beats_next: bool | None  #: Whether it is faster than the next mode was; None where nothing told them apart before.


class Best(Struct, frozen=True):
    """What is best for a goal. The figure is time relative to eager's (`latency`), microseconds until `calls` calls are
    done (`cold_start`), or bytes (`memory`). Those that are better than eager come first, then eager, then what is
    undecided beside it, then what is worse: what is undecided is never best where something is better, and ties with
    eager where nothing is."""

    goal: Goal
    calls: int | None  #: Of a cold start.
    candidates: tuple[Candidate, ...]  #: The first is best.
    tied: tuple[int, ...]  #: Positions that nothing separates from the first, itself (0) among them.
    least: float  #: How far behind counts as separated (0.02 is 2 %), besides the interval.
    confirmed: Confirmed | None = None  #: Of the first, for latency; None where it was not measured again.

    @property
    def clear(self) -> bool:
        """Whether one alone is best."""
        return self.tied == (0,)

    @property
    def to_confirm(self) -> str | None:
        """The key of the first, where it is faster than eager and was chosen among so many compiled ones that the
        largest figure says more of chance than of the mode."""
        compiled, first = sum(each.key is not None for each in self.candidates), self.candidates[0]
        chosen = self.goal == "latency" and compiled >= COMPETING and first.against_eager == "better"
        return first.key if chosen else None


class Work(Struct, frozen=True):
    """Cells that do the same work on the same machine and differ in how they compile it."""

    key: str
    workload: str
    settings: Settings | None  #: Of a cell that ran; None where none did.
    machine: str | None  #: Likewise.
    torch: str | None  #: Likewise.
    eager: EagerPool | None
    cells: tuple[CellFigures, ...]
    best: tuple[Best, ...]
    differs: tuple[str, ...]  #: What is not the same on all machines of it (`driver: 580.1, 590.2`).
    apart: tuple[str, ...] = ()  #: What tells its machine from those of other processes of the same cells.


class PublishedBeside(Struct, frozen=True):
    """Other people's figures beside one work's, in milliseconds; None where not measured here."""

    published: Published
    eager_ms: float | None  #: The mean, in the compiled cell's own process where there is one.
    compiled_ms: float | None  #: The mean.
    eager_median_ms: float | None  #: Of the same process.
    compiled_median_ms: float | None
    speedup: float | None  #: The verdict's; None unless the model has its full size.
    ci95: tuple[float, float] | None
    result: str | None  #: The compiled cell's.
    size: str | None
    dtype: str | None
    machine: str | None


class PublishedDifference(Statement):
    """What is otherwise here than where the published figures come from, or not known of those."""

    as_written = Written


class Sweep(Struct, frozen=True, tag_field="schema", tag="tracekit.sweep/1"):
    """All that a sweep's folder says."""

    tracekit: str
    name: str
    suite: str | None
    command: str | None
    calls: int  #: The N of cold starts.
    missing: int  #: Cells that were asked for and are not there.
    works: tuple[Work, ...]
    published: tuple[PublishedBeside, ...]  #: Other people's figures beside these.
    published_source: str  #: What is known of how `published` were measured.
    differences: tuple[PublishedDifference, ...]  #: What is otherwise here than where `published` were measured.
    notes: tuple[Note, ...]
    left: tuple[Cell, ...] = ()  #: The missing cells.
    processes_missing: int = 0  #: Of cells that are there, processes that were asked for and are not.
    warnings: tuple[str, ...] = ()  #: What the notes say.
    differs: tuple[str, ...] = ()  #: What the differences are, in words.

    def __post_init__(self) -> None:
        force_setattr(self, "warnings", note_sentences(self.notes))
        force_setattr(self, "differs", tuple(each.long() for each in self.differences))

    @property
    def cells(self) -> tuple[CellFigures, ...]:
        """Every cell of every work."""
        return tuple(cell for work in self.works for cell in work.cells)

    @property
    def has_processes(self) -> bool:
        """Whether a cell was measured in several."""
        return any(each.process > 1 for cell in self.cells for each in cell.processes)
