"""A wing: a program as it is, of which all that it compiles is switched between compiled and eager while it runs."""

from tracekit.wings import Command, Wing

WING = Wing(
    commands={
        "run": Command(
            "Run your own script, and measure what torch.compile does for it.",
            "tracekit.programs.command:run",
            after="profile",
        )
    },
)
