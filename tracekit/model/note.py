"""Something that a reader must know before believing a figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tracekit.model.analysis import Severity


@dataclass(frozen=True, slots=True)
class Note:
    """A fact that bears on figures; `report/words/notes.py` says it in English.

    `code` names the kind of fact. `subject` is the label of the side that it is about; None where it is about both, or
    about none. `facts` are its figures and names, with units in their keys; all of them are JSON's own types.
    """

    code: str
    severity: Severity
    subject: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
