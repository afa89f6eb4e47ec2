"""A run of one form with all that its report tells; above all one of which torch.compile compiled nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracekit.comparison.findings.compilation import find_remedies
from tracekit.comparison.looking import look_at
from tracekit.model.single_run import NothingCompiled
from tracekit.reading.model_code import read_lines
from tracekit.reading.sides import load_side

if TYPE_CHECKING:
    from tracekit.model.run import FormName, Run
    from tracekit.model.single_run import SingleRun
    from tracekit.reading.traces import Reading


def look_at_run(folder: Path, run: Run, reading: Reading, form: FormName | None = None) -> SingleRun:
    """One form of the run, by itself. Raises TracekitError for whatever keeps it from being read."""
    single = look_at(load_side(folder, form=form, reading=reading))
    if run.not_compiled is None:
        return single
    source = None
    if run.not_compiled and (place := run.not_compiled[0].where) and (found := read_lines(run, [place]).get(place)):
        # Not where the file has other code now. A long line is cut shorter here than in the run.
        now = found.lines[found.line - found.first].strip()
        source = found if now and (run.not_compiled[0].line or "").startswith(now) else None
    return replace(single, nothing_compiled=NothingCompiled(run.not_compiled, find_remedies(run), source))
