"""Features that lie in one folder each, of which nothing else in tracekit knows more than its line in `WINGS`.

A wing imports the core. What the core needs of one, `WING` of its package says: what is named `module:object` there is
imported when it is used.
"""

import importlib
from typing import Any, NamedTuple

#: A line a wing.
WINGS: tuple[str, ...] = (
    "tracekit.ranks",
    "tracekit.sweep",
)  # fmt: skip


class Command(NamedTuple):
    """A command of a wing."""

    help: str  #: One line.
    place: str  #: `module:object` of click's command.
    after: str  #: The command that it is listed behind.
    reads: bool = False  #: It reads traces and runs no model.


class Wing(NamedTuple):
    """What a wing adds to the core's commands."""

    commands: dict[str, Command]  #: By name.
    schemas: dict[str, str]  #: Of `tracekit schema`: by name the `report.schemas.Written` of a file.
    notes: str | None = None  #: Sentences of its own notes, by code, where comparisons and single runs show them too.
    why_no_traces: str | None = (
        None  #: Given a folder: where it is one of the wing's, that it holds no traces and what shows it.
    )


def wings() -> tuple[Wing, ...]:
    """All that are registered, in their order."""
    return tuple(importlib.import_module(name).WING for name in WINGS)


def load(place: str) -> Any:
    """The object that `module:object` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
