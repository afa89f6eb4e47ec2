"""How a sweep's figures came about, for the page and its twin; docs/sweep.md says more."""

from __future__ import annotations

CELLS = (
    "Each cell is built, warmed up until nothing compiles any more, and timed without the profiler in a fresh process"
    " with an empty Inductor cache, the cells in an order drawn by the seed."
)
BESIDE = (
    "A compiled cell's process times the eager form too, call by call in alternation. Speed-up, interval and verdict"
    " are of that process alone, as in any run (docs/timing.md); eager times of other processes are no part of them."
)
EAGER = (
    "All processes that timed the same eager work, each counting alike, with how far they differ. That is what a"
    " single process's times may be off by."
)
BEST = (
    "Cells of one work are compared by their time relative to eager calls of their own process. One is best alone"
    " where its interval and the other's do not meet, and they differ by more than eager does between processes."
)
COLD = (
    "The calls until a form is quiet, as they were, then steady ones. Loading and building the model are left out:"
    " they are the same for every form."
)

METHOD = (
    ("A process a cell", CELLS),
    ("Eager beside compiled", BESIDE),
    ("The eager column", EAGER),
    ("Best", BEST),
    ("Cold start", COLD),
)
