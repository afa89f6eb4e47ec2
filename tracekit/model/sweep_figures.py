"""What a sweep found out: the figures of its cells, and what is best for what. This is what `sweep --json` holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracekit.model.comparison import Verdict
from tracekit.model.estimate import Statement
from tracekit.model.note import Note
from tracekit.model.run import Settings
from tracekit.model.startup import BreakEven
from tracekit.model.suite import Published
from tracekit.model.sweep import Cell, CellFailure, CellOutcome

#: `cold_start`: soonest done with a number of calls, the first included, from a process that has the model.
Goal = Literal["latency", "cold_start", "memory"]

#: What was established of a way to run a work beside its eager form, for one goal.
Standing = Literal["better", "undecided", "worse"]


@dataclass(frozen=True, slots=True)
class CallFigures:
    """The timed calls of one form in one process, each with its 95 % interval; None of fewer than five calls.

    `device_median_us` is between two device events, None without a GPU. `memory_bytes` is what torch had reserved of
    the GPU at the height of a steady call; None on a CPU, and of an eager form beside a compiled one, whose CUDA graphs
    would count too. `warmup_memory_bytes` is the same of its warm-up calls, compiling and autotuning included.
    """

    calls: int
    mean_us: float
    mean_ci95: tuple[float, float] | None
    median_us: float
    median_ci95: tuple[float, float] | None
    device_median_us: float | None
    memory_bytes: int | None
    warmup_memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Conditions:
    """The machine while a cell was timed: the GPU's median clock between calls, the most power and heat, the `limits`
    that held it back, and how many other processes had it open; `host_load` as in the cell's file. None for what
    nobody tells."""

    sm_clock_mhz: float | None
    power_w: float | None
    temperature_c: int | None
    limits: tuple[Note, ...]
    other_processes: int | None
    host_load: float | None


@dataclass(frozen=True, slots=True)
class EagerPool:
    """The eager form of one work in every process that timed it.

    Geometric means over the processes of their means and medians, with Student's t interval over processes; of one
    process its own interval, of two none. `lowest_us` and `highest_us` are the processes' medians at their extremes.
    `first_call_us` and `soon_us` are as a cell's, and like `warmup_memory_bytes` the middle ones of all processes, for
    the eager form comes first in each. `memory_bytes` is of processes that had the eager form alone, None where there
    are none.
    """

    processes: int
    calls: int
    mean_us: float
    mean_ci95: tuple[float, float] | None
    median_us: float
    median_ci95: tuple[float, float] | None
    lowest_us: float
    highest_us: float
    device_median_us: float | None
    memory_bytes: int | None
    warmup_memory_bytes: int | None
    first_call_us: float
    soon_us: float

    @property
    def spread(self) -> float:
        """How far apart the processes' medians are, as a share: 0.03 is 3 %."""
        return self.highest_us / self.lowest_us - 1


