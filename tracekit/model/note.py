"""Something that a reader must know before believing a figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tracekit.model.analysis import Severity


@dataclass(frozen=True, slots=True)
class Note:
    """A fact that bears on figures; `report/words/notes` says it in English.

    `code` names the kind of fact. `subject` is the label of the side that it is about; None where it is about both, or
    about none. `facts` are its figures and names, with units in their keys; all of them are JSON's own types. `grave`
    is whether the headline misleads without it: such notes stand beside the headline in every report.
    """

    code: str
    severity: Severity = "warning"
    subject: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    grave: bool = False


def distinct(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Each note once, where it stands first. Facts cannot be hashed, and there are few notes."""
    found: list[Note] = []
    for note in notes:
        if note not in found:
            found.append(note)
    return tuple(found)
