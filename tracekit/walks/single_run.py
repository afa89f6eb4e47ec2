"""A run of one form with all that its report tells; above all one of which torch.compile compiled nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.comparison.comparing import look_at
from tracekit.comparison.remedies import find_remedies
from tracekit.errors import TracekitError
from tracekit.files import read_bounded
from tracekit.model.compilation import LONGEST_LINE
from tracekit.model.single_run import NothingCompiled, SourceLines
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side

if TYPE_CHECKING:
    from tracekit.model.run import FormName, Run
    from tracekit.model.single_run import SingleRun

#: Bytes of a file of Python, and lines before and after the one that matters.
MOST_BYTES = 4 << 20
AROUND = 1


def look_at_run(folder: Path, run: Run, reading: Reading, form: FormName | None = None) -> SingleRun:
    """One form of the run, by itself. Raises TracekitError for whatever keeps it from being read."""
    single = look_at(load_side(folder, form=form, reading=reading))
    if run.not_compiled is None:
        return single
    first = next(iter(run.not_compiled), None)
    source = read_source(first.where, first.line) if first and first.where and first.line else None
    return replace(single, nothing_compiled=NothingCompiled(run.not_compiled, find_remedies(run), source))


def read_source(place: str, line: str) -> SourceLines | None:
    """The lines around `file:line`, of a file of Python below this folder or where Python imports from. None where it
    is not there, or has other code in that line: the file was changed, or a run folder names somebody else's."""
    name, _, number = place.rpartition(":")
    if not name.endswith(".py") or not number.isdecimal() or len(number) > len("10000000"):
        return None
    at = int(number)
    for root in (Path.cwd(), *map(Path, filter(None, sys.path))):
        try:
            path = (root / name).resolve(strict=True)
            if not path.is_relative_to(root.resolve()):
                continue
            lines = read_bounded(path, MOST_BYTES).decode(errors="replace").splitlines()
        except (OSError, ValueError, RuntimeError, TracekitError):
            continue
        if 0 < at <= len(lines) and lines[at - 1].strip()[:LONGEST_LINE] == line:
            first = max(at - AROUND, 1)
            return SourceLines(first, tuple(lines[first - 1 : at + AROUND]), at)
    return None
