"""How calls of a run were timed, and what a form costs before it is at its steady speed."""

import math
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from tracekit.model.bounded import CallMicroseconds, Count, Many, Microseconds, Ratio, Seconds, Some

#: Why no more calls were made. `most rounds` is a limit of tracekit's own, for calls of microseconds.
StopReason = Literal["asked number", "target reached", "budget spent", "most rounds", "interrupted"]


def refuse_no_times(wall_us: Sequence[float]) -> None:
    """Raises ValueError where a call took no time that a clock can show: ratios and medians of it would be none."""
    for number, us in enumerate(wall_us, 1):
        if not (math.isfinite(us) and us > 0):
            raise ValueError(f"timed call {number} took {us} microseconds, which is not a duration")


class StoppingRule(Struct, frozen=True):
    """When timing stops."""

    rounds: Count | None  #: A number that was asked for; the rest is for when none was.
    target: Ratio  #: The half-width of the ratio's 95 % interval to reach: 0.01 is 1 % to each side.
    budget_seconds: Seconds  #: From the first call.
    least: Count  #: Rounds before the target is asked; a tenth of the budget is the other condition.


class ControlCall(Struct, frozen=True):
    """The second call of one form in a round: with the first, a pair that differs by noise alone."""

    round: Count  #: From 0: the first call is `wall_us[round]`.
    wall_us: CallMicroseconds
    device_us: Microseconds | None  #: None without a GPU.

    def __post_init__(self) -> None:
        refuse_no_times((self.wall_us,))


class ProcessTimes(Struct, frozen=True):
    """One form's calls in a process of its own (`--repeat-process`), in the order they were measured."""

    wall_us: Some[CallMicroseconds]
    device_us: Many[Microseconds] | None
    controls: Many[ControlCall]
    stopped: StopReason
    seconds: Seconds
    during_timing: Count = 0  #: Compilations inside them.
    cache_hits: Count | None = None  #: From Inductor's cache on disk; None of an eager form.
    unsteady: Count = 0  #: So many calls at the beginning are left out: what was timed had not settled.

    def __post_init__(self) -> None:
        refuse_no_times(self.wall_us)

    @property
    def steady_us(self) -> tuple[float, ...]:
        """The calls that count; all of them of a process that was cut short before any did."""
        return tuple(self.wall_us[self.unsteady :] or self.wall_us)


class FormTiming(Struct, frozen=True):
    """How one form was timed."""

    stopped: StopReason
    target: Ratio | None  #: None where a number of calls was asked for.
    budget_seconds: Seconds | None  #: None where a number of calls was asked for.
    seconds: Seconds  #: How long the timing of all forms took.
    controls: Many[ControlCall] = ()
    processes: Many[ProcessTimes] = ()  #: The repeats in fresh processes, beside the run's own.
    unsteady: Count = 0  #: So many rounds at the beginning are left out: what was timed had not settled.


#: Eager; compiled with nothing compiled before it on this machine; compiled with Inductor's caches of that on disk.
StartKind = Literal["eager", "compiled_no_cache", "compiled_warm_cache"]

#: Whether a fresh process was started for it (`--startup`), or it is what the run's own warm-up happened to see.
StartSource = Literal["fresh_process", "warm_up"]


class Startup(Struct, frozen=True):
    """One start of one form in a fresh process."""

    kind: StartKind
    load_seconds: Seconds  #: Importing torch and the model's libraries, and building the model.
    calls_us: Some[Microseconds]  #: Its calls until it was quiet, the first of them first.
    graphs: Count | None  #: Compiled; None for the eager form.
    cache_hits: Count | None  #: Graphs that were read from Inductor's cache; None for the eager form.


class BreakEven(Struct, frozen=True):
    """After how many calls the compiled form has taken no longer than the eager one, start-up and all. In one warm-up
    the eager form came first and alone paid what a process does once: the truth lies between `calls` and
    `calls_at_most`, and `calls_ci95` reaches over both. In fresh processes each form paid its own."""

    kind: StartKind | None  #: None where a cache was neither empty nor held all graphs.
    source: StartSource
    first_call_us: float  #: The compiled form's.
    startup_us: float  #: What the compiled form's calls until quiet took longer than steady ones.
    eager_startup_us: float  #: The same of the eager form.
    calls: float | None  #: None where no saving was established; inf where there never will be one.
    calls_ci95: tuple[float, float] | None  #: Reaches up to `calls_at_most`.
    graphs: int | None = None  #: Compiled.
    cache_hits: int | None = None  #: Graphs that were read from Inductor's cache.
    never: bool = False  #: Calls save nothing.
    calls_at_most: float | None = None  #: Nothing of the eager start-up taken off; of one warm-up.

    @property
    def span(self) -> tuple[float, float] | None:
        """Between how many calls it lies: the interval, where there is one. None where no saving was established."""
        return span_of_calls(self.calls, self.calls_at_most, self.calls_ci95)


def span_of_calls(
    calls: float | None, calls_at_most: float | None, calls_ci95: Sequence[float] | None
) -> tuple[float, float] | None:
    """`BreakEven.span` of its parts."""
    if calls is None:
        return None
    low, high = calls_ci95 or (calls, calls if calls_at_most is None else calls_at_most)
    return low, high
