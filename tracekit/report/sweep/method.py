"""How a sweep's figures came about, for the page and its twin; docs/sweep.md says more."""

from __future__ import annotations

CELLS = (
    "Each cell is built, warmed up until nothing compiles any more, and timed without the profiler in a fresh process"
    " with an empty Inductor cache of its own, the cells in an order drawn by the seed. Where graphs came from a cache"
    " all the same (a remote one), the cell says so."
)
BESIDE = (
    "A compiled cell's process times the eager form too, call by call in alternation. Speed-up, interval and verdict"
    " are of that process alone, as in any run (docs/timing.md), and so are both medians beside them; eager times of"
    " other processes are no part of them."
)
EAGER = (
    "All processes that timed the same eager work, each counting alike, with how far they differ. That is what a"
    " single process's times may be off by."
)
BEST = (
    "Eager is beaten by what its own process's verdict calls faster, and by nothing else. Cells that beat it are"
    " compared by their time relative to eager calls of their own process: one is best alone where its interval and the"
    " other's do not meet, and they differ by more than the noise of either and than eager does between processes."
)
COLD = (
    "The calls until a form is quiet, as they were, then steady ones. Loading and building the model are left out:"
    " they are the same for every form. Eager is warmed up first in every process and alone pays what a process does"
    " once (the device's context, handles of libraries, code loaded at its first use). What of its start-up that is,"
    " nobody measured: so a compiled form's cold start and its break-even lie between two numbers, with nothing of"
    " eager's start-up and with all of it, and only what holds for both is said."
)

METHOD = (
    ("A process a cell", CELLS),
    ("Eager beside compiled", BESIDE),
    ("Eager over processes", EAGER),
    ("Best", BEST),
    ("Cold start", COLD),
)
