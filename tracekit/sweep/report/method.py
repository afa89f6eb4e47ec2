"""How a sweep was measured, as its report says."""

#: How a sweep's figures came about; docs/sweep.md says more.
SWEEP = {
    "One process per cell": (
        "Each cell is built, warmed up and timed without the profiler in its own process, with an empty Inductor"
        " cache. "
        "Cells run in random order. Cache hits are reported in the cell."
    ),
    "Eager baseline": (
        "A compiled cell's process times eager too, interleaved. Speed-up, CI and both medians are of that process "
        "(docs/timing.md). Faster and slower also need a difference beyond chance among the workload's cells."
    ),
    "Eager over processes": (
        "All processes that timed the same eager model, equally weighted, and their spread: the possible error of one "
        "process's times."
    ),
    "Best": (
        "Only a “faster” verdict beats eager. Compiled cells are compared by their speed-ups: one is best if the "
        "intervals do not meet and the difference exceeds both noise floors and eager's process spread."
    ),
    "Cold start": (
        "The warm-up calls as they were, then steady ones; loading the model is excluded. Eager runs first and so"
        " includes process start-up (device context, library handles). Compiled cold starts and break-even are "
        "therefore ranges: with none and with all of eager's start-up."
    ),
}
#: How those of cells came about that were measured in several processes.
REPEATED = {
    "Several processes per cell": (
        "Each process builds, warms up and times by itself. The speed-up is the geometric mean of theirs, with"
        " Student's t CI, as in tracekit profile --repeat-process. Processes on machines that differ in GPU, driver or"
        " software are not pooled. Where all cells have three or more, the best needs 1 %, whatever eager's process"
        " spread."
    ),
}
