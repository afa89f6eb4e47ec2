"""What a form costs before it is at its steady speed, and after how many calls that is made up for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tracekit.model.bounded import Count, Microseconds, Seconds, Some, doc

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
