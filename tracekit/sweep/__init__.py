"""A wing: many settings of a model, each measured in a process of its own, and which one is best."""

from tracekit.wings import Command, Wing

WING = Wing(
    commands={
        "sweep": Command(
            "Measure many settings of a model and report the best one.",
            "tracekit.sweep.commands.sweep:sweep",
            after="profile",
        )
    },
    schemas={
        "sweep": "tracekit.sweep.figures:Sweep",
        "sweep-cell": "tracekit.sweep.cells:CellResult",
    },
    why_no_traces="tracekit.sweep.running.folder:why_no_traces",
)
