"""The command that profiles a cell's settings by themselves."""

from __future__ import annotations

import shlex
from dataclasses import fields

from tracekit.comparison.commands import profile_command
from tracekit.model.option import words_of
from tracekit.model.run import FormName
from tracekit.model.sweep import CellResult
from tracekit.model.workload import Request

#: Of a request, what is no option of its own name, or says how it was timed.
NOT_OPTIONS = ("workload", "options", "seed", "iterations")
#: What only a compiled form hears of.
COMPILING = words_of("compiling")


def command_of(result: CellResult, form: FormName) -> str:
    """What profiles this form of the cell: with what it was measured at, or all that was asked where that is not
    known."""
    asked = result.cell.request
    if result.run is None:
        return _as_asked(asked, form)
    more = []
    if asked.fullgraph is not None and form == "compiled":
        more.append("--fullgraph" if asked.fullgraph else "--no-fullgraph")
    return profile_command(result.run.settings, more=tuple(more), compiled=form == "compiled")


def _as_asked(asked: Request, form: FormName) -> str:
    """Every option that was given; what was not stays the workload's and the machine's choice."""
    words = ["tracekit", "profile", asked.workload, *(["--compiled"] if form == "compiled" else [])]
    default = Request(asked.workload)
    for name in (field.name for field in fields(Request) if field.name not in NOT_OPTIONS):
        value = getattr(asked, name)
        said = name in ("batch_size", *(("mode",) if form == "compiled" else ())) or value != getattr(default, name)
        if said and (form == "compiled" or name not in COMPILING):
            words += option_words(name, value)
    return shlex.join([*words, *(["--", *asked.options] if asked.options else [])])


def option_words(name: str, value: object) -> list[str]:
    """What sets this field of a Request on the command line: `batch_size` by `--batch-size 4`."""
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{option}" if value else f"--no-{option}"]
    return [f"--{option}", str(value)]
