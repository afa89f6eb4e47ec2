"""What a form costs before it is at its steady speed, and after how many calls that is made up for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracekit.model.bounded import Count, Microseconds, Seconds, Some

#: Eager; compiled with nothing compiled before it on this machine; compiled with Inductor's caches of that on disk.
StartKind = Literal["eager", "compiled_no_cache", "compiled_warm_cache"]

#: Whether a fresh process was started for it (`--startup`), or it is what the run's own warm-up happened to see.
StartSource = Literal["fresh_process", "warm_up"]


@dataclass(frozen=True, slots=True)
class Startup:
    """One start of one form in a fresh process.

    `calls_us` are its calls until it was quiet, the first of them first. `load_seconds` went before: importing torch
    and the model's libraries, and building the model; no part of the calls. `graphs` were compiled, `cache_hits` of
    them read from Inductor's cache; None for the eager form.
    """

    kind: StartKind
    load_seconds: Seconds
    calls_us: Some[Microseconds]
    graphs: Count | None
    cache_hits: Count | None


@dataclass(frozen=True, slots=True)
class BreakEven:
    """After how many calls the compiled form has taken no longer than the eager one, start-up and all.

    `first_call_us` is the compiled form's, `startup_us` what its calls until quiet took longer than steady ones,
    `eager_startup_us` the same of the eager form. `calls` is None where no saving was established, inf where there is
    none and never will be; `calls_ci95` goes with the speed-up's interval and the eager form's speed in every process.
    `calls_at_most` is the same with nothing of the eager form's start-up taken off: in one warm-up that form came first
    and alone paid what a process does once, so the truth lies between the two, and `calls_ci95` reaches over both. None
    for starts in fresh processes, where each form paid its own.
    `graphs` were compiled, `cache_hits` of them read from Inductor's cache. `never` says that calls save nothing.
    `kind` is None where the warm-up found a part of its graphs in a cache, or none of them in one that was not empty.
    """

    kind: StartKind | None
    source: StartSource
    first_call_us: float
    startup_us: float
    eager_startup_us: float
    calls: float | None
    calls_ci95: tuple[float, float] | None
    graphs: int | None = None
    cache_hits: int | None = None
    never: bool = False
    calls_at_most: float | None = None
