"""Features that lie in one folder each, of which nothing else in tracekit knows more than its line in `WINGS`.

A wing imports the core. What the core needs of one, `WING` of its package says: what is named `module:object` there is
imported when it is used.
"""

import importlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

#: A line a wing.
WINGS: tuple[str, ...] = (
    "tracekit.job",
    "tracekit.ranks",
    "tracekit.sweep",
    "tracekit.programs",
)  # fmt: skip


class Command(NamedTuple):
    """A command of a wing."""

    help: str  #: One line.
    place: str  #: `module:object` of click's command.
    after: str  #: The command that it is listed behind.
    reads: bool = False  #: It reads traces and runs no model.


class Together(NamedTuple):
    """What a wing makes of several traces that it reads as one: functions, each as `module:object`."""

    takes: str  #: Given places: whether they are such traces, not a run or two sides to compare.
    takes_run: str  #: Given places: whether they are one run that has such.
    merge: str  #: Given places, form, window, steps and where it goes: writes all as one trace, and says where.
    #: Given places, form, window, steps, whether readings are kept, and where each goes: writes a table and that trace.
    export: str


class OverRanks(NamedTuple):
    """What a wing makes of two sides that are ranks of jobs, each as `module:object`."""

    compare: str  #: Given a run's folder, run and form twice, and how recordings are read: the `model.job.Job`.
    written: str  #: What JSON holds of that.
    notes: str  #: Given B and the job: notes.
    finders: str  #: Those of `comparison.findings`, of findings on ranks.
    measures: str  #: Of figures that a gate may limit, by metric.
    account: str  #: Given a comparison: rows of its account, of what exposed communication consists of.
    table: str  #: Given the job and both sides' names: a line a rank of the first screen.
    section: str  #: Given a comparison: the report's section on ranks.


class Jobs(NamedTuple):
    """What a wing does to run work in several ranks, each as `module:object`."""

    measure: str  #: Given a plan, the run's folder and progress: starts the ranks, and returns the run.
    join: str  #: Given a plan, its request in full, progress and `on_part`: the run of the ranks a launcher started.
    time_cell: str  #: Given a cell, how many ranks, an empty folder and patience: how it ended, and what failed.


class Wing(NamedTuple):
    """What a wing adds to the core's commands."""

    commands: Mapping[str, Command] = MappingProxyType({})  #: By name.
    #: Of `tracekit schema`: by name the struct of a file.
    schemas: Mapping[str, str] = MappingProxyType({})
    #: Given a folder: where it is one of the wing's, that it holds no traces and what shows it.
    why_no_traces: str | None = None
    together: Together | None = None
    over_ranks: OverRanks | None = None
    jobs: Jobs | None = None
    beside: str | None = None  #: Given a trace that was just recorded: writes beside it what the wing reads instead.


def wings() -> tuple[Wing, ...]:
    """All that are registered, in their order."""
    return tuple(importlib.import_module(name).WING for name in WINGS)


def load(place: str) -> Any:
    """The object that `module:object` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def over_ranks() -> OverRanks | None:
    """Of the wing that compares jobs rank by rank."""
    return next((wing.over_ranks for wing in wings() if wing.over_ranks), None)


def jobs() -> Jobs | None:
    """Of the wing that runs work in several ranks."""
    return next((wing.jobs for wing in wings() if wing.jobs), None)


def together(places: Sequence[str]) -> Together | None:
    """Of the wing that reads these traces as one."""
    return next((it for it in _together() if load(it.takes)(places)), None)


def together_of_run(places: Sequence[str]) -> Together | None:
    """Of the wing that reads the traces of this run as one."""
    return next((it for it in _together() if load(it.takes_run)(places)), None)


def _together() -> tuple[Together, ...]:
    return tuple(wing.together for wing in wings() if wing.together)
