"""The lines of the user's own model that kernels come from, where their files are there.

A run may come from anybody, and what is read here stands in a page that is passed on: nothing is read but Python files
below the folder of the model that the run names, and of these only what lies in the current folder.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.errors import TracekitError
from tracekit.files import read_bounded
from tracekit.model.provenance import EagerOps, SourceLines

if TYPE_CHECKING:
    from tracekit.model.provenance import CompiledSites
    from tracekit.model.run import Run, Settings

#: Of a file, and of a line that is shown.
MOST_BYTES = 1 << 20
LONGEST_LINE = 160
#: Files that are read.
MOST_FILES = 50
#: Lines before and after the one that is named.
AROUND = 1


def read_model_code(run: Run, told: EagerOps | CompiledSites | None) -> dict[str, SourceLines]:
    """The code of each `file:line` in the user's model that work comes from, by that place; empty for models of
    libraries."""
    if told is None:
        return {}
    lines = (
        (each.line for each in told.ops)
        if isinstance(told, EagerOps)
        else (node.line for graph in told.graphs for node in graph.nodes)
    )
    return read_lines(run, filter(None, lines))


def read_lines(run: Run, places: Iterable[str]) -> dict[str, SourceLines]:
    """The same of these places."""
    root = _folder_of_model(run.settings)
    if root is None:
        return {}
    begun = datetime.datetime.fromisoformat(run.started).timestamp()

    @cache
    def read(name: str) -> tuple[list[str], bool] | None:
        if read.cache_info().currsize >= MOST_FILES or not name.endswith(".py"):
            return None
        try:
            path = (root / name).resolve(strict=True)
            if not path.is_relative_to(root):
                return None
            return read_bounded(path, MOST_BYTES).decode().splitlines(), path.stat().st_mtime > begun
        except (OSError, RuntimeError, ValueError, TracekitError):
            # Not there any more, a loop of links, no text: nothing is shown.
            return None

    found = {}
    for place in dict.fromkeys(places):
        name, _, number = place.rpartition(":")
        # More digits than a file has lines may take long to read.
        at = int(number) if number.isdecimal() and len(number) < 8 else 0
        lines, changed = read(name) or ([], False)
        if 0 < at <= len(lines):
            first = max(at - AROUND, 1)
            shown = tuple(line[:LONGEST_LINE] for line in lines[first - 1 : at + AROUND])
            found[place] = SourceLines(first, at, shown, changed)
    return found


def _folder_of_model(settings: Settings) -> Path | None:
    """Where the files of the user's model lie, in the current folder; None for a model of a library."""
    if settings.own is None:
        return None
    here = Path.cwd().resolve()
    where = settings.workload.rpartition(":")[0]
    if settings.own.in_program or not where.endswith(".py"):
        return here
    try:
        folder = (here / where).resolve().parent
    except (OSError, RuntimeError, ValueError):
        return None
    return folder if folder.is_relative_to(here) else None
