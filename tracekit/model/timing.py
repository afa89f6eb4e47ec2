"""How calls of a run were timed, and what a form costs before it is at its steady speed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from tracekit.model.bounded import CallMicroseconds, Count, Many, Microseconds, Ratio, Seconds, Some, doc

#: Why no more calls were made. `most rounds` is a limit of tracekit's own, for calls of microseconds.
StopReason = Literal["asked number", "target reached", "budget spent", "most rounds", "interrupted"]


def refuse_no_times(wall_us: Sequence[float]) -> None:
    """Raises ValueError where a call took no time that a clock can show: ratios and medians of it would be none."""
    for number, us in enumerate(wall_us, 1):
        if not (math.isfinite(us) and us > 0):
            raise ValueError(f"timed call {number} took {us} microseconds, which is no time")


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When timing stops."""

    rounds: Annotated[Count | None, doc("A number that was asked for; the rest is for when none was.")]
    target: Annotated[Ratio, doc("The half-width of the ratio's 95 % interval to reach: 0.01 is 1 % to each side.")]
    budget_seconds: Annotated[Seconds, doc("From the first call.")]
    least: Annotated[Count, doc("Rounds before the target is asked; a tenth of the budget is the other condition.")]


@dataclass(frozen=True, slots=True)
class ControlCall:
    """The second call of one form in a round: with the first, a pair that differs by noise alone."""

    round: Annotated[Count, doc("From 0: the first call is `wall_us[round]`.")]
    wall_us: CallMicroseconds
    device_us: Annotated[Microseconds | None, doc("None without a GPU.")]

    def __post_init__(self) -> None:
        refuse_no_times((self.wall_us,))


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """One form's calls in a process of its own (`--repeat-process`), in the order they were measured."""

    wall_us: Some[CallMicroseconds]
    device_us: Many[Microseconds] | None
    controls: Many[ControlCall]
    stopped: StopReason
    seconds: Seconds
    during_timing: Annotated[Count, doc("Compilations inside them.")] = 0
    cache_hits: Annotated[Count | None, doc("From Inductor's cache on disk; None of an eager form.")] = None

    def __post_init__(self) -> None:
        refuse_no_times(self.wall_us)


@dataclass(frozen=True, slots=True)
class FormTiming:
    """How one form was timed."""

    stopped: StopReason
    target: Annotated[Ratio | None, doc("None where a number of calls was asked for.")]
    budget_seconds: Annotated[Seconds | None, doc("None where a number of calls was asked for.")]
    seconds: Annotated[Seconds, doc("How long the timing of all forms took.")]
    controls: Many[ControlCall] = ()
    processes: Annotated[Many[ProcessTimes], doc("The repeats in fresh processes, beside the run's own.")] = ()


#: Eager; compiled with nothing compiled before it on this machine; compiled with Inductor's caches of that on disk.
StartKind = Literal["eager", "compiled_no_cache", "compiled_warm_cache"]

#: Whether a fresh process was started for it (`--startup`), or it is what the run's own warm-up happened to see.
StartSource = Literal["fresh_process", "warm_up"]


@dataclass(frozen=True, slots=True)
class Startup:
    """One start of one form in a fresh process."""

    kind: StartKind
    load_seconds: Annotated[Seconds, doc("Importing torch and the model's libraries, and building the model.")]
    calls_us: Annotated[Some[Microseconds], doc("Its calls until it was quiet, the first of them first.")]
    graphs: Annotated[Count | None, doc("Compiled; None for the eager form.")]
    cache_hits: Annotated[Count | None, doc("Graphs that were read from Inductor's cache; None for the eager form.")]


@dataclass(frozen=True, slots=True)
class BreakEven:
    """After how many calls the compiled form has taken no longer than the eager one, start-up and all. In one warm-up
    the eager form came first and alone paid what a process does once: the truth lies between `calls` and
    `calls_at_most`, and `calls_ci95` reaches over both. In fresh processes each form paid its own."""

    kind: Annotated[StartKind | None, doc("None where a cache was neither empty nor held all graphs.")]
    source: StartSource
    first_call_us: Annotated[float, doc("The compiled form's.")]
    startup_us: Annotated[float, doc("What the compiled form's calls until quiet took longer than steady ones.")]
    eager_startup_us: Annotated[float, doc("The same of the eager form.")]
    calls: Annotated[float | None, doc("None where no saving was established; inf where there never will be one.")]
    calls_ci95: Annotated[tuple[float, float] | None, doc("Reaches up to `calls_at_most`.")]
    graphs: Annotated[int | None, doc("Compiled.")] = None
    cache_hits: Annotated[int | None, doc("Graphs that were read from Inductor's cache.")] = None
    never: Annotated[bool, doc("Calls save nothing.")] = False
    calls_at_most: Annotated[float | None, doc("Nothing of the eager start-up taken off; of one warm-up.")] = None
