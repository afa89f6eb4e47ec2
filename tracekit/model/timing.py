"""How the timed calls of a run were made: why they stopped, what was measured against itself, other processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tracekit.model.bounded import CallMicroseconds, Count, Many, Microseconds, Ratio, Seconds, Some

#: Why no more calls were made. `most rounds` is a limit of tracekit's own, for calls of microseconds.
StopReason = Literal["asked number", "target reached", "budget spent", "most rounds", "interrupted"]


def refuse_no_times(wall_us: Sequence[float]) -> None:
    """Raises ValueError where a call took no time that a clock can show: ratios and medians of it would be none."""
    for number, us in enumerate(wall_us, 1):
        if not (math.isfinite(us) and us > 0):
            raise ValueError(f"timed call {number} took {us} microseconds, which is no time")


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When timing stops. `rounds` is a number that was asked for; the rest is for when none was.

    `target` is the half-width of the ratio's 95 % interval to reach, as a share: 0.01 is 1 % to each side. It is asked
    from `least` rounds and a tenth of the budget on; `budget_seconds` counts from the first call.
    """

    rounds: Count | None
    target: Ratio
    budget_seconds: Seconds
    least: Count


@dataclass(frozen=True, slots=True)
class ControlCall:
    """The second call of one form in round `round` (from 0): with the first, `wall_us[round]`, a pair that differs by
    noise alone. `device_us` is None without a GPU."""

    round: Count
    wall_us: CallMicroseconds
    device_us: Microseconds | None

    def __post_init__(self) -> None:
        refuse_no_times((self.wall_us,))


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """One form's calls in a process of its own (`--repeat-process`), in the order they were measured.

    `during_timing` is how many compilations ran inside them, `cache_hits` how many graphs came from Inductor's cache on
    disk; None of an eager form, and in runs made before it was kept. Where the run's own process asked for provenance,
    the first repeat compiles once more: what was compiled with it is kept apart (docs/provenance.md).
    """

    wall_us: Some[CallMicroseconds]
    device_us: Many[Microseconds] | None
    controls: Many[ControlCall]
    stopped: StopReason
    seconds: Seconds
    during_timing: Count = 0
    cache_hits: Count | None = None

    def __post_init__(self) -> None:
        refuse_no_times(self.wall_us)


@dataclass(frozen=True, slots=True)
class FormTiming:
    """How one form was timed. `target` and `budget_seconds` are None where a number of calls was asked for; `seconds`
    is how long the timing of all forms took. `processes` are the repeats in fresh processes, beside the run's own."""

    stopped: StopReason
    target: Ratio | None
    budget_seconds: Seconds | None
    seconds: Seconds
    controls: Many[ControlCall] = ()
    processes: Many[ProcessTimes] = ()
