"""A run as it grows: each change makes another one."""

from typing import Any

from msgspec.structs import replace

from tracekit.model.note import Noted
from tracekit.model.run import FormName, Run


def with_notes(run: Run, *noted: Noted) -> Run:
    """The run, with these behind whatever it notes already."""
    return replace(run, noted=(*run.noted, *noted))


def with_form(run: Run, name: FormName, **changes: Any) -> Run:
    """The run, whose form of this name has these instead."""
    return replace(run, forms=tuple(replace(each, **changes) if each.name == name else each for each in run.forms))