@dataclass(frozen=True, slots=True)
class CellFigures:
    """One cell. What was not measured is None: of a failed cell nearly all.

    `verdict` is of the cell's own process, where both forms were timed in alternation. `compile_seconds` is wall time
    of the calls that compiled, with an empty cache. `soon_us` is how long the first N calls take that a cold start is
    judged by, `first_call_us` the first; loading and building the model (`load_seconds`) are in neither. A compiled
    form's came after the eager one's in the same process, and were spared what that did once for both: `spared_us` at
    most, the eager form's start-up. `during_timing` is how many compilations ran inside timed calls, `cache_hits` how
    many graphs came from a cache of compiled code, and `cache_was_empty` as in a run. `size_reason` says why the model
    has the size it has. `within_eager_spread` is whether the speed-up is no farther from 1 than the fastest and the
    slowest process of its work's eager form are from each other (`EagerPool.spread`): another process may then find no
    change, or the opposite. None where nothing was compared, or one process alone timed that form.
    """

    cell: Cell
    outcome: CellOutcome
    failure: CellFailure | None
    started: str
    seconds: float
    settings: Settings | None
    eager: CallFigures | None
    compiled: CallFigures | None
    verdict: Verdict | None
    compile_seconds: float | None
    graphs: int | None
    graph_breaks: int | None
    during_timing: int | None
    cache_hits: int | None
    cache_was_empty: bool | None
    first_call_us: float | None
    soon_us: float | None
    spared_us: float | None
    load_seconds: float | None
    size_reason: str | None
    break_even: BreakEven | None
    conditions: Conditions
    notes: tuple[Note, ...]
    command: str
    within_eager_spread: bool | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to run a work, and its figure for a goal, the smaller the better, with its interval where there is one.

    `key` is the cell's; None for the eager form. `lowest` is the least that the figure may be, where it is known no
    better than between the two: of a compiled form's cold start, which was spared what the eager form did before it.
    `against_eager` is what was established of it beside the eager form; None for that form itself, and where that has
    no such figure. `needed` is how far behind the best it must be to count as behind (0.1 is 10 %), besides its
    interval; None for the best itself, and beside eager, where what was established decides.
    """

    key: str | None
    mode: str
    scope: str | None
    value: float
    ci95: tuple[float, float] | None
    command: str
    lowest: float | None
    against_eager: Standing | None
    needed: float | None = None


@dataclass(frozen=True, slots=True)
class Best:
    """What is best for a goal: the first of `candidates`. `tied` are the positions of those that nothing separates from
    it, itself (0) among them. `least` is how far another must be behind to count as separated (0.02 is 2 %), besides
    its interval; in latency, besides the noise of either cell.

    Those that are better than eager come first, then eager, then what is undecided beside it, then what is worse. So
    what is undecided is never best where something is better, and ties with eager where nothing is.

    Figures: `latency` is time relative to the eager form's, `cold_start` microseconds until `calls` calls are done,
    `memory` bytes.
    """

    goal: Goal
    calls: int | None
    candidates: tuple[Candidate, ...]
    tied: tuple[int, ...]
    least: float

    @property
    def clear(self) -> bool:
        """Whether one alone is best."""
        return self.tied == (0,)


@dataclass(frozen=True, slots=True)
class Work:
    """Cells that do the same work on the same machine and differ in how they compile it. `settings` are those of a cell
    that ran, None where none did; `machine` and `torch` likewise. `differs` is what else is not the same on all
    machines that its cells were measured on (`driver: 580.1, 590.2`)."""

    key: str
    workload: str
    settings: Settings | None
    machine: str | None
    torch: str | None
    eager: EagerPool | None
    cells: tuple[CellFigures, ...]
    best: tuple[Best, ...]
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublishedBeside:
    """Other people's figures beside one work's: mean milliseconds, None where that was not measured here.

    Both means and medians are of the compiled cell's own process, of which `speedup` is the verdict's; of the eager
    cell's where there is no compiled one. `speedup` is None unless the model has its full size.
    `within_eager_spread` is the compiled cell's.
    """

    published: Published
    eager_ms: float | None
    compiled_ms: float | None
    eager_median_ms: float | None
    compiled_median_ms: float | None
    speedup: float | None
    ci95: tuple[float, float] | None
    result: str | None
    size: str | None
    dtype: str | None
    machine: str | None
    within_eager_spread: bool | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """All that a sweep's folder says. `missing` counts cells that were asked for and are not there, `left` names them.
    `calls` is the N of cold starts. `published_source` is what is known of how `published` were measured,
    `differences` what is otherwise here."""

    schema: Literal["tracekit.sweep/1"]
    tracekit: str
    name: str
    suite: str | None
    command: str | None
    calls: int
    missing: int
    works: tuple[Work, ...]
    published: tuple[PublishedBeside, ...]
    published_source: str
    differences: tuple[Statement, ...]
    notes: tuple[Note, ...]
    left: tuple[Cell, ...] = ()

    @property
    def cells(self) -> tuple[CellFigures, ...]:
        """Every cell of every work."""
        return tuple(cell for work in self.works for cell in work.cells)
