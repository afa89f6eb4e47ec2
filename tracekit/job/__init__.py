"""A wing: one piece of work in several ranks, each a process, that make every call together."""

from tracekit.wings import Jobs, Wing

WING = Wing(
    jobs=Jobs(
        measure="tracekit.job.starting:measure_job",
        join="tracekit.job.measuring:profile_with_others",
        time_cell="tracekit.job.starting:time_cell",
    )
)
